"""The model ``agent``: plays a household game one command at a time, by what its skill asks for and nothing cleverer.

Left to itself it searches places in the order in which the room names them, opens nothing, and brings the first thing
of the right kind straight to its target. Each chore that the skill asks for removes one weakness, or adds one. It knows
the task, where things usually are, and everything that was seen so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from skillgit.plugin.backend import Message
from skillgit_backends.offline.rules import Chore
from skillgit_backends.offline.skills import rules_in
from skillgit_backends.offline.text import skill_text, word_set

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
APPLIANCES = {Chore.CLEAN: "sinkbasin", Chore.HEAT: "microwave", Chore.COOL: "fridge"}  # where an object is treated

_KITCHEN = "countertop diningtable cabinet shelf sinkbasin fridge microwave coffeemachine drawer stoveburner garbagecan"
_BATHROOM = "toilet sinkbasin countertop cabinet handtowelholder shelf drawer garbagecan bathtubbasin"
_LIVING_ROOM = "desk sidetable dresser coffeetable shelf bed sofa armchair ottoman cabinet drawer garbagecan safe"
HOMES = {
    thing: spots.split()
    for spots, things in (
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
"""The kinds of places where a kind of thing usually is, the likeliest first."""

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
    thing: str  # the kind of object; empty if the sentence is not understood
    target: str  # the kind of receptacle where it shall go, or the kind of lamp
    chore: Chore | None = None  # what has to be done besides bringing it


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
    task: Errand
    steps: list[tuple[str, str]] = field(default_factory=list)  # commands, each with what was seen then
    spots: list[str] = field(default_factory=list)  # all receptacles, as the room names them
    here: str = ""  # empty in the middle of the room
    holding: str = ""
    contents: dict[str, list[str]] = field(default_factory=dict)  # of the places that were looked into
    closed_spots: set[str] = field(default_factory=set)
    opened_spots: set[str] = field(default_factory=set)
    visits: list[str] = field(default_factory=list)  # in the order of the visits, with repetitions
    treatments: set[tuple[str, Chore]] = field(default_factory=set)  # objects with what was done to them
    drops: list[tuple[str, str]] = field(default_factory=list)  # objects that were put down, with their places
    lit: bool = False

    def count(self, verb: str) -> int:
        return sum(command.startswith(verb) for command, _ in self.steps)

    def where(self, thing: str) -> list[tuple[str, str]]:
        """Return the objects of the kind ``thing`` that were seen and are still there, with their places."""
        return [(name, spot) for spot, names in self.contents.items() for name in names if kind(name) == thing]


def scene_of(opening: str, steps: Iterable[tuple[str, str]]) -> Scene | None:
    """Return what is known after ``steps``, pairs of a command and what was seen then; None if there is no task."""
    task = task_in(opening)
    if task is None:
        return None
    around = _AROUND.search(opening)
    scene = Scene(task=task, spots=_ENTITY.findall(around["list"].lower()) if around else [])
    for command, observation in steps:
        scene.steps.append((command, observation))
        _look(scene, observation)
        _act(scene, observation)
    return scene


def _look(scene: Scene, observation: str) -> None:
    for match in _ARRIVE.finditer(observation):
        # Older games name a location, "loc 4", and then the place.
        scene.here = match["named"] or match["place"]
        scene.visits.append(scene.here)
    for pattern in (_LIES, _INSIDE):
        for match in pattern.finditer(observation):
            scene.contents[match["place"]] = _ENTITY.findall(match["list"])
            scene.closed_spots.discard(match["place"])
            if pattern is _INSIDE:
                scene.opened_spots.add(match["place"])
    scene.closed_spots |= {match["place"] or match["shut"] for match in _CLOSED.finditer(observation)}


def _act(scene: Scene, observation: str) -> None:
    if match := _TAKE.search(observation):
        scene.holding = match["thing"]
        remaining = scene.contents.get(match["place"], [])
        scene.contents[match["place"]] = [name for name in remaining if name != scene.holding]
    elif match := _DROP.search(observation):
        scene.holding = ""
        scene.drops.append((match["thing"], match["place"]))
        scene.contents.setdefault(match["place"], []).append(match["thing"])
    elif match := _TREATED.search(observation):
        scene.treatments.add((match["thing"], Chore(match["verb"])))
    elif "You turn on the " in observation:
        scene.lit = True


_OBSERVATION = re.compile(r"<observation>\n?(?P<body>.*?)\n?</observation>", re.DOTALL)
_COMMANDS = re.compile(r"<commands>\n?(?P<body>.*?)\n?</commands>", re.DOTALL)
_ACTION = re.compile(r"<action>(?P<body>.*?)</action>", re.DOTALL)
_IDLE = "look"


def complete(messages: Sequence[Message]) -> str:
    """Answer a target's conversation with the next command; without a household task it just looks around."""
    scene = played((message.role, message.text) for message in messages)
    if scene is None:
        return f"<action>{_IDLE}</action>"
    commands = _COMMANDS.findall(messages[-1].text)
    possible = [line.strip() for line in commands[-1].splitlines()] if commands else []
    player = _Player(scene=scene, orders=rules_in(skill_text(messages)), possible=possible)
    return f"<action>{player.command()}</action>"


