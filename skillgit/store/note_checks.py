"""Whether the notes on commits can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.untrusted.documents import loads
from skillgit.errors import SkillgitError
from skillgit.store import notes, refs
from skillgit.store.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.repo import Repo

_SHOWN = 40


def note_problems(repo: Repo) -> Iterator[Problem]:
    """Yield what is wrong with the notes of all commits.

    A commit that is not here is no fault: ``gate`` notes what it measured on the head of a pull request, whose branch
    is never pushed, or deleted after the merge, and the note travels all the same.
    """
    try:
        told = notes.read_all(repo)
    except SkillgitError as error:
        yield Problem(commit="", sentence=f"{refs.short(refs.NOTES)} cannot be read: {error.message}")
        return
    for commit, lines in told.items():
        for line in lines:
            if not _is_object(line):
                yield Problem(commit=commit, sentence=f"a line of its note is no JSON object: '{line[:_SHOWN]}'")


def _is_object(line: str) -> bool:
    try:
        return isinstance(loads(line), dict)
    except (ValueError, RecursionError):
        return False
