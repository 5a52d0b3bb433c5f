"""Titles of patches: a few words for each edit, as long as they fit into a commit's subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit_backends.offline.household import wording as household
from skillgit_backends.offline.household.orders import chores_in
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
    new = _rules(str(edit.get("content", "")))
    if edit.get("op") not in ("delete", "replace"):
        return new or ["general advice"]
    old = _rules(str(edit.get("anchor", "")))
    gone = [f"no longer {label}" for label in old if label not in new]
    return [*gone, *(f"reword: {label}" if label in old else label for label in new)]


def _rules(text: str) -> list[str]:
    """Return the labels of the rules that ``text`` states: those of a household, else those of a reader."""
    chores = household.in_order(chores_in(text))
    return [household.LABELS[chore] for chore in chores] or [LABELS[habit] for habit in known(habits_in(text))]


def _joined(phrases: Iterable[str], otherwise: str) -> str:
    title = ""
    for phrase in dict.fromkeys(phrases):
        longer = f"{title}, {phrase}" if title else phrase
        if len(longer) > LENGTH:
            break
        title = longer
    return title or otherwise
