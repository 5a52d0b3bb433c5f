"""What a reader may be told to do, and the set of such habits that a skill switches on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.offline.question import Wanted


class Habit(StrEnum):
    """One behaviour of the reader."""

    SPAN = "span"
    """Give the shortest span, not what follows it."""
    TYPE = "type"
    """Match the kind of answer that the question wants."""
    YEAR = "year"
    """Give the year of a date alone."""
    TITLE = "title"
    """Drop ranks and forms of address."""
    REPEAT = "repeat"
    """Prefer what several documents repeat."""
    ECHO = "echo"
    """Pass over words of the question."""
    FULL_NAME = "full-name"
    """Look for the full form of a surname."""
    NUMBER = "number"
    """Give numbers without unit and qualifier."""
    PAREN = "paren"
    """Leave out parentheses."""
    HEDGE = "hedge"
    """Ignore what is denied or told as a rumour."""
    THIS_TITLE = "this-title"
    """Take a document's title as the answer to a "this …" clue."""
    CATEGORY = "category"
    """Leave out the kind of thing that the clue names."""
    ONE_WORD = "one-word"
    """Answer with a single word."""
    ANY_YEAR = "any-year"
    """Answer with a year wherever there is one."""
    FIRST_DOCUMENT = "first-document"
    """Read the first document only."""
    ANY_TITLE = "any-title"
    """Answer with the title of the best document."""
    SENTENCE = "sentence"
    """Answer with the whole sentence."""
    UNKNOWN = "unknown"
    """Answer "unknown" when in doubt."""


HARMFUL = frozenset(
    {Habit.ONE_WORD, Habit.ANY_YEAR, Habit.FIRST_DOCUMENT, Habit.ANY_TITLE, Habit.SENTENCE, Habit.UNKNOWN}
)
"""Habits that generalise too far."""


@dataclass(frozen=True, slots=True)
class Habits:
    """The habits that are on, each with the kinds of answer that it is limited to; an empty set means all kinds."""

    scopes: Mapping[Habit, frozenset[Wanted]] = field(default_factory=dict)

    def on(self, habit: Habit, wanted: Wanted) -> bool:
        """Say whether ``habit`` holds for a question that wants ``wanted``."""
        scope = self.scopes.get(habit)
        return scope is not None and (not scope or wanted in scope)
