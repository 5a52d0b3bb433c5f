"""Items under two versions: which were fixed, which were broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import table
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.diff import ItemChange, ItemDiff
    from skillgit.cli.screen import Screen
    from skillgit.index.rows import LogRow

COLUMNS = ("item", "task_type", "before", "after", "change")
"""The columns of ``diff --items --plain``."""

_ORDER = ("fixed", "broken", "missing")
_STYLES = {"fixed": Style.ACCEPTED, "broken": Style.REJECTED, "missing": Style.REVERTED}


def name(row: LogRow | None) -> str:
    """Return what an event is called on the command line."""
    if row is None:
        return "commit"
    if row.version is not None:
        return f"v{row.version}"
    if row.kind != "rejected":
        return words.short(row.commit)
    return f"m{row.epoch}" if row.origin == "meta" else f"r{row.step}"


def flips(diff: ItemDiff, screen: Screen) -> Iterator[str]:
    """Yield the items that changed and the sums."""
    yield f"{name(diff.a)} {screen.glyphs.arrow} {name(diff.b)}   {diff.metric} {change(diff.a, diff.b, screen)}"
    changed = [row for kind in _ORDER for row in diff.rows if row.change == kind]
    if changed:
        yield ""
        yield from _rows(changed, screen)
    yield ""
    yield _sums(diff, screen)


def change(a: LogRow | None, b: LogRow | None, screen: Screen) -> str:
    """Return two scores and their difference: ``.6000 → .7250 (+.1250)``."""
    if a is None or b is None or a.score is None or b.score is None:
        return "without a score on both sides"
    moved = f"{words.score(a.score)} {screen.glyphs.arrow} {words.score(b.score)}"
    return f"{moved} ({words.delta(b.score - a.score)})"


def _rows(rows: Sequence[ItemChange], screen: Screen) -> Iterator[str]:
    glyphs = screen.glyphs
    signs = {"fixed": glyphs.passed, "broken": glyphs.rejected, "missing": "?"}
    body = [
        (
            screen.paint(_STYLES[row.change], f"{signs[row.change]} {row.change}"),
            row.item,
            row.task_type,
            _value(row.before),
            glyphs.arrow,
            _value(row.after),
        )
        for row in rows
    ]
    yield from table(body, align="lllrlr")


def _value(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.0f}" if value in {0.0, 1.0} else words.score(value)


def _sums(diff: ItemDiff, screen: Screen) -> str:
    parts = [
        f"{len(diff.fixed)} fixed",
        f"{len(diff.broken)} broken",
        f"{len(diff.stable_pass)} stable pass",
        f"{len(diff.stable_fail)} stable fail",
    ]
    if diff.missing:
        parts.append(f"{len(diff.missing)} missing")
    tested = f"   sign test {words.chance(diff.p)}" if diff.fixed or diff.broken else ""
    return f" {screen.glyphs.dot} ".join(parts) + tested
