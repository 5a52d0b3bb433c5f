"""``fsck``: control, direction and invisible characters in the text files of a run's versions and candidates.

Cleaning keeps them out of what models write. A seed or an edit of a person may hold them, and so may the history of a
stranger: none of it is what it looks like in a terminal or an editor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.untrusted.hidden import hidden_characters
from skillgit.store.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo


def text_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[Problem]:
    """Yield which files hold hidden characters, each with the first of ``records`` that has it."""
    seen = set[str]()
    for record in records:
        try:
            folder = repo.commit(record.commit).tree[record.event.skill]
            for path, content in _new_files(folder, seen):
                if hidden := hidden_characters(path, content):
                    yield Problem(commit=record.commit, sentence=hidden.sentence, remark=True)
        except (pygit2.GitError, KeyError):
            continue  # what is missing or damaged is reported where objects are checked


def _new_files(entry: pygit2.Object, seen: set[str], path: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the files of ``entry`` that are not in ``seen``, which is added to."""
    if str(entry.id) in seen:
        return
    seen.add(str(entry.id))
    if isinstance(entry, pygit2.Tree):
        for inner in entry:
            if isinstance(inner, pygit2.Tree | pygit2.Blob):
                yield from _new_files(inner, seen, f"{path}/{inner.name}" if path else str(inner.name))
    elif isinstance(entry, pygit2.Blob):
        yield path, entry.data