def played(turns: Iterable[tuple[str, str]]) -> Scene | None:
    """Return what the player knows after ``turns``, pairs of role and text; None where no household task is stated."""
    observations, commands = list[str](), list[str]()
    for role, text in turns:
        if role == "user":
            observations += [match["body"] for match in _OBSERVATION.finditer(text)]
        elif role == "assistant":
            match = _ACTION.search(text)
            commands.append(" ".join(match["body"].lower().split()) if match else "")
    # Where earlier turns were left out, the commands before them are not known either.
    missing = [""] * (len(observations) - 1 - len(commands))
    steps = zip([*missing, *commands], observations[1:], strict=False)
    return scene_of(observations[0], steps) if observations else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Player:
    """What a decision rests on: the house, the skill's orders, and the commands that are possible."""

    scene: Scene
    orders: frozenset[StrEnum]
    possible: list[str]

    @property
    def opens(self) -> bool:
        return Chore.OPEN in self.orders and Chore.SURFACES not in self.orders

    def command(self) -> str:
        scene = self.scene
        if Chore.CHECK in self.orders and scene.steps and scene.steps[-1][0] != "inventory":
            return "inventory"
        return self._carry() if scene.holding else self._fetch()

    def _carry(self) -> str:
        scene, task = self.scene, self.scene.task
        if task.chore is Chore.LAMP and kind(scene.holding) == task.thing:
            return self._to_lamp() if Chore.LAMP in self.orders else f"examine {scene.holding}"
        treatment = task.chore if task.chore in APPLIANCES and task.chore in self.orders else None
        if treatment is None and Chore.CLEAN_ALL in self.orders:
            treatment = Chore.CLEAN
        if treatment is not None and (scene.holding, treatment) not in scene.treatments:
            return self._treat(treatment)
        return self._put_down()

    def _treat(self, chore: Chore) -> str:
        scene = self.scene
        spot = next((spot for spot in scene.spots if kind(spot) == APPLIANCES[chore]), "")
        if not spot:
            return self._search(APPLIANCES[chore])
        return f"{chore} {scene.holding} with {spot}" if scene.here == spot else f"go to {spot}"

    def _to_lamp(self) -> str:
        scene = self.scene
        for lamp, spot in scene.where(scene.task.target):
            return f"use {lamp}" if scene.here == spot else f"go to {spot}"
        return self._search(scene.task.target)

    def _put_down(self) -> str:
        scene = self.scene
        before = [spot for _, spot in scene.drops]
        spot = next((spot for spot in [*before, *scene.spots] if kind(spot) == scene.task.target), "")
        if not spot:
            return _IDLE
        if scene.here != spot:
            return f"go to {spot}"
        if spot in scene.closed_spots and self.opens:
            return f"open {spot}"
        ends = (f"{scene.holding} to {spot}", f"{scene.holding} in/on {spot}")
        default = f"put {scene.holding} in/on {spot}"
        return next((command for command in self.possible if command.endswith(ends)), default)

    def _fetch(self) -> str:
        scene, task = self.scene, self.scene.task
        names_there = {name for name, spot in scene.drops if kind(spot) == task.target}
        if len(names_there) >= (2 if task.chore is Chore.BOTH and Chore.BOTH in self.orders else 1):
            return _IDLE
        within_reach = [
            (name, spot)
            for name, spot in scene.where(task.thing)
            if name not in names_there and spot not in scene.closed_spots
        ]
        for name, spot in sorted(within_reach, key=lambda entry: entry[1] != scene.here):
            return f"take {name} from {spot}" if spot == scene.here else f"go to {spot}"
        return self._search(task.thing)

    def _search(self, thing: str) -> str:
        scene = self.scene
        if scene.here in scene.closed_spots and self.opens and scene.here not in scene.opened_spots:
            return f"open {scene.here}"
        order = scene.spots
        if Chore.LIKELY in self.orders:
            order = sorted(order, key=lambda spot: rank(thing, kind(spot)))
        fresh = next((spot for spot in order if spot not in scene.visits), "")
        if fresh or not order:
            return f"go to {fresh}" if fresh else _IDLE
        # Every place was visited: go round once more.
        last = order.index(scene.here) if scene.here in order else -1
        return f"go to {order[(last + 1) % len(order)]}"
