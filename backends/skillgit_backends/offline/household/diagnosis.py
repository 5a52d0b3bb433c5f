"""Why a game was lost, judged from the conversation that an optimizer is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillgit_backends.offline.briefing import sections
from skillgit_backends.offline.household.agent import command_of
from skillgit_backends.offline.household.chores import Chore
from skillgit_backends.offline.household.scene import NOTHING, Scene, kind, scene_of
from skillgit_backends.offline.household.task import APPLIANCES

_OBSERVATION = re.compile(r"<observation>\n?(?P<body>.*?)\n?</observation>", re.DOTALL)
_TASK = re.compile(r"^\s*Your task is to: ", re.MULTILINE)
_SEVERAL = 3
_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A game that an optimizer is shown.

    Attributes:
        item: The item's id.
        scene: What the agent knew at the end.
        steps: Commands and what was seen then; turns that were left out are missing.
        category: How it changed, where two versions are compared; else empty.
    """

    item: str
    scene: Scene
    steps: tuple[tuple[str, str], ...]
    category: str = ""


def concerns(text: str) -> bool:
    """Say whether a prompt shows household games."""
    return "<observation>" in text and _TASK.search(text) is not None


def episodes(text: str) -> list[Episode]:
    """Return the games in a prompt: its trajectories, or the current ones of the pairs that it compares."""
    shown = [(attributes, body) for attributes, body in sections(text, "trajectory")]
    for attributes, body in sections(text, "pair"):
        shown += [(attributes, current) for _, current in sections(body, "current")[:1]]
    found = [_episode(attributes, body) for attributes, body in shown]
    return [episode for episode in found if episode is not None]


def _episode(attributes: dict[str, str], body: str) -> Episode | None:
    opening, steps, command = "", list[tuple[str, str]](), ""
    for turn, text in sections(body, "turn"):
        if turn.get("role") == "assistant":
            command = command_of(text)
            continue
        match = _OBSERVATION.search(text)
        seen = match.group("body") if match else text
        if opening:
            steps.append((command, seen))
        else:
            opening = seen
    scene = scene_of(opening, steps)
    if scene is None:
        return None
    return Episode(
        item=attributes.get("id", ""), scene=scene, steps=tuple(steps), category=attributes.get("category", "")
    )


def causes(episode: Episode) -> list[Chore]:
    """Return the chores whose lack, or whose presence where they are harmful, explains the loss, likeliest first."""
    return [*_missing(episode), *_overdone(episode)]


def _missing(episode: Episode) -> list[Chore]:
    scene, task = episode.scene, episode.scene.task
    mine = [name for name, place in scene.placed if kind(name) == task.thing and kind(place) == task.target]
    held = kind(scene.holding) == task.thing
    if task.chore is Chore.LAMP and held:
        return (
            [Chore.LAMP]
            if not scene.lit and any(command.startswith("examine ") for command in scene.commands)
            else [Chore.LIKELY]
        )
    if mine and task.chore in APPLIANCES:
        return [task.chore] if not any((name, task.chore) in scene.treated for name in mine) else []
    if mine and task.chore is Chore.BOTH:
        return _search_failed(scene) if _searched_on(episode) else [Chore.BOTH]
    if held and scene.here in scene.closed and _refused(episode):
        return [Chore.OPEN]
    return [] if held or mine else _search_failed(scene)


def _search_failed(scene: Scene) -> list[Chore]:
    unopened = [place for place in scene.visited if place in scene.closed and place not in scene.opened]
    return [Chore.OPEN] if len(unopened) >= _TWO else [Chore.LIKELY]


def _searched_on(episode: Episode) -> bool:
    """Say whether the agent went anywhere after it had put the first object down."""
    put = next((at for at, (_, seen) in enumerate(episode.steps) if re.match(r"You (?:put|move) ", seen)), 0)
    return sum(command.startswith("go to ") for command, _ in episode.steps[put + 1 :]) >= _TWO


def _refused(episode: Episode) -> bool:
    return sum(seen.startswith(NOTHING) for _, seen in episode.steps[-_SEVERAL:]) >= _TWO


def _overdone(episode: Episode) -> list[Chore]:
    scene, commands = episode.scene, episode.scene.commands
    found = []
    if scene.holding and kind(scene.holding) != scene.task.thing:
        found.append(Chore.TAKE_ANY)
    for chore, verb in ((Chore.CHECK, "inventory"), (Chore.CLOSE, "close "), (Chore.EXAMINE, "examine ")):
        if sum(command.startswith(verb) for command in commands) >= _SEVERAL:
            found.append(chore)
    if any(place in scene.closed and place not in scene.opened for place in scene.visited):
        found.append(Chore.SURFACES)
    if scene.task.chore is not Chore.CLEAN and any(done is Chore.CLEAN for _, done in scene.treated):
        found.append(Chore.CLEAN_ALL)
    return found
