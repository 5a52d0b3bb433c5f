"""One item: its question, every attempt at it, a trajectory, and the version that fixed or broke it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.app.recorded.item_history import ItemOutcome
from skillgit.app.workspace.workspace import Absence, measure
from skillgit.domain.asked_question import marked_question
from skillgit.view import numbers
from skillgit.view.json_values import picked
from skillgit.view.log import line as log_line
from skillgit.view.score_tables import sign
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, fit, inert, one_line, pad, width, wrap

if TYPE_CHECKING:
    from skillgit.app.history.bisect import Bisected, Flip
    from skillgit.app.history.item import Attempt, ItemStory, ItemTrajectory


_HEAD, _TAIL = 200, 400
_ANSWER = 28
_MOST = 12  # names that a list of them shows


def lines(story: ItemStory, screen: Screen) -> Iterator[str]:
    kind = f"  {screen.paint(Style.FAINT, story.task_type)}" if story.task_type else ""
    yield f"{screen.paint(Style.STRONG, story.item)}{kind}  {screen.paint(Style.FAINT, f'run {story.run}')}"
    if story.question:
        yield from wrap(excerpt(story.question), min(screen.width, 100), "  ")
    yield ""
    yield from _attempts(story, screen)
    yield ""
    yield from _sums(story, screen)


def records(story: ItemStory) -> Iterator[dict[str, object]]:
    """Yield the attempts for machine formats; scores are absent where one was not measured or failed to evaluate."""
    for attempt in story.attempts:
        cell = attempt.outcome or ItemOutcome(hard=None, soft=None, value=None, measured=False)
        yield {
            **picked(attempt, "name commit version"),
            **picked(cell, "hard soft failed measured noted"),
            **picked(attempt, "answer feedback trajectory title absence told"),
        }


def trajectory(record: ItemTrajectory, screen: Screen) -> Iterator[str]:
    attempt = record.attempt
    mark = sign(attempt.outcome, screen)
    title = screen.paint(Style.FAINT, attempt.title)
    yield f"{screen.paint(Style.STRONG, record.item)}  {attempt.name}  {mark}  {title}"
    for turn in record.turns:
        yield ""
        yield screen.paint(Style.REF, turn.role)
        yield from turn.text.splitlines()
    yield ""
    yield f"{screen.paint(Style.FAINT, 'answer')}    {attempt.answer or 'none'}"
    yield f"{screen.paint(Style.FAINT, 'feedback')}  {attempt.feedback or 'none'}"


def excerpt(text: str) -> str:
    """Return the beginning and the end of a prompt; the question is at one of them."""
    flat = " ".join(text.split())
    if len(flat) <= _HEAD + _TAIL:
        return flat
    return f"{flat[:_HEAD].rstrip()} … {flat[-_TAIL:].lstrip()}"


def asked(text: str) -> str:
    """Return on one line what a prompt asks, without the passages and tables around it, for lists of items."""
    question = marked_question(text)
    return one_line(question) if question else excerpt(inert(text))


def _some(names: Sequence[str]) -> str:
    prefix = f"{len(names) - _MOST} older, " if len(names) > _MOST else ""
    return f"{prefix}{', '.join(names[-_MOST:])}"


def _attempts(story: ItemStory, screen: Screen) -> Iterator[str]:
    attempts = [attempt for attempt in story.attempts if attempt.outcome is not None or attempt.told]
    names = max((width(attempt.name) for attempt in attempts), default=0)
    answers = min(_ANSWER, max((width(_quoted(attempt)) for attempt in attempts), default=0))
    before: tuple[str, str] | None = None
    for attempt in attempts:
        reply = (attempt.answer, attempt.feedback)
        again = reply == before and any(reply) and attempt.outcome is not None
        before = reply
        yield _attempt(attempt, screen, (names, answers), again=again)


def _attempt(attempt: Attempt, screen: Screen, sizes: tuple[int, int], *, again: bool) -> str:
    cell, (names, answers) = attempt.outcome, sizes
    label = pad(attempt.name, names)
    label = screen.paint(Style.REJECTED, label) if attempt.version is None else label
    value = numbers.score(cell.value) if cell is not None and cell.value is not None else ""
    front = f"{label}  {pad(sign(cell, screen, attempt.absence), 3, right=True)}  {value:<5}"
    if again:
        return f"{front}  {screen.paint(Style.FAINT, 'the same answer')}"
    answer = fit(_quoted(attempt), answers, screen.glyphs.ellipsis)
    why = cut(_why(attempt), max(_ANSWER, screen.width - width(front) - answers - 4), screen)
    return f"{front}  {pad(answer, answers)}  {screen.paint(Style.FAINT, why)}".rstrip()


def _why(attempt: Attempt) -> str:
    if attempt.outcome is None and attempt.told is not None:
        return f"its commit message lists it as {attempt.told}"
    return _feedback(attempt)


def _quoted(attempt: Attempt) -> str:
    return " ".join(attempt.answer.split())


def who_solves(story: ItemStory) -> tuple[str, str]:
    """Return which version solved the item first and how many solve it, as two phrases that claim what is known."""
    if story.first:
        first = f"first solved by {story.first}" if story.is_first else f"solved by {story.first} or an earlier version"
    else:
        first = "no version solves it" if story.is_first else "no version is known to solve it"
    suffix = " whose outcome is known" if story.unknown else ""
    return first, f"{story.solved} of {numbers.plural(story.measured, 'version')}{suffix} solve it"


def _without(story: ItemStory, screen: Screen) -> Iterator[str]:
    """Yield under which attempts the item has no outcome, by what happened to it, and what helps."""
    without = [attempt for attempt in story.attempts if attempt.outcome is None]
    for absence in (None, *Absence):
        lacking = [attempt.name for attempt in without if attempt.absence is absence]
        if lacking:
            why = "not measured on it" if absence is None else absence.sentence("these")
            yield screen.paint(Style.FAINT, f"{why}: {_some(lacking)}")
    gap = next((entry for entry in reversed(without) if entry.absence is not None and entry.version is not None), None)
    if gap is not None and gap.absence is not None:
        yield screen.paint(Style.FAINT, gap.absence.remedy(measure(f"{story.run}/{gap.name}")))


def _sums(story: ItemStory, screen: Screen) -> Iterator[str]:
    unknown = "no flips known" if story.unknown else "no flips"
    yield screen.dotted((*who_solves(story), f"flips at {_some(story.flips)}" if story.flips else unknown))
    if story.doubts:
        yield screen.paint(Style.REVERTED, f"noisy: {', '.join(story.doubts)}")
    yield from _without(story, screen)
    if len(story.attempts) < story.every:
        scope = f"the newest {len(story.attempts)} of {story.every}; --all-versions shows every one"
        yield screen.paint(Style.FAINT, scope)
    if any(attempt.trajectory for attempt in story.attempts):
        name = next(attempt.name for attempt in reversed(story.attempts) if attempt.trajectory)
        hint = f"skillgit items {story.run} --item {quote(story.item)} --trajectory {story.run}/{name}"
        yield screen.paint(Style.FAINT, f"next: {hint}")


_MOST_LINES = 24
_MOST_FLIPS = 12


def bisect_lines(result: Bisected, screen: Screen, now: datetime) -> Iterator[str]:
    yield _verdict(result, screen)
    if result.row is not None:
        yield ""
        yield log_line(result.row, screen, now)
        yield from _changed(result, screen)
    yield ""
    yield from _ends(result, screen)
    if len(result.flips) > 1:
        yield ""
        yield f"the outcome flipped {len(result.flips)} times:"
        for flip in result.flips[-_MOST_FLIPS:]:
            change = screen.paint(Style.ACCEPTED if flip.change == "fixed" else Style.REJECTED, flip.change)
            yield f"  {flip.older} {screen.glyphs.arrow} {flip.newer}  {change}"
        if len(result.flips) > _MOST_FLIPS:
            yield screen.paint(Style.FAINT, f"  {len(result.flips) - _MOST_FLIPS} older ones; --json has all")
    yield from _asked(result, screen)


def _verdict(result: Bisected, screen: Screen) -> str:
    item = screen.paint(Style.STRONG, result.item)
    if result.flip is None:
        is_solved = result.newer.outcome is not None and result.newer.outcome.solved
        if result.flips and is_solved:
            return f"both {result.first} and {result.last} solve {item}; it changed in between"
        if result.flips:
            return f"neither {result.first} nor {result.last} solves {item}; it changed in between"
        kind = "known" if result.gaps else "measured"
        return f"{'every' if is_solved else 'no'} {kind} version from {result.first} to {result.last} solves {item}"
    is_fixed = result.flip.change == "fixed"
    did = screen.paint(Style.ACCEPTED if is_fixed else Style.REJECTED, "fixed" if is_fixed else "broke")
    if len(result.suspects) == 1:
        return f"{screen.paint(Style.STRONG, result.suspects[0])} {did} {item}"
    return f"one of {result.suspects[0]} to {result.suspects[-1]} {did} {item}; {_why_open(result, result.flip)}"


def _why_open(result: Bisected, flip: Flip) -> str:
    between = len(result.suspects) - 1
    where = f"{numbers.plural(between, 'version')} between {flip.older} and {flip.newer}"
    if result.absence is None:
        return f"{where} {'was' if between == 1 else 'were'} not measured on it"
    subject = f"{len(result.gaps)} of {where}" if len(result.gaps) < between else where
    return result.absence.sentence(subject)


def _changed(result: Bisected, screen: Screen) -> Iterator[str]:
    for edit in result.edits:
        summary = f"{edit.op.value} {edit.file}, support {edit.support} {edit.source.value}"
        yield f"   {screen.paint(Style.FAINT, summary)}"
    body = [line for line in result.diff.splitlines() if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]
    lines = [line for line in body if line[1:].strip()]
    for line in lines[:_MOST_LINES]:
        style = Style.ACCEPTED if line[0] == "+" else Style.REJECTED
        yield f"   {screen.paint(style, cut(line, screen.width - 3, screen))}"
    if len(lines) > _MOST_LINES:
        more = f"{len(lines) - _MOST_LINES} more; skillgit show {result.run}/{result.suspects[0]}"
        yield screen.paint(Style.FAINT, f"   {more}")


def _ends(result: Bisected, screen: Screen) -> Iterator[str]:
    both = (result.older, result.newer)
    names, answers = max(width(end.name) for end in both), max(width(_quoted(end)) for end in both)
    answers = min(answers, 32)
    for end in both:
        value = end.outcome.value if end.outcome is not None else None
        front = f"{pad(end.name, names)}  {sign(end.outcome, screen)}  {numbers.score(value):<5}"
        answer = pad(fit(_quoted(end), answers, screen.glyphs.ellipsis), answers)
        why = cut(_feedback(end), max(20, screen.width - width(front) - answers - 4), screen)
        yield f"{front}  {answer}  {screen.paint(Style.FAINT, why)}".rstrip()


def _asked(result: Bisected, screen: Screen) -> Iterator[str]:
    if result.basis is not None:
        yield screen.paint(Style.FAINT, f"measured by {one_line(result.basis.sentence)}")
    if result.cost is not None:
        yield ""
        rollouts = f"rolled out {' '.join(result.measured)}" if result.measured else "nothing was missing"
        note = ", noted on refs/notes/skillgit/evals" if result.measured else ""
        yield screen.paint(Style.FAINT, f"{rollouts}{note} {screen.glyphs.dot} {numbers.cost(result.cost, screen)}")
    elif result.flip is not None and len(result.suspects) > 1:
        ends = f"{result.run}/{result.flip.older} {result.run}/{result.flip.newer}"
        yield ""
        if result.told:
            did = "fixed" if result.flip.change == "fixed" else "broke"
            yield f"commit messages say that {', '.join(result.told)} {did} it"
        yield screen.paint(Style.FAINT, f"next: skillgit bisect --item {quote(result.item)} {ends} --measure")


def _feedback(attempt: Attempt) -> str:
    if attempt.outcome is not None and attempt.outcome.noted:
        return "measured after the run; a note tells it"
    return " ".join(attempt.feedback.split())
