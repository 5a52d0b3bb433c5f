"""The world as plug-ins of skillgit: an environment, and a backend that is the desk and the optimizer.

``SEARCH_WORLD`` in the environment of the process says which world, ``SEARCH_LATENCY`` how many seconds a call takes.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import TYPE_CHECKING

from bench.search_world import prompts
from bench.search_world.world import SEED, SIZES, world_of

from skillgit.domain.evaluation import Scored
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.plugin.backend import BackendInfo, Price, Reply, estimated_usage, system, user
from skillgit.plugin.environment import CallBounds, EnvironmentInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bench.search_world.world import World

    from skillgit.domain.evaluation import Split
    from skillgit.plugin.backend import Request
    from skillgit.plugin.environment import Judge, Target

WORLD, LATENCY = "SEARCH_WORLD", "SEARCH_LATENCY"


def _world() -> World:
    return world_of(int(os.environ[WORLD]))


class Desk:
    """The dispatch desk as an environment."""

    info = EnvironmentInfo(
        name="dispatch",
        summary="Write the slip for a consignment: the marks of all goods in it.",
        fields={"task": "the request"},
        scorer="The slip is right as a whole, or wrong.",
        source="generated",
    )

    def __init__(self, options: Mapping[str, object], root: Path) -> None:
        del options, root
        self._world = _world()

    @property
    def digest(self) -> str:
        return f"dispatch {self._world.seed}"

    def items(self, split: Split) -> Sequence[Item]:
        assert split.value in SIZES
        return [Item(id=item.id, content={"task": item.task}) for item in self._world.items[split.value]]

    def seed_skill(self) -> Skill:
        return Skill("dispatch", {"SKILL.md": SEED.encode()})

    def taxonomy(self) -> str:
        return "- a mark is missing\n- the form is not what the region accepts"

    def call_bounds(self, item: Item) -> CallBounds:
        del item
        return CallBounds()

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        question = [system(skill.document), user(str(item.content["task"]))]
        reply = await target.chat(question)
        turns = tuple(message.turn() for message in question[1:])
        answer, _, feedback = reply.text.partition("\n")
        return Trajectory(item_id=item.id, turns=turns, answer=answer, feedback=feedback)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del item, judge
        solved = float(trajectory.feedback == "right")
        return Scored(hard=solved, soft=solved), trajectory.feedback


class Models:
    """Both models; the n-th time that the desk is asked the same is its n-th attempt."""

    info = BackendInfo(
        name="search-world", summary="Simulated.", needs_network=False, prices={"*": Price(usd_in=0, usd_out=0)}
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        del settings
        self._world, self._latency = _world(), float(os.environ.get(LATENCY, "0"))
        self._attempts = Counter[tuple[str, str]]()

    async def complete(self, request: Request) -> Reply:
        first, last = request.messages[0].text, request.messages[-1].text
        if self._latency:
            await asyncio.sleep(self._latency)
        text = self._desk(first, last) if request.model == "desk" else self._optimizer(request)
        return Reply(text=text, usage=estimated_usage(request.messages, text))

    async def aclose(self) -> None: ...

    def _desk(self, skill: str, task: str) -> str:
        item = self._world.by_id.get(task.removeprefix("Request ").partition(".")[0])
        if item is None:
            return "ready"  # whoever only tries whether it answers
        number = self._attempts[skill, item.id]
        self._attempts[skill, item.id] += 1
        attempt = self._world.attempt(skill, item, number)
        return f"{attempt.answer}\n{attempt.feedback}"

    def _optimizer(self, request: Request) -> str:
        texts = [message.text for message in request.messages]
        return prompts.reply(self._world, *texts[:2]) if len(texts) > 1 else "ready"
