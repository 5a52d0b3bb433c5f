"""What a scan found in commits that are to be published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render.words import plural, short
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.scan import Finding, Scan
    from skillgit.cli.screen import Screen


def scanned(result: Scan, screen: Screen) -> Iterator[str]:
    """Yield what was found, and how much was looked at."""
    yield from found(result, screen)
    stops, warnings = len(result.stops), len(result.warnings)
    told = [
        *([f"{plural(stops, 'finding')} that would stop a push"] if stops else []),
        *([plural(warnings, "warning")] if warnings else []),
        *([f"{result.allowed} allowed"] if result.allowed else []),
    ]
    looked = f"looked at {plural(result.commits, 'commit')}, {plural(result.files, 'file')}"
    yield f"{looked}: {', '.join(told) or 'nothing found'}"


def found(result: Scan, screen: Screen) -> Iterator[str]:
    """Yield every finding with its place, the masked line and its fingerprint."""
    for one in (*result.stops, *result.warnings):
        style = Style.REJECTED if one in result.stops else Style.REVERTED
        word = screen.paint(style, one.severity.value)
        yield f"{word}  {screen.paint(Style.OID, short(one.commit))}  {_place(one)}: {one.what} [{one.rule.value}]"
        faint = "  ".join(part for part in (one.fingerprint, one.excerpt) if part)
        yield f"      {screen.paint(Style.FAINT, faint)}"


def _place(one: Finding) -> str:
    if not one.path:
        return f"message, line {one.line}"
    return f"{one.path}:{one.line}" if one.line else one.path
