"""Items under two versions: which were fixed, which were broken, by type, and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skillgit.domain.asked_question import marked_question
from skillgit.view import numbers
from skillgit.view.surface import UNICODE, Screen, Style
from skillgit.view.table import Cell, Column, Table
from skillgit.view.text import apart, fit, one_line, width

if TYPE_CHECKING:
    from skillgit.app.history.diff.items import Change, ItemChange, ItemDiff, Length
    from skillgit.app.history.item import ItemReply, ItemWords
    from skillgit.app.recorded.outcomes import CheckChange, ItemOutcome
    from skillgit.app.workspace.workspace import Absence
    from skillgit.domain.conditions import Difference
    from skillgit.index.rows import LogRow


NOT_MEASURED = "not measured (the decision was settled)"


class ChangeLook(NamedTuple):
    """How people see what happened to an item."""

    style: Style
    sign: str  # of a Unicode screen; an item that is not solved has none of an item that is
    words: str
    otherwise: str = ""  # the words where more than the text differs, if these are others


LOOKS: Final[dict[Change, ChangeLook]] = {
    "broken": ChangeLook(Style.REJECTED, UNICODE.rejected, "broken", "lower"),
    "lost": ChangeLook(Style.REJECTED, "-", "lost", "lower"),
    "fixed": ChangeLook(Style.ACCEPTED, UNICODE.passed, "fixed", "higher"),
    "gained": ChangeLook(Style.ACCEPTED, "+", "gained", "higher"),
    "not-measured": ChangeLook(Style.FAINT, UNICODE.dot, NOT_MEASURED),
    "missing": ChangeLook(Style.REVERTED, "?", "missing"),
    "fail": ChangeLook(Style.FAINT, UNICODE.rejected, "stable fail"),
    "pass": ChangeLook(Style.FAINT, UNICODE.passed, "stable pass"),
}
"""What happened to items, in the order in which they are listed."""
_RANKS: Final = {change: rank for rank, change in enumerate(LOOKS)}
_HEAD, _TAIL = 200, 400  # characters of a prompt
_ANSWER, _QUESTION, _REPLY = 80, 140, 28  # columns
CHANGED: tuple[Change, ...] = ("fixed", "gained", "broken", "lost")  # in the order in which they are counted


def change_words(differs: Iterable[Difference]) -> dict[Change, str]:
    """Return what happened to items, in words: where more than the text differs, scores are higher or lower."""
    same = not any(difference.matters for difference in differs)
    return {change: look.words if same else look.otherwise or look.words for change, look in LOOKS.items()}


def in_order(rows: Iterable[ItemChange]) -> list[ItemChange]:
    """Return items in the order of :data:`LOOKS`, those to which the same happened by their ids."""
    return sorted(rows, key=lambda row: (_RANKS[row.change], row.item))


def counted(counts: Iterable[tuple[Change, int]], differs: Iterable[Difference], *, all_: bool = True) -> list[str]:
    """Return how many items changed in which way; with ``all_`` also that none was fixed, or none was broken."""
    return [words for words, _ in _grouped(counts, differs, all_=all_)]


def flip_counts(diff: ItemDiff) -> list[tuple[str, str]]:
    """Return likewise for two versions, each count with the group of :data:`FACETS` that has just these, or ''."""
    return list(_grouped(((kind, len(getattr(diff, kind))) for kind in CHANGED), diff.differs, all_=True))


def _grouped(
    counts: Iterable[tuple[Change, int]], differs: Iterable[Difference], *, all_: bool
) -> Iterator[tuple[str, str]]:
    labels = change_words(differs)
    sums: dict[str, Counter[Change]] = {}
    for change, count in counts:
        sums.setdefault(labels[change], Counter())[change] = count
    for word, own in sums.items():
        kinds = [kind for kind, count in own.items() if count]
        if kinds or (all_ and word in {labels["fixed"], labels["broken"]}):
            yield f"{own.total()} {word}", kinds[0] if len(kinds) == 1 else ""


def differing(differs: Iterable[Difference], screen: Screen) -> Iterator[str]:
    for difference in differs:
        yield screen.paint(Style.REVERTED if difference.matters else Style.FAINT, f"! {one_line(difference.sentence)}")


def name(row: LogRow | None) -> str:
    return "commit" if row is None else row.label


def headline(a: LogRow | None, b: LogRow | None, screen: Screen, diff: ItemDiff | None = None) -> str:
    """Return the two sides with their scores, as ``v3 → v7   demo   hard .6000 24/40 → .7250 29/40 (+.1250)``."""
    across = a is not None and b is not None and a.run != b.run
    first, second = (f"{row.run}/{name(row)}" if row is not None and across else name(row) for row in (a, b))
    run = next((row.run for row in (b, a) if row is not None), "")
    sides = screen.paint(Style.STRONG, f"{first} {screen.glyphs.arrow} {second}")
    metric, counts = (diff.metric, solved(diff)) if diff else ("", ("", ""))
    parts = [sides, "" if across else run, f"{metric} {change(a, b, screen, counts)}".strip()]
    return "   ".join(part for part in parts if part)


def solved(diff: ItemDiff) -> tuple[str, str]:
    """Return how many items both sides solve, each as ``24/40``; empty where that is not known."""
    before, after = diff.solved or (None, None)
    return numbers.solved(before, len(diff.rows)), numbers.solved(after, len(diff.rows))


def change(a: LogRow | None, b: LogRow | None, screen: Screen, counts: tuple[str, str] = ("", "")) -> str:
    """Return two scores and their difference: ``.6000 → .7250 (+.1250)``; a bound bears ``≤``."""
    if a is None or b is None or a.known is None or b.known is None:
        return "without a score on both sides"
    before, after = (numbers.known(row.known, screen) + count for row, count in zip((a, b), counts, strict=True))
    text = f"{before} {screen.glyphs.arrow} {after}"
    return text if a.score is None or b.score is None else f"{text} ({numbers.delta(b.score - a.score)})"


def length(size: Length) -> str:
    if size.after is None:
        return "no text"
    text = f"about {size.after:,} tokens"
    return text if size.before is None else f"{text} ({size.after - size.before:+,})"


def flips(diff: ItemDiff, screen: Screen, words: Callable[[Sequence[str], Screen], Mapping[str, str]]) -> Iterator[str]:
    """Yield how two versions differ item by item; ``words`` says what items ask and were answered."""
    yield from differing(diff.differs, screen)
    yield headline(diff.a, diff.b, screen, diff)
    rows = in_order(row for row in diff.rows if row.change in {*CHANGED, "missing"})
    if rows:
        yield ""
        yield from change_lines(rows, words([row.item for row in rows], screen), screen, diff)
    yield from totals(diff, screen)


def totals(diff: ItemDiff, screen: Screen) -> Iterator[str]:
    if len(diff.types) > 1:
        yield ""
        yield from TYPES.lines(diff.types, screen, whole=diff)
    if diff.checks:
        yield ""
        yield from CHECKS.lines(diff.checks, screen, whole=diff)
    yield ""
    yield sums(diff, screen)
    yield screen.dotted((chance_words(diff), length(diff.length)))
    for note in diff.notes:
        yield screen.paint(Style.REVERTED, f"! {note}")


def _change_signs(whole: object) -> Callable[[ItemChange], Cell]:
    words = change_words(getattr(whole, "differs", ()))  # a version and its base differ in the text only
    # where items are not measured, the screens have no room to say why
    return lambda row: Cell(f"{LOOKS[row.change].sign} {words[row.change].partition(' (')[0]}", LOOKS[row.change].style)


CHANGES: Final[Table[ItemChange]] = Table(
    schema="diff-items/1",
    rows="items",
    plain="item task_type before after change",
    head="a b differs metric fixed broken gained lost stable_pass stable_fail not_measured missing p p_worse "
    "too_few types checks length notes",
    columns=(
        Column("change", head="", among=_change_signs),
        Column("item", head=""),
        Column("task_type", head=""),
        Column("before", head="", show=lambda row: _value(row.before), right=True),
        Column("", head="", show=lambda _: UNICODE.arrow),
        Column("after", head="", show=lambda row: _value(row.after), right=True),
    ),
)


def excerpt(text: str) -> str:
    """Return the beginning and the end of a prompt; the question is at one of them."""
    flat = " ".join(text.split())
    if len(flat) <= _HEAD + _TAIL:
        return flat
    return f"{flat[:_HEAD].rstrip()} … {flat[-_TAIL:].lstrip()}"


def asked(text: str) -> str:
    """Return on one line what a prompt asks, without the passages and tables around it."""
    return all_asked([text])[0]


def all_asked(texts: Iterable[str], ellipsis: str = UNICODE.ellipsis) -> list[str]:
    """Return likewise what the prompts of a list ask, without what all of these begin or end with."""
    prompts = [(marked_question(text) if text else "", text) for text in texts]
    lines = apart([one_line(question or text) for question, text in prompts], ellipsis)
    return [line if question else excerpt(line) for (question, _), line in zip(prompts, lines, strict=True)]


class OutcomeMark(NamedTuple):
    """How an outcome looks on a page: the letter of its colour, its sign, and the words that say the same."""

    tone: str
    sign: str
    words: str
    style: Style


_SOLVED = OutcomeMark("s", "✓", "solved", Style.ACCEPTED)
_PARTIAL = OutcomeMark("p", "◐", "partial credit", Style.REJECTED)
_FAILED = OutcomeMark("f", "×", "not solved", Style.REJECTED)  # noqa: RUF001 - a sign
_FAULT = OutcomeMark("e", "!", "failed to evaluate", Style.REVERTED)
_BLANK = OutcomeMark("", "·", "not measured", Style.FAINT)
_UNKNOWN = OutcomeMark("", "?", "evidence not here", Style.FAINT)
MARKS: Final = (_SOLVED, _PARTIAL, _FAILED, _FAULT, _BLANK, _UNKNOWN)


def score_mark(value: float | None, hard: float | None) -> OutcomeMark:
    """Return the mark of an outcome with the score ``value`` under the metric of its run."""
    if value is None or hard is None:
        return _FAULT
    return _SOLVED if hard >= 1 else _PARTIAL if value > 0 else _FAILED


def outcome_mark(outcome: ItemOutcome | None, absence: Absence | None = None) -> OutcomeMark:
    """Return the mark of an item under a text; ``absence`` says why an outcome that it has is not known here."""
    if outcome is None:
        return _BLANK if absence is None else _UNKNOWN
    return score_mark(outcome.value, outcome.hard)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRow:
    """An item under several versions: what each answered, and what the others changed of what the first one scores."""

    item: str
    task_type: str
    question: str = ""  # which takes reading; empty until then
    changes: tuple[Change, ...]
    scores: tuple[float | None, ...]
    answers: tuple[str, ...]  # empty where the evidence is not here
    successes: tuple[bool | None, ...]
    is_flaky: bool

    @property
    def differs(self) -> bool:
        """Whether the outcome or the answer of two versions differs, as far as they are known."""
        pairs = list(zip(self.scores, self.answers, strict=True))
        scores = {score for score, _ in pairs if score is not None}
        return len(scores) > 1 or len({answer for score, answer in pairs if answer and score is not None}) > 1


def outputs(
    pairs: Sequence[Sequence[ItemChange]], replies: Mapping[str, Sequence[ItemReply]], flaky: Collection[str] = ()
) -> Iterator[OutputRow]:
    """Yield the items of ``pairs`` of the first version and another one each, with what the versions answered.

    Those come first that a version broke, as :data:`LOOKS` has it.
    """
    sides, ranks = [{row.item: row for row in rows} for rows in pairs], dict[str, int]()
    for row in chain.from_iterable(pairs):
        ranks[row.item] = min(_RANKS[row.change], ranks.get(row.item, len(_RANKS)))
    for item in sorted(ranks, key=lambda item: (ranks[item], item)):
        rows = [side.get(item) for side in sides]
        present = [row for row in rows if row is not None]
        before = next((row.before for row in present if row.before is not None), None)
        scores = (before, *(row.after if row else None for row in rows))
        own = replies.get(item, ())
        yield OutputRow(
            item=item,
            task_type=present[0].task_type,
            changes=tuple(row.change if row else "missing" for row in rows),
            scores=scores,
            answers=tuple(reply.answer for reply in own) or ("",) * len(scores),
            successes=tuple(
                None if score is None else score >= 1.0 if reply is None or reply.is_solved is None else reply.is_solved
                for score, reply in zip_longest(scores, own)
            ),
            is_flaky=item in flaky,
        )


FACETS: Final[Mapping[str, Callable[[OutputRow], bool]]] = {
    "all": lambda _: True,
    "different": lambda row: row.differs,
    "failing": lambda row: False in row.successes,
    **{change: lambda row, change=change: change in row.changes for change in CHANGED},  # type: ignore[misc]
    "solved by none": lambda row: False in row.successes and True not in row.successes,
    "flaky": lambda row: row.is_flaky,
}
"""Which items people look at, by the words that choose them."""


def output_table(names: Sequence[str], link: Callable[[OutputRow, int], Cell] | None = None) -> Table[OutputRow]:
    """Return the items with outcome and answer of each version of ``names``; ``link`` makes cells that lead on."""

    def shown(row: OutputRow, number: int) -> Cell:
        score, success = row.scores[number], row.successes[number]
        mark = None if score is None else score_mark(score, float(bool(success)))
        part = "" if score in {None, 0.0, 1.0} else f" {numbers.score(score)}"
        text = f"{mark.sign if mark else UNICODE.dot}{part} {fit(one_line(row.answers[number]), _ANSWER)}".rstrip()
        cell = link(row, number) if link else Cell("")
        return replace(cell, text=text, style=mark.style if mark else Style.FAINT)

    runs = {name.rpartition("/")[0] for name in names}
    heads = [name.rpartition("/")[2] if len(runs) == 1 else name for name in names]

    def values(number: int, name: str) -> Iterator[Column[OutputRow]]:
        show, head = (lambda row: shown(row, number)), heads[number]
        yield Column(name, lambda row: row.scores[number], head=head, show=show, key=name)
        yield Column(f"{name} answer", lambda row: row.answers[number])

    def change(number: int, name: str) -> Column[OutputRow]:
        one = len(names[1:]) == 1
        head = "change" if one else f"{heads[0]} {UNICODE.arrow} {heads[number]}"
        key = "change" if one else f"{name} change"
        return Column(key, lambda row: row.changes[number - 1], head=head, key=key, text=True)

    changes = [change(number, name) for number, name in enumerate(names) if number]

    return Table(
        plain="item task_type question change" if len(changes) == 1 else "item task_type question",
        columns=(
            Column("item", head="item", key="item", text=True),
            Column("task_type", head="type", key="type", text=True),
            Column("question", head="question", show=lambda row: fit(row.question, _QUESTION)),
            *chain.from_iterable(values(number, name) for number, name in enumerate(names)),
            *changes,
        ),
        noun="item",
        empty="No item is chosen.",
    )


def said(words: Mapping[str, ItemWords], screen: Screen) -> dict[str, str]:
    """Return on one line what the versions answered to each item, once if it is the same, and what the item asks."""
    questions = all_asked((own.question for own in words.values()), screen.glyphs.ellipsis)
    return {
        item: "  ".join(filter(None, (_answers(own, screen), question)))
        for (item, own), question in zip(words.items(), questions, strict=True)
    }


def _answers(words: ItemWords, screen: Screen) -> str:
    answers = dict.fromkeys(one_line(reply.answer) for reply in words.replies if reply.answer)
    return f" {screen.glyphs.arrow} ".join(fit(answer, _REPLY, screen.glyphs.ellipsis) for answer in answers)


def change_lines(
    rows: Sequence[ItemChange], words: Mapping[str, str], screen: Screen, whole: object = None
) -> Iterator[str]:
    """Yield a line for each item: what happened to it, and in the room that is left what ``words`` say of it."""
    for row, line in zip(rows, CHANGES.lines(rows, screen, whole=whole), strict=False):
        text = screen.encodable(words.get(row.item, ""))
        text = fit(text, screen.width - width(line) - 2, screen.glyphs.ellipsis) if screen.width else text
        yield f"{line}  {screen.paint(Style.FAINT, text)}" if text else line


def _score_changes(
    head: str, name: Callable[[Any], str], counts: Callable[[Any], Iterable[tuple[Change, int]]]
) -> Table[Any]:
    """Return a table of groups of items, called ``name``, with their mean scores under two versions."""

    def flips(whole: object) -> Callable[[Any], str]:
        differs = getattr(whole, "differs", ())
        return lambda row: ", ".join(counted(counts(row), differs, all_=False))

    return Table(
        columns=(
            Column("", head=head, show=name),
            Column("n", head="items", right=True),
            Column("before", head="before", right=True),
            Column("", head="", show=lambda row: "" if row.before is None else UNICODE.arrow),
            Column("after", head="after", right=True),
            Column("", head="", show=lambda row: _difference(row.before, row.after), right=True),
            Column("", head="flips", among=flips),
        )
    )


def _difference(before: float | None, after: float) -> str:
    return numbers.delta(after - before) if before is not None and after != before else ""


TYPES: Final = _score_changes(
    "type", lambda row: row.task_type or "none", lambda row: [(kind, getattr(row, kind)) for kind in CHANGED]
)
CHECKS: Final = _score_changes(
    "check", lambda row: one_line(row.check), lambda row: [("fixed", row.fixes), ("broken", row.breaks)]
)


def check_scores(row: CheckChange, screen: Screen) -> str:
    """Return the mean score of a check before, an arrow, the one after, and the difference."""
    before = (numbers.score(row.before), screen.glyphs.arrow) if row.before is not None else ()
    return " ".join(filter(None, (*before, numbers.score(row.after), _difference(row.before, row.after))))


def _value(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.0f}" if value in {0.0, 1.0} else numbers.score(value)


def sums(diff: ItemDiff, screen: Screen, examples: int = 0) -> str:
    """Return how many items were fixed and broken, at most ``examples`` of each by name, and how many stayed."""
    labels, groups = change_words(diff.differs), dict[str, tuple[Style, list[str]]]()
    for kind in CHANGED:
        groups.setdefault(labels[kind], (LOOKS[kind].style, []))[1].extend(getattr(diff, kind))
    parts = []
    for label, (style, names) in groups.items():
        if names or label in {labels["fixed"], labels["broken"]}:
            more = f" {screen.glyphs.ellipsis}" if len(names) > examples else ""
            phrase = screen.paint(Style.FAINT, f" ({one_line(' '.join(names[:examples]))}{more})")
            count = f"{len(names)} {label}"
            parts.append((screen.paint(style, count) if names else count) + (phrase if names and examples else ""))
    return screen.dotted([*parts, *unchanged(diff, screen)])


def unchanged(diff: ItemDiff, screen: Screen) -> Iterator[str]:
    """Yield how many items stayed as they were, and how many cannot be compared."""
    yield from (f"{len(diff.stable_pass)} stable pass", f"{len(diff.stable_fail)} stable fail")
    if diff.not_measured:
        yield screen.paint(Style.FAINT, f"{len(diff.not_measured)} of {len(diff.rows)} {NOT_MEASURED}")
    if diff.missing:
        yield screen.paint(Style.REVERTED, f"{len(diff.missing)} missing")


def chance_words(diff: ItemDiff) -> str:
    """Return what the paired test says, in the direction in which the items changed."""
    if diff.p is None or diff.p_worse is None:
        return "no test: more than the text differs"
    if not diff.moved:
        scope = f" among the {len(diff.stable_pass) + len(diff.stable_fail)} measured" if diff.not_measured else ""
        return f"no item changed{scope}"
    test = "sign test" if diff.metric == "hard" else "sign-flip test"
    worse = diff.p_worse < diff.p
    few = f"; {diff.too_few}" if diff.too_few else ""
    return f"{test} {numbers.chance(diff.p_worse if worse else diff.p)} for a {'loss' if worse else 'gain'}{few}"
