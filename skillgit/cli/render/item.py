"""One item: its question, every attempt at it, and a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import fit, pad, width, wrap
from skillgit.cli.render.item_table import sign
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.item import Attempt, ItemStory, ItemTrajectory
    from skillgit.cli.screen import Screen

COLUMNS = ("name", "commit", "hard", "soft", "failed", "measured", "answer", "feedback", "trajectory", "title")
"""The columns of ``items --item --plain``."""

_HEAD, _TAIL = 200, 400
_ANSWER = 28
_MOST = 12
"""Names that a list of them shows."""


def lines(story: ItemStory, screen: Screen) -> Iterator[str]:
    """Yield the history of an item."""
    kind = f"  {screen.paint(Style.FAINT, story.task_type)}" if story.task_type else ""
    yield f"{screen.paint(Style.STRONG, story.item)}{kind}  {screen.paint(Style.FAINT, f'run {story.run}')}"
    yield from _question(story.question, screen)
    yield ""
    yield from _attempts(story, screen)
    yield ""
    yield from _sums(story, screen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One attempt in machine formats; scores are absent where it was not measured or failed to evaluate."""

    name: str
    commit: str
    version: int | None
    hard: float | None
    soft: float | None
    failed: str
    measured: bool
    noted: bool
    answer: str
    feedback: str
    trajectory: str
    title: str


def records(story: ItemStory) -> list[Record]:
    """Return the attempts for machine formats."""
    return [
        Record(
            name=attempt.name,
            commit=attempt.commit,
            version=attempt.version,
            hard=cell.hard if cell is not None else None,
            soft=cell.soft if cell is not None else None,
            failed=cell.failed if cell is not None else "",
            measured=cell is not None and cell.measured,
            noted=cell is not None and cell.noted,
            answer=attempt.answer,
            feedback=attempt.feedback,
            trajectory=attempt.trajectory,
            title=attempt.title,
        )
        for attempt in story.attempts
        for cell in (attempt.outcome,)
    ]


def trajectory(found: ItemTrajectory, screen: Screen) -> Iterator[str]:
    """Yield what happened on an item, turn by turn, as it was recorded."""
    attempt = found.attempt
    mark = sign(attempt.outcome, screen)
    title = screen.paint(Style.FAINT, attempt.title)
    yield f"{screen.paint(Style.STRONG, found.item)}  {attempt.name}  {mark}  {title}"
    for turn in found.turns:
        yield ""
        yield screen.paint(Style.REF, turn.role)
        yield from turn.content.splitlines()
    yield ""
    yield f"{screen.paint(Style.FAINT, 'answer')}    {attempt.answer or 'none'}"
    yield f"{screen.paint(Style.FAINT, 'feedback')}  {attempt.feedback or 'none'}"


def excerpt(text: str) -> str:
    """Return the beginning and the end of a prompt; the question stands at one of them."""
    flat = " ".join(text.split())
    if len(flat) <= _HEAD + _TAIL:
        return flat
    return f"{flat[:_HEAD].rstrip()} … {flat[-_TAIL:].lstrip()}"


def _question(question: str, screen: Screen) -> Iterator[str]:
    if question:
        yield from wrap(excerpt(question), min(screen.width, 100) if screen.width else 0, "  ")


def _some(names: Sequence[str]) -> str:
    """Return the newest few of ``names``."""
    left = f"{len(names) - _MOST} older, " if len(names) > _MOST else ""
    return f"{left}{', '.join(names[-_MOST:])}"


def _attempts(story: ItemStory, screen: Screen) -> Iterator[str]:
    known = [attempt for attempt in story.attempts if attempt.outcome is not None]
    names = max((width(attempt.name) for attempt in known), default=0)
    answers = min(_ANSWER, max((width(_quoted(attempt)) for attempt in known), default=0))
    before: tuple[str, str] | None = None
    for attempt in known:
        told = (attempt.answer, attempt.feedback)
        again = told == before and any(told)
        before = told
        yield _attempt(attempt, screen, (names, answers), again=again)


def _attempt(attempt: Attempt, screen: Screen, sizes: tuple[int, int], *, again: bool) -> str:
    cell, (names, answers) = attempt.outcome, sizes
    label = pad(attempt.name, names)
    label = screen.paint(Style.REJECTED, label) if attempt.version is None else label
    value = words.score(cell.value) if cell is not None and cell.value is not None else ""
    front = f"{label}  {pad(sign(cell, screen), 3, right=True)}  {value:<5}"
    if again:
        return f"{front}  {screen.paint(Style.FAINT, 'the same answer')}"
    room = max(_ANSWER, screen.width - width(front) - answers - 4) if screen.width else 0
    answer = fit(_quoted(attempt), answers, screen.glyphs.ellipsis)
    why = _why(attempt)
    why = fit(why, room, screen.glyphs.ellipsis) if room else why
    return f"{front}  {pad(answer, answers)}  {screen.paint(Style.FAINT, why)}".rstrip()


def _why(attempt: Attempt) -> str:
    if attempt.outcome is not None and attempt.outcome.noted:
        return "measured after the run; a note tells it"
    return " ".join(attempt.feedback.split())


def _quoted(attempt: Attempt) -> str:
    return " ".join(attempt.answer.split())


def _sums(story: ItemStory, screen: Screen) -> Iterator[str]:
    dot = f" {screen.glyphs.dot} "
    first = f"first solved by {story.first}" if story.first else "no version solves it"
    flips = f"flips at {_some(story.flips)}" if story.flips else "no flips"
    yield dot.join((first, f"{story.solved} of {words.plural(story.measured, 'version')} solve it", flips))
    if story.doubts:
        yield screen.paint(Style.REVERTED, f"noisy: {', '.join(story.doubts)}")
    without = [attempt.name for attempt in story.attempts if attempt.outcome is None]
    if without:
        yield screen.paint(Style.FAINT, f"not measured on it: {_some(without)}")
    if len(story.attempts) < story.every:
        yield screen.paint(
            Style.FAINT, f"the newest {len(story.attempts)} of {story.every}; --all-versions shows every one"
        )
    if any(attempt.trajectory for attempt in story.attempts):
        shown = next(attempt.name for attempt in reversed(story.attempts) if attempt.trajectory)
        hint = f"skillgit items {story.run} --item {story.item} --trajectory {story.run}/{shown}"
        yield screen.paint(Style.FAINT, f"next: {hint}")
