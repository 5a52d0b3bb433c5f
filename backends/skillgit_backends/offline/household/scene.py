"""What an agent knows of a house: everything that it has seen so far, put together from the conversation alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit_backends.offline.household.chores import Chore
from skillgit_backends.offline.household.task import Task, task_in

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = r"[a-z]+ \d+"
_ENTITY = re.compile(rf"\b{_NAME}\b")
_AROUND = re.compile(r"looking quickly around you, you see (?P<list>[^\n]*)", re.IGNORECASE)
_ARRIVE = re.compile(rf"You arrive at (?:the )?(?P<place>{_NAME})(?:\. (?:On the|The) (?P<named>{_NAME}))?")
_LIES = re.compile(rf"On the (?P<place>{_NAME}), you see (?P<list>[^\n]*)")
_INSIDE = re.compile(rf"The (?P<place>{_NAME}) is open\. In it, you see (?P<list>[^\n]*)")
_CLOSED = re.compile(rf"The (?P<place>{_NAME}) is closed")
_CLOSE = re.compile(rf"You close the (?P<place>{_NAME})")
_TAKE = re.compile(rf"You pick up the (?P<thing>{_NAME}) from the (?P<place>{_NAME})")
_PUT = re.compile(rf"You (?:put|move) the (?P<thing>{_NAME}) (?:in/on|to|in|on) the (?P<place>{_NAME})")
_TREAT = re.compile(rf"You (?P<verb>clean|heat|cool) the (?P<thing>{_NAME})")
_LIT = re.compile(r"You turn on the ")
NOTHING = "Nothing happens"


def kind(name: str) -> str:
    """Return what kind of thing or place ``mug 2`` is."""
    return name.partition(" ")[0]


@dataclass(slots=True, kw_only=True)
class Scene:
    """What is known.

    Attributes:
        task: The task.
        places: All receptacles, in the order in which the room names them.
        here: Where the agent stands; empty in the middle of the room.
        holding: What it holds; empty if nothing.
        contents: Place to what was last seen in it; only places that were looked into.
        closed: Places that are closed.
        opened: Places that were ever opened.
        visited: Places in the order of the visits, repeated if visited again.
        treated: Objects with what was done to them.
        placed: Objects that were put down, with where.
        lit: Whether a lamp was turned on.
        examined: Places and objects that were examined.
        commands: All commands so far.
        idle: How many of them changed nothing.
        last: What was seen last.
    """

    task: Task
    places: list[str] = field(default_factory=list)
    here: str = ""
    holding: str = ""
    contents: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    visited: list[str] = field(default_factory=list)
    treated: set[tuple[str, Chore]] = field(default_factory=set)
    placed: list[tuple[str, str]] = field(default_factory=list)
    lit: bool = False
    examined: set[str] = field(default_factory=set)
    commands: list[str] = field(default_factory=list)
    idle: int = 0
    last: str = ""

    def where(self, thing: str) -> list[tuple[str, str]]:
        """Return the objects of the kind ``thing`` that were seen and still lie there, with their places."""
        return [(name, place) for place, names in self.contents.items() for name in names if kind(name) == thing]


def scene_of(opening: str, steps: Iterable[tuple[str, str]]) -> Scene | None:
    """Return what is known after ``steps``, pairs of a command and what was seen then; None if there is no task."""
    task = task_in(opening)
    if task is None:
        return None
    around = _AROUND.search(opening)
    scene = Scene(task=task, places=_ENTITY.findall(around.group("list").lower()) if around else [])
    for command, seen in steps:
        scene.commands.append(command)
        scene.idle += seen.startswith(NOTHING)
        scene.last = seen
        if command.startswith("examine ") and not seen.startswith(NOTHING):
            scene.examined.add(command.removeprefix("examine "))
        _see(scene, seen)
        _do(scene, seen)
    return scene


def _see(scene: Scene, seen: str) -> None:
    for match in _ARRIVE.finditer(seen):
        # Older games name a location, "loc 4", and then the place.
        scene.here = match["named"] or match["place"]
        scene.visited.append(scene.here)
    for pattern in (_LIES, _INSIDE):
        for match in pattern.finditer(seen):
            scene.contents[match["place"]] = _ENTITY.findall(match["list"])
            scene.closed.discard(match["place"])
            if pattern is _INSIDE:
                scene.opened.add(match["place"])
    for pattern in (_CLOSED, _CLOSE):
        for match in pattern.finditer(seen):
            scene.closed.add(match["place"])


def _do(scene: Scene, seen: str) -> None:
    if match := _TAKE.search(seen):
        scene.holding = match["thing"]
        lying = scene.contents.get(match["place"], [])
        scene.contents[match["place"]] = [name for name in lying if name != scene.holding]
    elif match := _PUT.search(seen):
        scene.holding = ""
        scene.placed.append((match["thing"], match["place"]))
        scene.contents.setdefault(match["place"], []).append(match["thing"])
    elif match := _TREAT.search(seen):
        scene.treated.add((match["thing"], Chore(match["verb"])))
    elif _LIT.search(seen):
        scene.lit = True
