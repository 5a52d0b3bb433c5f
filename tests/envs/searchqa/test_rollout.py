from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError
from skillgit.plugin.backend import Reply, Usage
from skillgit_envs.searchqa import SearchQA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.plugin.backend import Message, Tool

GOLD = "Oxford Gold"


class Parrot:
    def __init__(self, text: str) -> None:
        self.text = text
        self.heard: list[Message] = []

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
        assert not tools
        self.heard.extend(messages)
        return Reply(text=self.text, usage=Usage(tokens_in=1, tokens_out=1))


def item() -> Item:
    return Item(id="a", content={"question": "Which?", "context": "[DOC] c", "answers": [GOLD]})


def test_the_target_is_asked_once_and_never_sees_the_gold(tmp_path: Path):
    environment, target = SearchQA({}, tmp_path), Parrot("Hm.\n<answer> Oxford Silver </answer>")
    trajectory = asyncio.run(environment.rollout(item(), environment.seed_skill(), target))
    assert [message.role for message in target.heard] == ["system", "user"]
    assert "Read the search results" in target.heard[0].text
    assert "name: searchqa" not in target.heard[0].text
    assert not [message for message in target.heard if GOLD in message.text]
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant"]
    assert trajectory.turns[0].content == target.heard[1].text
    assert trajectory.answer == "Oxford Silver"
    assert asyncio.run(environment.score(item(), trajectory, target)) == (
        Scored(0.0, 0.5),
        'expected one of: "Oxford Gold"; the answer "Oxford Silver" shares 1 of 2 words',
    )


def test_more_than_one_turn_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"env\.max_turns is 2; searchqa asks once"):
        SearchQA({"max_turns": 2}, tmp_path)


def test_items_are_read_when_they_are_wanted(tmp_path: Path):
    environment = SearchQA({"data_path": "nowhere.json"}, tmp_path)
    assert environment.digest
    assert len(SearchQA({"limit": 3}, tmp_path).items(Split.TEST)) == 3
