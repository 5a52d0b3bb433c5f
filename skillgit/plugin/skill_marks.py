"""The marks around a skill in a system message, by which an agent is given it as a file and any other model as text.

An environment puts a skill between ``<skill name="…">`` and ``</skill>``, each on a line of its own. A backend that
installs skills takes it out and places it where its agent looks for skills; with ``offered`` behind the name it is
installed as it is, and it is up to the agent to load it. Every other model reads the text without the marks: a small
one answers worse between them (docs/results.md).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.plugin.backend import Message

FORM = "text/1"
"""How a model that installs no skills reads one; it changes whenever :func:`as_text` can change a message."""
_OPENED = re.compile(r'^<skill name="(?P<name>[^"\n]*)"(?P<offered> offered)?>[ \t]*\n', re.MULTILINE)
_CLOSED = re.compile(r"^</skill>[ \t]*(?:\n|\Z)", re.MULTILINE)


def marked(name: str, text: str) -> str:
    return f'<skill name="{name}">\n{text}\n</skill>'


def blocks(
    text: str, openings: re.Pattern[str] = _OPENED, closings: re.Pattern[str] = _CLOSED
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the marks around each skill: the last closing one before the next skill, as a skill may speak of marks."""
    starts = list(openings.finditer(text))
    for start, limit in zip(starts, [*(later.start() for later in starts[1:]), len(text)], strict=False):
        ends = list(closings.finditer(text, start.end(), limit))
        if ends:
            yield start, ends[-1]


def without_marks(text: str) -> str:
    r"""Return ``text`` with its skills as they are; those that are merely offered keep their marks.

    >>> without_marks('Answer.\n\n<skill name="x">\n- Be brief.\n</skill>\n\nNow.')
    'Answer.\n\n- Be brief.\n\nNow.'
    """
    parts, position = list[str](), 0
    for opening, closing in blocks(text):
        if not opening["offered"]:
            parts += [text[position : opening.start()], text[opening.end() : closing.start()]]
            position = closing.end()
    return "".join([*parts, text[position:]]).strip() if parts else text


def as_text(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return ``messages`` as a model that installs no skills gets them, without a system message that says nothing."""
    plain = []
    for message in messages:
        if message.role != "system":
            plain.append(message)
        elif text := without_marks(message.text):
            plain.append(message if text == message.text else replace(message, parts=(Text(text=text),)))
    return tuple(plain)
