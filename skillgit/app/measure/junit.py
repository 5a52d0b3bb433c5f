"""Results as JUnit XML, which CI servers show: a suite for each text that was measured, a test case for each item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from skillgit.app.measure.pull_request_verdicts import NOT_RECORDED
from skillgit.app.setup.measurement import KeptReply
from skillgit.domain.evaluation import FailedToEvaluate, Outcome
from skillgit.domain.untrusted.model_text import clean
from skillgit.plugin.redaction import redact

_SHORT, _MIDDLE, _LONG = 200, 600, 2_000
_NO_XML: Final = re.compile("[\ufffe\uffff]")
"""What XML has no place for and a clean text may hold."""


def suite(name: str, properties: Mapping[str, object]) -> Element:
    """Return a suite without cases; a property without a value is left out."""
    element = Element("testsuite", name=_text(name, _SHORT))
    values = {label: _figure(value) for label, value in properties.items() if value not in (None, "")}
    parent = SubElement(element, "properties") if values else element
    for label, value in values.items():
        SubElement(parent, "property", name=label, value=_text(value, _SHORT))
    return element


def add_case(into: Element, name: str, kind: str = "", message: str = "", details: str = "") -> None:
    """Add a test case, which passes unless it is of a ``kind``: failure, error or skipped."""
    case = SubElement(into, "testcase", classname=into.get("name", ""), name=_text(name, _SHORT))
    if kind:
        result = SubElement(case, kind, message=_text(" ".join(message.split()), _SHORT), type=kind)
        result.text = _text(details, _LONG) or None


def add_item(
    into: Element,
    item: str,
    outcome: Outcome,
    value: float | None,
    reply: KeptReply | None,
    *,
    before: float | None = None,
) -> None:
    """Add the case of an item, which fails without the full score, or if it scores lower than ``before``.

    An item that could not be evaluated is an error, and one that scored as low before says nothing of a change.
    """
    if isinstance(outcome, FailedToEvaluate) or value is None:
        reason = getattr(outcome, "reason", "")
        add_case(into, item, "skipped" if outcome is NOT_RECORDED else "error", reason)
        return
    score = f"scores {_figure(value)}"
    if value < (1 if before is None else before):
        message = score if before is None else f"{score}, at the base {_figure(before)}"
        if reply is None:
            add_case(into, item, "failure", message)
            return
        details = f"asked: {_text(reply.question, _MIDDLE)}\ngiven: {reply.answer}\nscorer: {reply.feedback}"
        add_case(into, item, "failure", f"{message}; {reply.feedback}", details)
    elif value < 1 and value == before:
        add_case(into, item, "skipped", f"{score}, as at the base")
    else:
        add_case(into, item)


def document(command: str, suites: Iterable[Element]) -> bytes:
    """Return the XML of ``suites``, with the numbers of their cases."""
    root = Element("testsuites", name=f"skillgit {command}")
    root.extend(suites)
    for element in (*root, root):
        counts = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
        for name, kind in counts.items():
            if element is not root or name != "skipped":  # which the schema of the root does not have
                element.set(name, str(sum(1 for _ in element.iter(kind))))
    indent(root)
    content: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _figure(value: object) -> str:
    if isinstance(value, tuple):
        return " to ".join(map(_figure, value))
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _text(text: str, most: int) -> str:
    """Return ``text`` without credentials and without what acts, hides or is not XML, and no longer than ``most``."""
    plain = _NO_XML.sub("", clean(redact(text)))
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
