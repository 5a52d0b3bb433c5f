"""Whether the notes on commits can be read, and are about commits that are here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.store import notes
from skillgit.store.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.repo import Repo

_SHOWN = 40


def note_problems(repo: Repo) -> Iterator[Problem]:
    """Yield what is wrong with the notes of all commits."""
    for commit, lines in notes.read_all(repo).items():
        if not repo.has_object(commit):
            yield Problem(commit=commit, sentence="there is a note on it, and no such commit is here")
        for line in lines:
            if not _is_object(line):
                yield Problem(commit=commit, sentence=f"a line of its note is no JSON object: '{line[:_SHOWN]}'")


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
