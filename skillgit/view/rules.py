"""The rules of a skill as tables: where each comes from, what it is worth, and which two versions do not share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.view import gate, numbers
from skillgit.view.items import headline
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, fit, headed, inert, one_line, pad, under, width, wrap

if TYPE_CHECKING:
    from skillgit.app.attribution.provenance import Blame, BlameRow
    from skillgit.app.history.diff.rules import RuleChange, RulesDiffed
    from skillgit.app.interventions.ablate import Ablated, AblatedRule
    from skillgit.app.interventions.shorten import Pruned


_TEXT_LEAST = 44  # columns that the text gets before others are left out for it
_ITEMS_SHOWN = 2
_NUMBER = 4
_AUTHOR = 16
_RUN = 16
_GAP = "  "
_STYLES = {"slow": Style.SLOW, "human": Style.REVERTED, "seed": Style.FAINT}


_COLUMNS = (
    # heading, whether it is aligned to the right, and its rank: where the text has little room, the highest goes first
    ("from", False, 0),
    ("step", True, 2),
    ("rests on", False, 0),
    ("gain", True, 0),
    ("items", False, 1),
    ("because of", False, 3),
)


def lines(result: Blame, screen: Screen, *, whole: bool = False) -> Iterator[str]:
    """Yield the lines of a file with where they come from; on a terminal neighbours of one origin show it once.

    Where lines are cut to the terminal, ``whole`` ones are not.
    """
    rows, cells = result.lines, [_cells_of(row, result, screen) for row in result.lines]
    if not rows:
        return
    sizes = [
        max(width(head), *map(width, texts))
        for (head, *_), texts in zip(_COLUMNS, zip(*cells, strict=True), strict=True)
    ]
    visible = [*range(len(_COLUMNS))]
    for rank in (3, 2, 1):
        if screen.width and screen.width - _taken(sizes, visible) < _TEXT_LEAST:
            visible = [index for index in visible if _COLUMNS[index][2] < rank]

    def front(texts: Sequence[str]) -> str:
        return _GAP.join(pad(texts[index], sizes[index], right=_COLUMNS[index][1]) for index in visible)

    yield screen.paint(Style.FAINT, f"{front([head for head, *_ in _COLUMNS])}{_GAP}{'line':>{_NUMBER}}")
    room = max(1, screen.width - _taken(sizes, visible))
    for index, row in enumerate(rows):
        texts = cells[index]
        if screen.terminal and index and _same(rows[index - 1], row):
            # what is the same is not repeated
            rest = ("" if cell == above else cell for cell, above in zip(texts[1:], cells[index - 1][1:], strict=True))
            texts = (screen.glyphs.dot, *rest)
        text = inert(row.text) if whole else cut(inert(row.text), room, screen)
        origin = screen.paint(_STYLES.get(row.source, Style.ACCEPTED), front(texts))
        yield f"{origin}{_GAP}{row.line:>{_NUMBER}} {screen.glyphs.line} {text}".rstrip()


def _taken(sizes: Sequence[int], visible: Sequence[int]) -> int:
    return sum(sizes[index] + len(_GAP) for index in visible) + _NUMBER + 3


def _cells_of(row: BlameRow, result: Blame, screen: Screen) -> tuple[str, ...]:
    more = len(row.items) - _ITEMS_SHOWN
    rests_on = row.source if row.support is None else f"{row.source} {row.support}"
    if row.source == "human" and row.author:
        rests_on = fit(inert(row.author), _AUTHOR, screen.glyphs.ellipsis)
    return (
        _from(row, result, screen),
        str(row.step) if row.step else "",
        rests_on,
        numbers.delta(row.delta),
        f"+{len(row.fixed)} -{len(row.broken)}" if row.fixed or row.broken else "",
        inert(" ".join([*row.items[:_ITEMS_SHOWN], *([f"+{more}"] if more > 0 else [])])),
    )


def _same(before: BlameRow, row: BlameRow) -> bool:
    if row.line != before.line + 1:
        return False
    return (before.commit, before.restored) == (row.commit, row.restored) or before.source == row.source == "seed"


def _from(row: BlameRow, result: Blame, screen: Screen) -> str:
    """Return what to name on the command line for the event that brought a line."""
    if row.address is None:
        return "v0" if row.source == "seed" and result.run else numbers.short(row.commit)
    room = _RUN if screen.width else len(row.run)
    own = row.address.label
    if row.run != result.run:
        own = f"{fit(row.run, room, screen.glyphs.ellipsis)}/{own}"
    return own if row.restored is None else f"{own} {screen.glyphs.reverted} {version_label(row.restored)}"


_WORTHS = {
    "works": (Style.ACCEPTED, "the score is lower without it"),
    "mixed": (Style.REVERTED, "it helps as many items as it harms"),
    "harmful": (Style.REJECTED, "the score is higher without it"),
    "dead": (Style.SKIPPED, "nothing changes without it"),
}
"""What a rule is worth: its colour, and what that means."""
_LEAST = 24


def ablated(result: Ablated, screen: Screen) -> Iterator[str]:
    whole = f"{result.metric} {numbers.score(result.score)} on {numbers.plural(result.n, f'{result.split} item')}"
    name = screen.paint(Style.STRONG, result.name)
    count = numbers.plural(result.every, "rule")
    left_out = count if len(result.rules) == result.every else f"{len(result.rules)} of {count}"
    yield f"{name}  {screen.dotted((whole, f'{left_out} left out one at a time'))}"
    yield ""
    yield from _table(result, screen)
    yield ""
    present = dict.fromkeys(row.ablation.worth.value for row in result.rules)
    for worth in present:
        style, meaning = _WORTHS[worth]
        yield f"{screen.paint(style, worth.ljust(gate.LABEL))}  {meaning}"
    note = f"{numbers.plural(result.noted, 'new ablation')} on refs/notes/skillgit/evals"
    yield gate.fact("notes", note if result.noted else "nothing new", screen)
    yield gate.fact("by", one_line(result.basis.sentence), screen)
    yield gate.fact("cost", gate.cost(result.cost, screen), screen)
    yield gate.following(_next(result), screen)


def _table(result: Ablated, screen: Screen) -> Iterator[str]:
    names = ("rule", "lines", "since", "without", "delta", "fixed", "broken", "p", "")
    lines = list(headed(names, (_cells(row, screen) for row in result.rules), screen, align="rllrrrrll"))
    fixed_width = max(map(width, lines)) + 2
    room = max(_LEAST, screen.width - fixed_width)
    for line, text in zip(lines, ("", *(row.ablation.text for row in result.rules)), strict=True):
        yield f"{pad(line, fixed_width)}{cut(text, room, screen)}".rstrip()


def _cells(row: AblatedRule, screen: Screen) -> tuple[str, ...]:
    ablation = row.ablation
    where = "" if ablation.region.value == "body" else f" {ablation.region.value}"
    worth = ablation.worth.value
    lines = str(ablation.first) if ablation.first == ablation.last else f"{ablation.first}-{ablation.last}"
    return (
        str(ablation.rule),
        f"{lines}{where}",
        row.since,
        numbers.score(ablation.score),
        numbers.delta(ablation.delta),
        str(len(ablation.fixed)),
        str(len(ablation.broken)),
        numbers.chance(ablation.p).removeprefix("p "),
        screen.paint(_WORTHS[worth][0], worth),
    )


def _next(result: Ablated) -> tuple[str, ...]:
    removable = [row for row in result.rules if row.ablation.removable]
    if removable and result.is_head:
        return (
            f"skillgit shorten {result.name} drops {numbers.plural(len(removable), 'rule')} that it can do without",
        )
    if removable:
        return (f"skillgit ablate {result.run} looks at the newest version, which shorten takes",)
    if len(result.rules) < result.every:
        return (f"skillgit ablate {result.name} measures every rule",)
    return (f"skillgit shorten --words {result.name} says the same in fewer words",)


def pruned(result: Pruned, screen: Screen) -> Iterator[str]:
    yield from gate.head(result.decided, screen)
    yield ""
    for label, rules in (("dropped", result.rules), ("needed", result.needed)):
        room = max(_LEAST, screen.width - gate.LABEL - 12)
        texts = (f"rule {rule.rule:<3} {cut(rule.text, room, screen)}" for rule in rules)
        yield from (gate.fact(name, text, screen) for name, text in under(label, texts))
    yield from gate.facts(result.decided, screen)
    yield gate.following(gate.next_commands(result.decided), screen)


CHANGES: Final = {
    "added": ("+", Style.ACCEPTED),
    "removed": ("-", Style.REJECTED),
    "changed": ("~", Style.REVERTED),
    "moved": (">", Style.FAINT),
}
"""What happened to rules, in the order in which they are counted: its sign and colour."""
_SPACE = 2
_NARROWEST = 24  # columns of a rule's text, however narrow the terminal is
_BY_KIND: dict[str, str] = {EventKind.RUN_STARTED: "seed", EventKind.EDITED: "by hand", EventKind.REVERTED: "restore"}


def change_lines(diff: RulesDiffed, screen: Screen) -> Iterator[str]:
    yield headline(diff.a, diff.b, screen)
    files = list(dict.fromkeys(row.file for row in diff.rows))
    for file in files:
        yield ""
        if len(files) > 1:
            yield screen.paint(Style.STRONG, file)
        yield from _changes([row for row in diff.rows if row.file == file], diff, screen)
    yield ""
    yield sums(diff, screen)
    yield from (screen.paint(Style.FAINT, note) for note in _notes(diff))


def sums(diff: RulesDiffed, screen: Screen) -> str:
    counts = [(sum(row.change == change for row in diff.rows), change) for change in CHANGES]
    parts = [f"{count} {change}" for count, change in counts if count or change in {"added", "removed"}]
    return f"rules: {f' {screen.glyphs.dot} '.join([*parts, f'{diff.kept} kept'])}"


def _changes(rows: Sequence[RuleChange], diff: RulesDiffed, screen: Screen) -> Iterator[str]:
    marks = [CHANGES[row.change] for row in rows]
    fronts = [
        (screen.paint(style, sign), _label(row, diff), _step(row))
        for (sign, style), row in zip(marks, rows, strict=True)
    ]
    support = [f"support {row.support} {row.source}" if row.support is not None else row.source for row in rows]
    backs = [(text, numbers.delta(row.gain)) for text, row in zip(support, rows, strict=True)]
    before, after = _sizes(fronts), _sizes(backs)
    indent = sum(size + _SPACE for size in before if size) - 1
    room = screen.width - indent - sum(size + _SPACE for size in after) if screen.width else 0
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
        lead = pad(f"{sign} {(' ' * _SPACE).join(cells)}", indent)
        ends = [pad(cell, size, right=number == 1) for number, (cell, size) in enumerate(zip(own, after, strict=True))]
        yield f"{lead}{(' ' * _SPACE).join([pad(text[0], room), *ends])}".rstrip()
        yield from (f"{' ' * indent}{line}" for line in text[1:] if line)


def _sizes(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, cells)) for cells in zip(*rows, strict=True)]


def _text(row: RuleChange, room: int, screen: Screen) -> Iterator[str]:
    yield from wrap(row.text, room)
    if row.before:
        yield from (screen.paint(Style.FAINT, line) for line in wrap(f"was: {row.before}", room))


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


def _notes(diff: RulesDiffed) -> Iterator[str]:
    if any(row.change == "removed" and row.deed == "brought" for row in diff.rows):
        yield "a - line bears what brought the rule, since the second side was not made from the first"
    if any(row.change == "added" and row.deed == "removed" for row in diff.rows):
        yield "a + line bears what removed the rule, since the first side was made from the second"
