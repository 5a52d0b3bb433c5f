"""What a generated game is described by, as it is in an item and in the shipped data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

GENERATOR = 1
"""Raised whenever the same recipe makes another game."""
TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The task types of ALFWorld that TextWorld plays."""
ROOMS = ("kitchen", "bathroom", "bedroom", "livingroom")
_HINT = "a recipe has task, room, thing, target (a lamp where the task is to look at something) and seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A game to make.

    Attributes:
        task: One of :data:`TASK_TYPES`.
        room: One of :data:`ROOMS`.
        thing: What the task is about, as ALFRED spells it: ``Mug``.
        target: The receptacle where it shall go, or the lamp to look at it with.
        seed: What lies where depends on this number and nothing else.
    """

    task: str
    room: str
    thing: str
    target: str
    seed: int

    @classmethod
    def parse(cls, row: Mapping[str, object], where: str) -> Recipe:
        """Read a recipe."""
        names = {field.name for field in fields(cls)}
        if set(row) != names:
            raise DataError(f"{where}: a recipe cannot have the fields {', '.join(sorted(row))}", hint=_HINT)
        seed = row["seed"]
        texts = {name: str(row[name]) for name in names - {"seed"}}
        if not isinstance(seed, int) or texts["task"] not in TASK_TYPES or texts["room"] not in ROOMS:
            raise DataError(f"{where}: the recipe's seed, task or room is not one that there is", hint=_HINT)
        return cls(seed=seed, **texts)

    def content(self) -> dict[str, object]:
        return asdict(self)
