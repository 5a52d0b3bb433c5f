"""What an agent may be told to do, and the set of such chores that a skill asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Chore(StrEnum):
    """One behaviour of the agent."""

    OPEN = "open"
    """Open what is closed, to look inside and to put things in."""
    CLEAN = "clean"
    """Clean an object at the sink if a clean one is asked for."""
    HEAT = "heat"
    """Heat an object in the microwave if a hot one is asked for."""
    COOL = "cool"
    """Cool an object with the fridge if a cool one is asked for."""
    LAMP = "lamp"
    """Carry an object to the lamp and use it if that is asked for."""
    BOTH = "both"
    """Fetch the second object after the first if two are asked for."""
    LIKELY = "likely"
    """Search where such a thing usually lies before anywhere else."""
    TAKE_ANY = "take-any"
    """Take the first object that is in sight."""
    CHECK = "check"
    """Look at the inventory after every command."""
    CLOSE = "close"
    """Close each receptacle again."""
    EXAMINE = "examine"
    """Examine every place before going on."""
    SURFACES = "surfaces"
    """Search open places only."""
    CLEAN_ALL = "clean-all"
    """Clean every object, asked for or not."""


HARMFUL = frozenset({Chore.TAKE_ANY, Chore.CHECK, Chore.CLOSE, Chore.EXAMINE, Chore.SURFACES, Chore.CLEAN_ALL})
"""Chores that cost steps, or lead astray."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a skill asks for.

    Attributes:
        chores: The chores.
        first: Words for things to the kinds of places where they are to be looked for first.
    """

    chores: frozenset[Chore] = frozenset()
    first: dict[str, tuple[str, ...]] = field(default_factory=dict)
