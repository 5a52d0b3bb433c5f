"""Environments say how many calls a rollout takes: no rollout takes fewer or more."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Reply, Usage
from skillgit.plugin.environment import CallBounds, call_bounds
from skillgit.plugin.registry import load_environment

if TYPE_CHECKING:
    from pathlib import Path

SKILL = Skill("s", {"SKILL.md": b"---\nname: s\ndescription: S.\n---\n\n# S\n"})
ROWS = (
    {"prompt": "Greet.", "rubric": "It is kind."},
    {"prompt": "Sum 1 and 1.", "answers": ["2"]},
    {"prompt": "Write.", "check": {"type": "judge", "criteria": ["It is short."], "against": "Short."}},
    {"prompt": "Answer.", "answers": ["2"], "check": {"type": "judge", "rubric": "It is right."}},
)


class Says:
    """A model that always says the same, and counts how often."""

    def __init__(self, text: str) -> None:
        self.text, self.calls = text, 0

    async def chat(self, messages, tools=()) -> Reply:
        del messages, tools
        self.calls += 1
        return Reply(text=self.text, usage=Usage(tokens_in=1, tokens_out=1))


@pytest.mark.parametrize(
    ("name", "options", "most"),
    [
        ("searchqa", {}, 1),
        ("searchqa", {"max_turns": 3}, 3),
        ("docvqa", {"max_turns": 2}, 2),
        ("babyvision", {}, 1),
        ("mmrb", {}, 1),
        ("livemathematicianbench", {}, 1),
        ("mathverse", {"max_turns": 3}, 3),
        ("officeqa", {}, 24),
        ("sealqa", {}, 1),
        ("sealqa", {"mode": "search"}, 12),
        ("sealqa", {"mode": "documents", "subset": "longseal", "max_turns": 5}, 1),
        ("spreadsheetbench", {"mode": "single", "scorer": "skillopt"}, 1),
        ("spreadsheetbench", {"mode": "multi", "max_turns": 7, "scorer": "skillopt"}, 7),
        ("swebench", {}, 50),
        ("alfworld", {"max_steps": 9}, 9),
        ("tasks", {"tools": "none"}, 1),
        ("tasks", {"tools": "read", "max_turns": 5}, 5),
        ("trigger", {}, 1),
    ],
)
def test_the_target_replies_as_often_as_the_options_say(name, options, most, tmp_path):
    made = load_environment(name, tmp_path)(options, tmp_path)
    item = made.items(Split.TRAIN)[0]
    bounds = call_bounds(made, item)
    assert bounds is not None
    assert bounds.target == (1, most)


def tasks(tmp_path: Path):
    rows = [{"id": f"t{number}", "split": split.value, **row} for split in Split for number, row in enumerate(ROWS)]
    for number, row in enumerate(rows):
        row["id"], row["prompt"] = f"t{number}", f"{row['prompt']} {number}"
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_environment("tasks", tmp_path)({"data_path": "tasks.jsonl", "tools": "none"}, tmp_path)


@pytest.mark.parametrize(
    ("said", "usable"), [('{"scores": [1], "reason": "r", "winner": "tie"}', True), ("I cannot say.", False)]
)
def test_a_judge_is_asked_as_often_as_the_checks_say(said, usable, tmp_path):
    made = tasks(tmp_path)
    found = set()
    for item in made.items(Split.TRAIN):
        target, judge, bounds = Says("<answer>2</answer>"), Says(said), call_bounds(made, item)
        assert isinstance(bounds, CallBounds)
        trajectory = asyncio.run(made.rollout(item, SKILL, target))
        try:
            asyncio.run(made.score(item, trajectory, judge))
        except EnvironmentFaultError:
            assert not usable
        least, most = bounds.judge
        assert bounds.target[0] <= target.calls <= bounds.target[1]
        assert judge.calls <= most + bounds.repairs
        if usable:
            assert least <= judge.calls <= most
        found.add(bounds.judge)
    assert found == {(0, 0), (1, 1), (2, 2)}
