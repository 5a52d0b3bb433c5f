from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit.plugin.backend import Reply, Usage
from skillgit_envs.livemathematicianbench import LiveMathematicianBench

if TYPE_CHECKING:
    from pathlib import Path


class Says:
    """A model that says one thing after the other."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.heard: list = []

    async def chat(self, messages, tools=()):
        assert not tools
        self.heard = list(messages)
        return Reply(text=self.texts.pop(0), usage=Usage(tokens_in=1, tokens_out=1))


def test_a_reply_without_an_answer_is_asked_again_with_the_whole_conversation(tmp_path: Path):
    environment = LiveMathematicianBench({"max_turns": 3}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    target = Says("Let me think.", "<answer>(B)</answer>", "never said")
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    assert [message.role for message in target.heard] == ["system", "user", "assistant", "user"]
    assert str(item.content["question"]) in target.heard[1].text
    assert trajectory.answer == "(B)"
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant"] * 2


def test_theorem_and_sketch_are_told_to_the_optimizer_only_on_demand(tmp_path: Path):
    item = LiveMathematicianBench({}, tmp_path).items(Split.TRAIN)[0]
    item.content["sketch"] = "by induction"  # type: ignore[index]
    for explain in (False, True):
        environment = LiveMathematicianBench({"explain": explain}, tmp_path)
        trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), Says("<answer>Z</answer>")))
        _, feedback = asyncio.run(environment.score(item, trajectory, Says()))
        assert ("by induction" in feedback) is explain


@pytest.mark.slow
def test_real_items_are_trained_on_over_the_wire(real: Path, tmp_path: Path):
    months = sorted(real.glob("data/*/*.json"))
    rows = [row for path in months for row in json.loads(path.read_text())]
    (tmp_path / "items.json").write_text(json.dumps(rows))
    data = ("-o", f"env.data_path={tmp_path / 'items.json'}")
    repository, asked = train(
        tmp_path,
        "livemathematicianbench",
        *data,
        scripted=((TARGET, "<answer>(A)</answer>"),),
    )
    assert {entry.role for entry in asked} == {"target", "optimizer"}, asked
    assert events(repository)[0]["kind"] == "run-finished"
