"""Two versions rule by rule: what came and went, by which step, on what it rests, and what it gained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.view import numbers
from skillgit.view.items import headline
from skillgit.view.surface import Style
from skillgit.view.text import pad, width, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.history.diff.rules import RuleChange, RulesDiffed
    from skillgit.view.surface import Screen


_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}
_STYLES = {"added": Style.ACCEPTED, "removed": Style.REJECTED, "changed": Style.REVERTED, "moved": Style.FAINT}
_GAP = 2
_NARROWEST = 24
"""Columns of a rule's text, however narrow the terminal is."""
_BY_KIND: dict[str, str] = {EventKind.RUN_STARTED: "seed", EventKind.EDITED: "by hand", EventKind.REVERTED: "restore"}


def lines(diff: RulesDiffed, screen: Screen) -> Iterator[str]:
    """Yield the two sides, the rules and the sums."""
    yield headline(diff.a, diff.b, screen)
    files = list(dict.fromkeys(row.file for row in diff.rows))
    for file in files:
        yield ""
        if len(files) > 1:
            yield screen.paint(Style.STRONG, file)
        yield from _table([row for row in diff.rows if row.file == file], diff, screen)
    yield ""
    yield sums(diff, screen)
    yield from (screen.paint(Style.FAINT, note) for note in _notes(diff))


def sums(diff: RulesDiffed, screen: Screen) -> str:
    """Return how many rules came, went, changed, moved and stayed."""
    counts = [(sum(row.change == change for row in diff.rows), change) for change in _SIGNS]
    parts = [f"{count} {change}" for count, change in counts if count or change in {"added", "removed"}]
    return f"rules: {f' {screen.glyphs.dot} '.join([*parts, f'{diff.kept} kept'])}"


def _table(rows: Sequence[RuleChange], diff: RulesDiffed, screen: Screen) -> Iterator[str]:
    fronts = [(_sign(row, screen), _label(row, diff), _step(row)) for row in rows]
    backs = [(_support(row), numbers.delta(row.gain)) for row in rows]
    before, after = _sizes(fronts), _sizes(backs)
    indent = sum(size + _GAP for size in before if size) - 1
    room = screen.width - indent - sum(size + _GAP for size in after) if screen.width else 0
    texts = [list(_text(row, room, screen)) for row in rows]
    if screen.width and room < _NARROWEST:
        # no room for columns behind the text: they go under it
        room = max(_NARROWEST, screen.width - indent)
        texts = [
            [*_text(row, room, screen), screen.paint(Style.FAINT, "  ".join(filter(None, own)))]
            for row, own in zip(rows, backs, strict=True)
        ]
        backs, after = [("", "")] * len(rows), [0, 0]
    room = max(width(line) for text in texts for line in text)
    for (sign, *columns), text, own in zip(fronts, texts, backs, strict=True):
        cells = [pad(cell, size) for cell, size in zip(columns, before[1:], strict=True) if size]
        lead = pad(f"{sign} {(' ' * _GAP).join(cells)}", indent)
        ends = [pad(cell, size, right=number == 1) for number, (cell, size) in enumerate(zip(own, after, strict=True))]
        yield f"{lead}{(' ' * _GAP).join([pad(text[0], room), *ends])}".rstrip()
        yield from (f"{' ' * indent}{line}" for line in text[1:] if line)


def _sizes(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, cells)) for cells in zip(*rows, strict=True)]


def _text(row: RuleChange, room: int, screen: Screen) -> Iterator[str]:
    yield from wrap(row.text, room)
    if row.before:
        yield from (screen.paint(Style.FAINT, line) for line in wrap(f"was: {row.before}", room))


def _sign(row: RuleChange, screen: Screen) -> str:
    return screen.paint(_STYLES[row.change], _SIGNS[row.change])


def _label(row: RuleChange, diff: RulesDiffed) -> str:
    """Return the version or the candidate that did it; of another run than the newer side's, with the run."""
    if row.address is None:
        return "seed" if row.source == "seed" else numbers.short(row.commit)
    return row.address.seen_from(next((side.run for side in (diff.b, diff.a) if side is not None), row.by))


def _step(row: RuleChange) -> str:
    if row.kind == EventKind.SLOW_PROPOSED and row.version is not None:
        return f"in {version_label(row.version)}"
    if row.kind.startswith("slow-") or row.origin == "meta":
        return f"epoch {row.epoch}"
    if row.kind in _BY_KIND:
        return _BY_KIND[row.kind]
    if row.number:
        return row.origin
    return f"step {row.step}" if row.step else ""


def _support(row: RuleChange) -> str:
    return f"support {row.support} {row.source}" if row.support is not None else row.source


def _notes(diff: RulesDiffed) -> Iterator[str]:
    if any(row.change == "removed" and row.deed == "brought" for row in diff.rows):
        yield "a - line bears what brought the rule, since the second side was not made from the first"
    if any(row.change == "added" and row.deed == "removed" for row in diff.rows):
        yield "a + line bears what removed the rule, since the first side was made from the second"
