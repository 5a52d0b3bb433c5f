"""Checks of data and fetched data as people read them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from skillgit.cli.render.columns import pad, table, width, wrap
from skillgit.cli.render.words import plural, short
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillgit.app.data.check import DataCheck, Finding, Severity, SplitSummary
    from skillgit.app.data.fetch import Fetched
    from skillgit.cli.screen import Screen

_HEAD = ("split", "items", "used", "one item", "shows from", "digest", "types")
_TYPES = 4
_STYLES = {"fault": Style.REJECTED, "warning": Style.REVERTED}


def checked(found: DataCheck, screen: Screen) -> Iterator[str]:
    """Yield the splits, what is wrong with them, and what they can tell."""
    if found.splits:
        rows = [_HEAD, *(_split(split) for split in found.splits)]
        head, *body = table(rows, align="lrrrrll")
        yield screen.paint(Style.FAINT, head)
        yield from body
        yield ""
    for (severity, hint), findings in groupby(found.findings, key=lambda finding: (finding.severity, finding.hint)):
        yield from _findings(severity, hint, findings, screen)
        yield ""
    faults = sum(finding.severity == "fault" for finding in found.findings)
    warnings = len(found.findings) - faults
    yield f"{found.environment}: {plural(faults, 'fault')}, {plural(warnings, 'warning')}"
    for note in found.notes:
        yield from wrap(note, screen.width)


def _split(split: SplitSummary) -> tuple[str, ...]:
    return (
        split.split,
        f"{split.items:,}",
        f"{split.used:,}",
        f"{100 * split.step:.2f}",
        f"{100 * split.detectable:.1f}" if split.detectable is not None else "-",
        split.digest,
        _types(split.types),
    )


def _types(types: Mapping[str, int]) -> str:
    shown = [f"{name} {items}" for name, items in types.items()]
    more = len(shown) - _TYPES
    return ", ".join(shown[:_TYPES]) + (f" and {more} more" if more > 0 else "")


def _findings(severity: Severity, hint: str, findings: Iterable[Finding], screen: Screen) -> Iterator[str]:
    """Yield findings that one hint helps with."""
    indent = " " * (width("warning") + 2)
    label = pad(screen.paint(_STYLES[severity.value], severity.value), len(indent))
    for finding in findings:
        for number, line in enumerate(wrap(finding.sentence, screen.width, indent)):
            yield f"{label}{line.removeprefix(indent)}" if number == 0 else line
    yield from (screen.paint(Style.FAINT, line) for line in wrap(hint, screen.width, indent))


def fetched(found: Fetched, screen: Screen) -> Iterator[str]:
    """Yield what was written, and how to use it."""
    yield f"{found.source} at {screen.paint(Style.OID, short(found.revision))}, in {found.place}"
    yield from table([(file.path, plural(file.items, "item")) for file in found.files], align="lr", indent="  ")
    if found.repeated:
        yield f"left out {plural(found.repeated, 'row')} that stood there already"
    yield f"use it with {' '.join(f'-o {option}' for option in found.options)}"
