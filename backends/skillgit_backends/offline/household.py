"""A household game as its player knows it: the task, where things usually lie, and everything that was seen so far."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit_backends.offline.rules import Chore
from skillgit_backends.offline.text import word_set

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING = "Nothing happens"
_FIRST_SENTENCE = re.compile(r"your task is to:\s*(?P<task>[^\n]+)", re.IGNORECASE)
_THING_AND_TARGET = 2
_SMALL = word_set("put find place move take at a an the some it them and in on in/on into onto to under with by using")
_CHORES = {
    **dict.fromkeys(("clean", "wash"), Chore.CLEAN),
    **dict.fromkeys(("hot", "warm", "heated", "heat"), Chore.HEAT),
    **dict.fromkeys(("cool", "cold", "cooled", "chill"), Chore.COOL),
    **dict.fromkeys(("look", "examine"), Chore.LAMP),
    "two": Chore.BOTH,
}
APPLIANCES = {Chore.CLEAN: "sinkbasin", Chore.HEAT: "microwave", Chore.COOL: "fridge"}
"""Where an object is treated."""

_KITCHEN = "countertop diningtable cabinet shelf sinkbasin fridge microwave coffeemachine drawer stoveburner garbagecan"
_BATHROOM = "toilet sinkbasin countertop cabinet handtowelholder shelf drawer garbagecan bathtubbasin"
_LIVING_ROOM = "desk sidetable dresser coffeetable shelf bed sofa armchair ottoman cabinet drawer garbagecan safe"
HOMES = {
    thing: places.split()
    for places, things in (
        ("fridge countertop diningtable sinkbasin garbagecan microwave", "apple bread egg lettuce potato tomato"),
        (_KITCHEN, "bowl cup mug plate glassbottle winebottle butterknife fork knife ladle spatula spoon"),
        ("stoveburner " + _KITCHEN, "kettle pan pot"),
        (_KITCHEN, "peppershaker saltshaker"),
        (_BATHROOM, "cloth handtowel soapbar soapbottle spraybottle toiletpaper tissuebox dishsponge"),
        (_LIVING_ROOM, "cellphone creditcard keychain remotecontrol watch book laptop newspaper alarmclock cd pen"),
        (_LIVING_ROOM, "pencil statue vase candle desklamp"),
        ("bed sofa armchair ottoman", "pillow"),
    )
    for thing in things.split()
}
"""The kinds of places where a kind of thing usually lies, the likeliest first."""

_NAME = r"[a-z]+ \d+"
_ENTITY = re.compile(rf"\b{_NAME}\b")
_AROUND = re.compile(r"looking quickly around you, you see (?P<list>[^\n]*)", re.IGNORECASE)
_ARRIVE = re.compile(rf"You arrive at (?:the )?(?P<place>{_NAME})(?:\. (?:On the|The) (?P<named>{_NAME}))?")
_LIES = re.compile(rf"On the (?P<place>{_NAME}), you see (?P<list>[^\n]*)")
_INSIDE = re.compile(rf"The (?P<place>{_NAME}) is open\. In it, you see (?P<list>[^\n]*)")
_CLOSED = re.compile(rf"(?:The (?P<place>{_NAME}) is closed|You close the (?P<shut>{_NAME}))")
_TAKE = re.compile(rf"You pick up the (?P<thing>{_NAME}) from the (?P<place>{_NAME})")
_DROP = re.compile(rf"You (?:put|move) the (?P<thing>{_NAME}) (?:in/on|to|in|on) the (?P<place>{_NAME})")
_TREATED = re.compile(rf"You (?P<verb>clean|heat|cool) the (?P<thing>{_NAME})")


@dataclass(frozen=True, slots=True)
class Errand:
    """A task.

    Attributes:
        thing: The kind of object that it is about; empty if the sentence is not understood.
        target: The kind of receptacle where it shall go, or the kind of lamp.
        chore: What has to be done besides bringing it; None if nothing.
    """

    thing: str
    target: str
    chore: Chore | None = None


def task_in(text: str) -> Errand | None:
    """Return the task that ``text`` states; None if it states none."""
    opening = _FIRST_SENTENCE.search(text)
    if opening is None:
        return None
    words = [word for word in opening["task"].lower().strip(" .").split() if word not in _SMALL]
    names = [word for word in words if word not in _CHORES]
    if len(names) != _THING_AND_TARGET:
        return Errand("", "")
    thing, target = names
    return Errand(thing, target, next((_CHORES[word] for word in words if word in _CHORES), None))


def kind(name: str) -> str:
    """Return what kind of thing or place ``mug 2`` is."""
    return name.partition(" ")[0]


def rank(thing: str, spot: str) -> int:
    """Return how early ``spot`` is to be searched for ``thing``; unlikely places come after all likely ones."""
    homes = HOMES.get(thing, [])
    return homes.index(spot) if spot in homes else len(homes)


@dataclass(slots=True, kw_only=True)
class Scene:
    """What is known of a house.

    Attributes:
        steps: Commands so far, each with what was seen then.
        places: All receptacles, in the order in which the room names them.
        here: The place before the player; empty in the middle of the room.
        holding: What the player holds; empty if nothing.
        contents: Place to what was last seen in it; only places that were looked into.
        visited: Places in the order of the visits, repeated if visited again.
        treated: Objects with what was done to them.
        dropped: Objects that were put down, with their places.
    """

    task: Errand
    steps: list[tuple[str, str]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    here: str = ""
    holding: str = ""
    contents: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    visited: list[str] = field(default_factory=list)
    treated: set[tuple[str, Chore]] = field(default_factory=set)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    lit: bool = False

    def count(self, verb: str) -> int:
        """Return how many commands began with ``verb``."""
        return sum(command.startswith(verb) for command, _ in self.steps)

    def where(self, thing: str) -> list[tuple[str, str]]:
        """Return the objects of the kind ``thing`` that were seen and still lie there, with their places."""
        return [(name, spot) for spot, names in self.contents.items() for name in names if kind(name) == thing]


def scene_of(opening: str, steps: Iterable[tuple[str, str]]) -> Scene | None:
    """Return what is known after ``steps``, pairs of a command and what was seen then; None if there is no task."""
    task = task_in(opening)
    if task is None:
        return None
    around = _AROUND.search(opening)
    scene = Scene(task=task, places=_ENTITY.findall(around["list"].lower()) if around else [])
    for command, observation in steps:
        scene.steps.append((command, observation))
        _look(scene, observation)
        _act(scene, observation)
    return scene


def _look(scene: Scene, observation: str) -> None:
    for match in _ARRIVE.finditer(observation):
        # Older games name a location, "loc 4", and then the place.
        scene.here = match["named"] or match["place"]
        scene.visited.append(scene.here)
    for pattern in (_LIES, _INSIDE):
        for match in pattern.finditer(observation):
            scene.contents[match["place"]] = _ENTITY.findall(match["list"])
            scene.closed.discard(match["place"])
            if pattern is _INSIDE:
                scene.opened.add(match["place"])
    scene.closed |= {match["place"] or match["shut"] for match in _CLOSED.finditer(observation)}


def _act(scene: Scene, observation: str) -> None:
    if match := _TAKE.search(observation):
        scene.holding = match["thing"]
        remaining = scene.contents.get(match["place"], [])
        scene.contents[match["place"]] = [name for name in remaining if name != scene.holding]
    elif match := _DROP.search(observation):
        scene.holding = ""
        scene.dropped.append((match["thing"], match["place"]))
        scene.contents.setdefault(match["place"], []).append(match["thing"])
    elif match := _TREATED.search(observation):
        scene.treated.add((match["thing"], Chore(match["verb"])))
    elif "You turn on the " in observation:
        scene.lit = True
