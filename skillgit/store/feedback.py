"""Feedback of people as lines of the notes on commits, beside the evaluations there.

Notes of two repositories are joined line by line, so that a line which is taken out of one comes back with the other.
Therefore feedback is withdrawn by a line of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillgit.domain.feedback import Feedback
from skillgit.domain.untrusted.documents import loads
from skillgit.store import notes, refs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from skillgit.store.repo import Repo

KIND, WITHDRAWN = "feedback", "feedback-withdrawn"


def give(repo: Repo, feedback: Feedback) -> None:
    """Write ``feedback`` on its commit; its time is kept to the second.

    Raises:
        ConcurrentWriteError: Others kept writing notes at the same time.
    """
    line = {"kind": KIND, "text": feedback.text, "author": feedback.author, "time": _stamp(feedback.time)}
    notes.append(repo, {feedback.commit: [line]}, time=feedback.time)


def withdraw(repo: Repo, feedback: Feedback, *, time: datetime) -> None:
    """Write that ``feedback`` does not count any more.

    Raises:
        ConcurrentWriteError: Others kept writing notes at the same time.
    """
    line = {"kind": WITHDRAWN, "feedback": feedback.id, "time": _stamp(time)}
    notes.append(repo, {feedback.commit: [line]}, time=time)


def feedback_in(found: Iterable[tuple[str, str]]) -> tuple[Feedback, ...]:
    """Return the feedback that lines of notes hold and that nobody withdrew, oldest first.

    Args:
        found: Commits, each with a line of its note; lines of other kinds, or damaged ones, are passed over.
    """
    given: dict[str, Feedback] = {}
    withdrawn: set[str] = set()
    for commit, line in found:
        if f'"{KIND}' not in line:
            continue
        value = _read(line)
        if value.get("kind") == WITHDRAWN:
            withdrawn.add(str(value.get("feedback")))
        elif (one := _feedback(commit, value)) is not None:
            given[one.id] = one
    counting = (one for number, one in given.items() if number not in withdrawn)
    return tuple(sorted(counting, key=lambda one: (one.time, one.id)))


def feedback_reader(repo: Repo) -> Callable[[Collection[str]], tuple[Feedback, ...]]:
    """Return what reads the feedback on some commits, whenever it is called; notes are read when they have changed."""
    known: dict[str | None, dict[str, list[str]]] = {}

    def read(commits: Collection[str]) -> tuple[Feedback, ...]:
        tip = repo.tip(refs.NOTES)
        if tip not in known:
            known.clear()
            known[tip] = notes.read_all(repo)
        lines = known[tip]
        return feedback_in((commit, line) for commit in commits for line in lines.get(commit, ()))

    return read


def _feedback(commit: str, value: dict[str, object]) -> Feedback | None:
    text, author = value.get("text"), value.get("author")
    if value.get("kind") != KIND or not isinstance(text, str) or not isinstance(author, str):
        return None
    try:
        time = datetime.fromisoformat(str(value.get("time")))
    except ValueError:
        return None
    return Feedback(commit=commit, text=text, author=author, time=time) if time.tzinfo else None


def _read(line: str) -> dict[str, object]:
    try:
        value = loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
