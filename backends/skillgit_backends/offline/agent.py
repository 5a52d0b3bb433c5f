"""The model ``agent``: plays a household game one command at a time, by what its skill tells it and nothing cleverer.

Left to itself it searches places in the order in which the room names them, opens nothing, and brings the first thing
of the right kind straight to its target. Each chore that the skill asks for mends one weakness, or adds one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit_backends.offline.household import APPLIANCES, Scene, kind, rank, scene_of
from skillgit_backends.offline.prompts import skill_text
from skillgit_backends.offline.rules import Chore
from skillgit_backends.offline.skills import rules_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from enum import StrEnum

    from skillgit.plugin.backend import Message

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
    return (
        scene_of(observations[0], zip([*missing, *commands], observations[1:], strict=False)) if observations else None
    )


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
        if treatment is not None and (scene.holding, treatment) not in scene.treated:
            return self._treat(treatment)
        return self._put_down()

    def _treat(self, chore: Chore) -> str:
        scene = self.scene
        spot = next((spot for spot in scene.places if kind(spot) == APPLIANCES[chore]), "")
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
        before = [spot for _, spot in scene.dropped]
        spot = next((spot for spot in [*before, *scene.places] if kind(spot) == scene.task.target), "")
        if not spot:
            return _IDLE
        if scene.here != spot:
            return f"go to {spot}"
        if spot in scene.closed and self.opens:
            return f"open {spot}"
        ends = (f"{scene.holding} to {spot}", f"{scene.holding} in/on {spot}")
        default = f"put {scene.holding} in/on {spot}"
        return next((command for command in self.possible if command.endswith(ends)), default)

    def _fetch(self) -> str:
        scene, task = self.scene, self.scene.task
        names_there = {name for name, spot in scene.dropped if kind(spot) == task.target}
        if len(names_there) >= (2 if task.chore is Chore.BOTH and Chore.BOTH in self.orders else 1):
            return _IDLE
        within_reach = [
            (name, spot)
            for name, spot in scene.where(task.thing)
            if name not in names_there and spot not in scene.closed
        ]
        for name, spot in sorted(within_reach, key=lambda entry: entry[1] != scene.here):
            return f"take {name} from {spot}" if spot == scene.here else f"go to {spot}"
        return self._search(task.thing)

    def _search(self, thing: str) -> str:
        scene = self.scene
        if scene.here in scene.closed and self.opens and scene.here not in scene.opened:
            return f"open {scene.here}"
        order = scene.places
        if Chore.LIKELY in self.orders:
            order = sorted(order, key=lambda spot: rank(thing, kind(spot)))
        fresh = next((spot for spot in order if spot not in scene.visited), "")
        if fresh or not order:
            return f"go to {fresh}" if fresh else _IDLE
        # Every place was visited: go round once more.
        last = order.index(scene.here) if scene.here in order else -1
        return f"go to {order[(last + 1) % len(order)]}"
