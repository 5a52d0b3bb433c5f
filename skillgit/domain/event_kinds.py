"""The kinds of events, and what holds for all events of a kind; those who read the index have no more than that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Self


class AddressKind(StrEnum):
    """What an address begins with; ``END`` is all of it."""

    VERSION = "v"  # the event that made a version
    REJECTED = "r"  # the candidate that a step proposed and the gate refused
    SKIPPED = "s"  # a step that had no candidate to measure
    REFLECTION = "m"  # the reflection on an epoch, refused or without a candidate
    INTERVENTION = "i"  # what a person asked for and the gate refused
    GUIDANCE = "e"  # the slow update that was proposed at the end of an epoch
    BASELINE = "b"  # the measurement of a version that a person wrote
    END = "end"  # the end of the run


class Branch(Enum):
    """The branches of a run, on which commits of its events are."""

    LINE = "its accepted line"
    SIDE = "one for each candidate that was refused"
    SLOW = "the one of slow updates"


class Rank(IntEnum):
    MADE, MEASURED, REJECTED, SKIPPED, META, SLOW, FINISHED, INTERVENED = range(8)


@dataclass(frozen=True, slots=True)
class Traits:
    """What holds for all events of a kind.

    ``address`` is what the number in their address counts, and ``rank`` their place in the history, if they are of the
    step itself: neither a reflection on the epoch nor an intervention.
    """

    address: AddressKind
    rank: Rank
    prefix: str  # how the subject of their commit begins, if nothing in the event says it
    branch: Branch = Branch.LINE
    has_outcomes: bool = False  # whether their evidence holds outcomes of items of the selection split
    keeps_text: bool = False  # whether the skill in their commit is that of the commit before


class EventKind(StrEnum):
    """A kind of event, by the name that it has in trailers and in the index."""

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> Self:
        kind = str.__new__(cls, name)
        kind._value_, kind.meaning = name, meaning
        return kind

    RUN_STARTED = "run-started", "A run begins: version 0 is the seed skill."
    ACCEPTED = "accepted", "A candidate became version `version`."
    REJECTED = "rejected", "A candidate was refused, or the gate could not decide; it is kept on a side branch."
    SKIPPED = (
        "skipped",
        "A step, or the reflection on an epoch, ended without a candidate to measure; `title` says why.",
    )
    SLOW_PROPOSED = "slow-proposed", "The slow update of an epoch: guidance for the skill and memory for the optimizer."
    SLOW_MERGED = (
        "slow-merged",
        "The run's text with the slow region replaced by the guidance of the slow line is version `version`.",
    )
    REVERTED = "reverted", "A version whose text is that of an older one."
    EDITED = "edited", "A person changed the skill with a commit of their own on the run's branch. It has no trailers."
    MEASURED = "measured", "The current version, whose text was unmeasured, got a score to go on from."
    RUN_FINISHED = "run-finished", "A run reached its end."


TRAITS: dict[EventKind, Traits] = {
    EventKind.RUN_STARTED: Traits(AddressKind.VERSION, Rank.MADE, "run", has_outcomes=True, keeps_text=True),
    EventKind.ACCEPTED: Traits(AddressKind.VERSION, Rank.MADE, "skill", has_outcomes=True),
    EventKind.REJECTED: Traits(AddressKind.REJECTED, Rank.REJECTED, "skill", branch=Branch.SIDE, has_outcomes=True),
    EventKind.SKIPPED: Traits(AddressKind.SKIPPED, Rank.SKIPPED, "skip", keeps_text=True),
    EventKind.SLOW_PROPOSED: Traits(AddressKind.GUIDANCE, Rank.SLOW, "slow", branch=Branch.SLOW, has_outcomes=True),
    EventKind.SLOW_MERGED: Traits(AddressKind.VERSION, Rank.MADE, "slow"),
    EventKind.REVERTED: Traits(AddressKind.VERSION, Rank.MADE, "restore", has_outcomes=True),
    EventKind.EDITED: Traits(AddressKind.VERSION, Rank.MADE, "edit"),
    EventKind.MEASURED: Traits(AddressKind.BASELINE, Rank.MEASURED, "measure", has_outcomes=True, keeps_text=True),
    EventKind.RUN_FINISHED: Traits(AddressKind.END, Rank.FINISHED, "run", keeps_text=True),
}
"""What holds for all events of a kind; a test proves that each kind has a row."""
WITH_OUTCOMES = tuple(kind for kind in EventKind if TRAITS[kind].has_outcomes)
"""The events whose evidence holds outcomes of items."""


def made_of(base: int, joined: int | None, current: int) -> tuple[int, ...]:
    """Return the versions that something was made of, where these are not just ``current``, the one before it."""
    if joined is not None:
        return base, joined
    return (base,) if base < current else ()
