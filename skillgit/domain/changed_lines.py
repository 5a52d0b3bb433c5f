"""The difference of two skills as lines, for commit messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.differences import differences
from skillgit.domain.proposal import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.domain.skill import Skill


def changed_lines(old: Skill, new: Skill) -> tuple[Change, ...]:
    """Return the removed and added lines of all text files, in file order; blank lines are left out."""
    return changed_texts(dict(old.text_files()), dict(new.text_files()))


def changed_texts(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the removed and added lines of all files, path to text, in file order; blank lines are left out."""
    changes: list[Change] = []
    for path in sorted(before.keys() | after.keys()):
        changes.extend(_changes(before.get(path, ""), after.get(path, "")))
    return tuple(change for change in changes if change.text)


def _changes(before: str, after: str) -> Iterator[Change]:
    old, new = before.splitlines(), after.splitlines()
    for old_from, old_to, new_from, new_to in differences(old, new):
        yield from (Change(sign="-", text=line) for line in old[old_from:old_to])
        yield from (Change(sign="+", text=line) for line in new[new_from:new_to])
