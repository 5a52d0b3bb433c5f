from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from saying import Repeats
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit_envs.livemathematicianbench import LiveMathematicianBench

if TYPE_CHECKING:
    from pathlib import Path


def test_a_reply_without_an_answer_is_asked_again_with_the_whole_conversation(tmp_path: Path):
    environment = LiveMathematicianBench({"max_turns": 3}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    target = Repeats("Let me think.", "<answer>(B)</answer>", "never said")
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    assert [message.role for message in target.heard[-1]] == ["system", "user", "assistant", "user"]
    assert str(item.content["question"]) in target.heard[-1][1].text
    assert trajectory.answer == "(B)"
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant"] * 2


def test_theorem_and_sketch_are_told_to_the_optimizer_only_on_demand(tmp_path: Path):
    item = LiveMathematicianBench({}, tmp_path).items(Split.TRAIN)[0]
    item.content["sketch"] = "by induction"  # type: ignore[index]
    for explain in (False, True):
        environment = LiveMathematicianBench({"explain": explain}, tmp_path)
        trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), Repeats("<answer>Z</answer>")))
        _, feedback = asyncio.run(environment.score(item, trajectory, Repeats()))
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
