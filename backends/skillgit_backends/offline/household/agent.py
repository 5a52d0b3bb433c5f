"""The model ``agent``: plays a household game one command at a time, by what its skill tells it and nothing cleverer.

Left to itself it searches places in the order in which the room names them, opens nothing, and brings the first thing
of the right kind straight to where it shall go. Each chore that the skill asks for mends one weakness, or adds one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit_backends.offline.conversation import skill_text
from skillgit_backends.offline.household.chores import Chore, Orders
from skillgit_backends.offline.household.orders import read_orders
from skillgit_backends.offline.household.places import rank
from skillgit_backends.offline.household.scene import Scene, kind, scene_of
from skillgit_backends.offline.household.task import APPLIANCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.plugin.backend import Message

_OBSERVATION = re.compile(r"<observation>\n?(?P<body>.*?)\n?</observation>", re.DOTALL)
_COMMANDS = re.compile(r"<commands>\n?(?P<body>.*?)\n?</commands>", re.DOTALL)
_ACTION = re.compile(r"<action>(?P<body>.*?)</action>", re.DOTALL)
_IDLE = "look"
_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
    """What a decision rests on."""

    scene: Scene
    orders: Orders
    possible: tuple[str, ...]

    def told(self, chore: Chore) -> bool:
        """Say whether the skill asks for ``chore``."""
        return chore in self.orders.chores

    def opens(self) -> bool:
        """Say whether the agent opens what is closed."""
        return self.told(Chore.OPEN) and not self.told(Chore.SURFACES)


def complete(messages: Sequence[Message]) -> str:
    """Answer a target's conversation with the next command; without a household task it just looks around."""
    seen = [found for message in messages if message.role == "user" for found in _observations(message.text)]
    given = [command_of(message.text) for message in messages if message.role == "assistant"]
    # Where earlier turns were left out, the commands before them are not known either.
    missing = len(seen) - 1 - len(given)
    scene = scene_of(seen[0], zip([*[""] * missing, *given], seen[1:], strict=False)) if seen else None
    if scene is None:
        return f"<action>{_IDLE}</action>"
    listed = _COMMANDS.findall(messages[-1].text)
    possible = tuple(line.strip() for line in listed[-1].splitlines() if line.strip()) if listed else ()
    mind = Mind(scene=scene, orders=read_orders(skill_text(messages)), possible=possible)
    return f"<action>{decide(mind)}</action>"


def _observations(text: str) -> list[str]:
    return [match.group("body") for match in _OBSERVATION.finditer(text)]


def command_of(reply: str) -> str:
    """Return the command of an earlier reply."""
    match = _ACTION.search(reply)
    return " ".join(match.group("body").lower().split()) if match else ""


def decide(mind: Mind) -> str:
    """Return the next command."""
    return _fuss(mind) or (_with_object(mind) if mind.scene.holding else _empty_handed(mind))


def _fuss(mind: Mind) -> str:
    """Return a command that a harmful rule asks for before anything else."""
    scene = mind.scene
    if mind.told(Chore.CHECK) and scene.commands and scene.commands[-1] != "inventory":
        return "inventory"
    if mind.told(Chore.EXAMINE) and scene.here and scene.here not in scene.examined:
        return f"examine {scene.here}"
    return ""


def _with_object(mind: Mind) -> str:
    scene, task = mind.scene, mind.scene.task
    mine = kind(scene.holding) == task.thing
    if mine and task.chore is Chore.LAMP:
        return _to_lamp(mind) if mind.told(Chore.LAMP) else f"examine {scene.holding}"
    wanted = task.chore if task.chore in APPLIANCES and mind.told(task.chore) else None
    if wanted is None and mind.told(Chore.CLEAN_ALL):
        wanted = Chore.CLEAN
    if wanted is not None and (scene.holding, wanted) not in scene.treated:
        return _treat(mind, wanted)
    return _put_down(mind)


def _treat(mind: Mind, chore: Chore) -> str:
    scene = mind.scene
    place = next((place for place in scene.places if kind(place) == APPLIANCES[chore]), "")
    if not place:
        return _search(mind, APPLIANCES[chore])
    return f"{chore} {scene.holding} with {place}" if scene.here == place else f"go to {place}"


def _to_lamp(mind: Mind) -> str:
    scene = mind.scene
    for lamp, place in scene.where(scene.task.target):
        return f"use {lamp}" if scene.here == place else f"go to {place}"
    return _search(mind, scene.task.target)


def _put_down(mind: Mind) -> str:
    scene = mind.scene
    before = [place for _, place in scene.placed if kind(place) == scene.task.target]
    place = next((place for place in [*before, *scene.places] if kind(place) == scene.task.target), "")
    if not place:
        return _IDLE
    if scene.here != place:
        return f"go to {place}"
    if place in scene.closed and mind.opens():
        return f"open {place}"
    ends = (f"{scene.holding} to {place}", f"{scene.holding} in/on {place}")
    return next((command for command in mind.possible if command.endswith(ends)), f"put {scene.holding} in/on {place}")


def _empty_handed(mind: Mind) -> str:
    scene, task = mind.scene, mind.scene.task
    wanted = _TWO if task.chore is Chore.BOTH and mind.told(Chore.BOTH) else 1
    there = {name for name, place in scene.placed if kind(place) == task.target}
    if len(there) >= wanted:
        return _IDLE
    if mind.told(Chore.TAKE_ANY) and scene.contents.get(scene.here):
        taken = next((command for command in mind.possible if command.startswith("take ")), "")
        if taken:
            return taken
    known = [
        (name, place) for name, place in scene.where(task.thing) if name not in there and place not in scene.closed
    ]
    for name, place in sorted(known, key=lambda entry: entry[1] != scene.here):
        return f"take {name} from {place}" if place == scene.here else f"go to {place}"
    return _search(mind, task.thing)


def _search(mind: Mind, thing: str) -> str:
    """Return the next command of a search for ``thing``."""
    scene = mind.scene
    if scene.here in scene.closed and mind.opens() and scene.here not in scene.opened:
        return f"open {scene.here}"
    if mind.told(Chore.CLOSE) and scene.here in scene.opened and scene.here not in scene.closed:
        return f"close {scene.here}"
    order = _order(mind, thing)
    visited = set(scene.visited)
    fresh = next((place for place in order if place not in visited), "")
    if fresh or not order:
        return f"go to {fresh}" if fresh else _IDLE
    # All was seen: it goes round once more.
    last = order.index(scene.here) if scene.here in order else -1
    return f"go to {order[(last + 1) % len(order)]}"


def _order(mind: Mind, thing: str) -> list[str]:
    """Return the places in the order of the search."""
    hinted = mind.orders.first.get(thing, ())
    likely = mind.told(Chore.LIKELY)
    return sorted(
        mind.scene.places, key=lambda place: (kind(place) not in hinted, rank(thing, kind(place)) if likely else 0)
    )
