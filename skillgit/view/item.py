"""One item: its question, every attempt at it, a trajectory, and the version that fixed or broke it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise, takewhile, zip_longest
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from skillgit.app.workspace.workspace import Absence, measure
from skillgit.lazy import loaded_on_use
from skillgit.view import numbers
from skillgit.view.items import excerpt
from skillgit.view.json_values import picked
from skillgit.view.log import line as log_line
from skillgit.view.score_tables import sign
from skillgit.view.surface import Screen, Style
from skillgit.view.table import Cell, Column, Table
from skillgit.view.text import cut, fit, one_line, pad, width, wrap

with loaded_on_use():
    from skillgit.app.recorded import outcomes

if TYPE_CHECKING:
    from skillgit.app.history.bisect import Bisected
    from skillgit.app.history.item import Attempt, ItemStory, ItemTrajectory
    from skillgit.domain.trajectory import ToolUse, Turn


ATTEMPTS: Final[Table[Mapping[str, object]]] = Table(
    "item/1",
    "attempts",
    "name commit hard soft failed measured answer feedback trajectory title",
    head="run metric item task_type question first flips solved measured doubts every is_first unknown",
)
_ANSWER = 28
_OUTCOME = 12  # columns of an outcome and its score
_MOST = 12  # names that a list of them shows


def lines(story: ItemStory, screen: Screen) -> Iterator[str]:
    kind = f"  {screen.paint(Style.FAINT, story.task_type)}" if story.task_type else ""
    yield f"{screen.paint(Style.STRONG, story.item)}{kind}  {screen.paint(Style.FAINT, f'run {story.run}')}"
    if story.question:
        yield from wrap(excerpt(story.question), min(screen.width, 100), "  ")
    yield ""
    yield from _attempts([attempt for attempt in story.attempts if attempt.outcome or attempt.told], screen)
    yield ""
    unknown = "no flips known" if story.unknown else "no flips"
    yield screen.dotted((*who_solves(story), f"flips at {_some(story.flips)}" if story.flips else unknown))
    if story.doubts:
        yield screen.paint(Style.REVERTED, f"noisy: {', '.join(story.doubts)}")
    # under which attempts the item has no outcome, by what happened to it, and what helps
    without = [attempt for attempt in story.attempts if attempt.outcome is None]
    for absence in (None, *Absence):
        lacking = [attempt.name for attempt in without if attempt.absence is absence]
        if lacking:
            why = "not measured on it" if absence is None else absence.sentence("these")
            yield screen.paint(Style.FAINT, f"{why}: {_some(lacking)}")
    gap = next((entry for entry in reversed(without) if entry.absence is not None and entry.version is not None), None)
    if gap is not None and gap.absence is not None:
        yield screen.paint(Style.FAINT, gap.absence.remedy(measure(f"{story.run}/{gap.name}")))
    if len(story.attempts) < story.every:
        scope = f"the newest {len(story.attempts)} of {story.every}; --all-versions shows every one"
        yield screen.paint(Style.FAINT, scope)
    newest = next((attempt.name for attempt in reversed(story.attempts) if attempt.trajectory), "")
    if newest:
        hint = f"skillgit items {story.run} --item {quote(story.item)} --trajectory {story.run}/{newest}"
        yield screen.paint(Style.FAINT, f"next: {hint}")


def records(story: ItemStory) -> Iterator[dict[str, object]]:
    """Yield the attempts for machine formats; scores are absent where one was not measured or failed to evaluate."""
    for attempt in story.attempts:
        cell = attempt.outcome or outcomes.ItemOutcome(hard=None, soft=None, value=None, measured=False)
        yield {
            **picked(attempt, "name commit version"),
            **picked(cell, "hard soft failed measured noted"),
            **picked(attempt, "answer feedback trajectory title absence told"),
        }


class CallingTurn(NamedTuple):
    """A turn of a conversation, with each tool that it calls and what that brought, if it is recorded."""

    turn: Turn
    calls: Sequence[tuple[ToolUse, Turn | None]]

    @property
    def text(self) -> str:
        """All words of the step, those of its calls and of what they brought included."""
        return "\n".join([self.turn.text, *(brought.text for _, brought in self.calls if brought)])


def steps(turns: Sequence[Turn]) -> Iterator[CallingTurn]:
    """Yield a conversation as a tree: what tools brought belongs to the calls of the turn before, in their order."""
    at = 0
    while at < len(turns):
        turn, at = turns[at], at + 1
        brought = [*takewhile(lambda own: own.role == "tool", turns[at : at + len(turn.tool_calls)])]
        at += len(brought)
        yield CallingTurn(turn, [*zip_longest(turn.tool_calls, brought)])


def shared(conversations: Sequence[Sequence[Turn]]) -> int:
    """Return with how many turns all ``conversations`` begin alike, before the first that the target wrote."""
    prompts = [[*takewhile(lambda turn: turn.role != "assistant", turns)] for turns in conversations]
    alike = takewhile(lambda turns: all(turn == turns[0] for turn in turns), zip(*prompts, strict=False))
    return sum(1 for _ in alike)


def trajectory(record: ItemTrajectory, screen: Screen) -> Iterator[str]:
    attempt = record.attempt
    mark = sign(attempt.outcome, screen)
    title = screen.paint(Style.FAINT, attempt.title)
    yield f"{screen.paint(Style.STRONG, record.item)}  {attempt.name}  {mark}  {title}"
    for step in steps(record.turns):
        yield ""
        yield screen.paint(Style.REF, step.turn.role)
        yield from replace(step.turn, tool_calls=()).text.splitlines()
        for call, brought in step.calls:
            yield f"  {screen.paint(Style.REF, call.name)} {one_line(call.arguments)}"
            yield from (f"    {line}" for line in (brought.text.splitlines() if brought else ()))
    yield ""
    yield f"{screen.paint(Style.FAINT, 'answer')}    {attempt.answer or 'none'}"
    yield f"{screen.paint(Style.FAINT, 'feedback')}  {attempt.feedback or 'none'}"


def _some(names: Sequence[str]) -> str:
    prefix = f"{len(names) - _MOST} older, " if len(names) > _MOST else ""
    return f"{prefix}{', '.join(names[-_MOST:])}"


def _attempts(attempts: Sequence[Attempt], screen: Screen) -> Iterator[str]:
    """Yield a line for each attempt: outcome, score, answer, and why it got its score."""
    texts = {attempt.name: " ".join(attempt.answer.split()) for attempt in attempts}
    names = max((width(attempt.name) for attempt in attempts), default=0)
    answers = min(_ANSWER, max(map(width, texts.values()), default=0))
    room = max(_ANSWER, screen.width - names - _OUTCOME - answers - 4)
    again = {
        attempt.name
        for before, attempt in pairwise(attempts)
        if (attempt.answer, attempt.feedback) == (before.answer, before.feedback)
        and (attempt.answer or attempt.feedback)
        and attempt.outcome is not None
    }

    def reply(attempt: Attempt) -> str:
        if attempt.name in again:
            return screen.paint(Style.FAINT, "the same answer")
        why = " ".join(attempt.feedback.split())
        if attempt.outcome is None:
            why = f"its commit message lists it as {attempt.told}" if attempt.told else ""
        elif attempt.outcome.noted:
            why = "measured after the run; a note tells it"
        answer = pad(fit(texts[attempt.name], answers, screen.glyphs.ellipsis), answers)
        return f"{answer}  {screen.paint(Style.FAINT, cut(why, room, screen))}"

    columns: tuple[Column[Attempt], ...] = (
        Column("name", head="", show=lambda row: Cell(row.name, Style.REJECTED if row.version is None else None)),
        Column("", head="", show=lambda row: pad(sign(row.outcome, screen, row.absence), 3, right=True)),
        Column("", head="", show=lambda row: numbers.score(row.outcome.value if row.outcome else None), right=True),
        Column("", head="", show=reply),
    )
    yield from Table(columns=columns).lines(attempts, screen)


def who_solves(story: ItemStory) -> tuple[str, str]:
    """Return which version solved the item first and how many solve it, as two phrases that claim what is known."""
    if story.first:
        first = f"first solved by {story.first}" if story.is_first else f"solved by {story.first} or an earlier version"
    else:
        first = "no version solves it" if story.is_first else "no version is known to solve it"
    suffix = " whose outcome is known" if story.unknown else ""
    return first, f"{story.solved} of {numbers.plural(story.measured, 'version')}{suffix} solve it"


_MOST_LINES = 24
_MOST_FLIPS = 12


def bisect_lines(result: Bisected, screen: Screen, now: datetime) -> Iterator[str]:
    """Yield which version fixed or broke the item, what it changed, and the item before and after."""
    yield _verdict(result, screen)
    if result.row is not None:
        yield ""
        yield log_line(result.row, screen, now)
        for edit in result.edits:
            summary = f"{edit.op.value} {edit.file}, support {edit.support} {edit.source.value}"
            yield f"   {screen.paint(Style.FAINT, summary)}"
        body = [line for line in result.diff.splitlines() if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]
        changes = [line for line in body if line[1:].strip()]
        for line in changes[:_MOST_LINES]:
            style = Style.ACCEPTED if line[0] == "+" else Style.REJECTED
            yield f"   {screen.paint(style, cut(line, screen.width - 3, screen))}"
        if len(changes) > _MOST_LINES:
            more = f"{len(changes) - _MOST_LINES} more; skillgit show {result.run}/{result.suspects[0]}"
            yield screen.paint(Style.FAINT, f"   {more}")
    yield ""
    yield from _attempts((result.older, result.newer), screen)
    if len(result.flips) > 1:
        yield ""
        yield f"the outcome flipped {len(result.flips)} times:"
        for flip in result.flips[-_MOST_FLIPS:]:
            change = screen.paint(Style.ACCEPTED if flip.change == "fixed" else Style.REJECTED, flip.change)
            yield f"  {flip.older} {screen.glyphs.arrow} {flip.newer}  {change}"
        if len(result.flips) > _MOST_FLIPS:
            yield screen.paint(Style.FAINT, f"  {len(result.flips) - _MOST_FLIPS} older ones; --json has all")
    if result.basis is not None:
        yield screen.paint(Style.FAINT, f"measured by {one_line(result.basis.sentence)}")
    if result.cost is not None:
        yield ""
        rollouts = f"rolled out {' '.join(result.measured)}" if result.measured else "nothing was missing"
        note = ", noted on refs/notes/skillgit/evals" if result.measured else ""
        yield screen.paint(Style.FAINT, f"{rollouts}{note} {screen.glyphs.dot} {numbers.cost(result.cost, screen)}")
    elif result.flip is not None and len(result.suspects) > 1:
        ends = f"{result.run}/{result.flip.older}..{result.run}/{result.flip.newer}"
        yield ""
        if result.told:
            did = "fixed" if result.flip.change == "fixed" else "broke"
            yield f"commit messages say that {', '.join(result.told)} {did} it"
        yield screen.paint(Style.FAINT, f"next: skillgit items {ends} --item {quote(result.item)} --measure")


def _verdict(result: Bisected, screen: Screen) -> str:
    item, flip = screen.paint(Style.STRONG, result.item), result.flip
    if flip is None:
        is_solved = result.newer.outcome is not None and result.newer.outcome.solved
        if result.flips and is_solved:
            return f"both {result.first} and {result.last} solve {item}; it changed in between"
        if result.flips:
            return f"neither {result.first} nor {result.last} solves {item}; it changed in between"
        kind = "known" if result.gaps else "measured"
        return f"{'every' if is_solved else 'no'} {kind} version from {result.first} to {result.last} solves {item}"
    is_fixed = flip.change == "fixed"
    did = screen.paint(Style.ACCEPTED if is_fixed else Style.REJECTED, "fixed" if is_fixed else "broke")
    if len(result.suspects) == 1:
        return f"{screen.paint(Style.STRONG, result.suspects[0])} {did} {item}"
    between = len(result.suspects) - 1
    where = f"{numbers.plural(between, 'version')} between {flip.older} and {flip.newer}"
    if result.absence is None:
        why = f"{where} {'was' if between == 1 else 'were'} not measured on it"
    else:
        why = result.absence.sentence(f"{len(result.gaps)} of {where}" if len(result.gaps) < between else where)
    return f"one of {result.suspects[0]} to {result.suspects[-1]} {did} {item}; {why}"
