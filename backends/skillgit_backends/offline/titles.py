"""Titles of patches: a few words for each edit, as long as they fit into a commit's subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit_backends.offline.instructions import habits_in
from skillgit_backends.offline.proposals import LABELS, known

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillgit_backends.offline.habits import Habit

LENGTH = 60
"""The most characters that the prompts allow."""


def title_of(habits: Sequence[Habit], otherwise: str = "small changes") -> str:
    """Return a title for rules that ask for ``habits``."""
    return _joined((LABELS[habit] for habit in habits), otherwise)


def title_of_edits(edits: Iterable[Mapping[str, object]], otherwise: str = "small changes") -> str:
    """Return a title that tells rules added from rules reworded and rules taken back."""
    return _joined((phrase for edit in edits for phrase in _phrases(edit)), otherwise)


def _phrases(edit: Mapping[str, object]) -> list[str]:
    new = known(habits_in(str(edit.get("content", ""))))
    if edit.get("op") not in ("delete", "replace"):
        return [LABELS[habit] for habit in new] or ["general advice"]
    old = known(habits_in(str(edit.get("anchor", ""))))
    gone = [f"no longer {LABELS[habit]}" for habit in old if habit not in new]
    return [*gone, *(f"reword: {LABELS[habit]}" if habit in old else LABELS[habit] for habit in new)]


def _joined(phrases: Iterable[str], otherwise: str) -> str:
    title = ""
    for phrase in dict.fromkeys(phrases):
        longer = f"{title}, {phrase}" if title else phrase
        if len(longer) > LENGTH:
            break
        title = longer
    return title or otherwise
