"""Games that tests play: one with the commands that win it, all that are shipped, and one without a simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from skillgit.plugin.backend import Reply, Usage
from skillgit_envs import alfworld
from skillgit_envs.alfworld.simulator import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from skillgit.plugin.backend import Message, Tool

POTATO = {
    "recipe": {
        "task": "pick_heat_then_place_in_recep",
        "room": "kitchen",
        "thing": "Potato",
        "target": "DiningTable",
        "seed": 5,
    }
}
WINS = (
    "go to garbagecan 1",
    "take potato 1 from garbagecan 1",
    "go to microwave 1",
    "heat potato 1 with microwave 1",
    "go to diningtable 1",
    "move potato 1 to diningtable 1",
)


def shipped() -> list[dict[str, Any]]:
    return [
        row
        for split in ("train", "val", "test")
        for row in json.loads((Path(alfworld.__file__).parent / "data" / split / "items.json").read_text())
    ]


class Speaker:
    """A target that says one thing after the other, the last one for ever."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.heard: list[Sequence[Message]] = []

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
        assert not tools
        self.heard.append(messages)
        text = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return Reply(text=text, usage=Usage(tokens_in=1, tokens_out=1))


class Table:
    """A game of three commands that stands in for a simulator: the third one wins."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def game(self) -> AbstractAsyncContextManager[Table]:
        return self  # type: ignore[return-value]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def start(self, opening: Mapping[str, object], max_steps: int) -> State:
        assert opening == POTATO
        self.most = max_steps
        return self.state("A room.\n\nYour task is to: dust.")

    async def step(self, command: str) -> State:
        self.given.append(command)
        return self.state(f"Done: {command}" if command else "Nothing happens.")

    def state(self, observation: str) -> State:
        won = self.given.count("dust") == 3
        over = won or len(self.given) >= self.most
        return State(observation=observation, commands=("dust", "look"), won=won, over=over)
