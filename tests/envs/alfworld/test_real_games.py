"""The published games: they load, start as published, speak the older dialect, and are won by text alone."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from soaking import soak

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.plugin.backend import Reply, Usage
from skillgit_backends.offline import agent
from skillgit_backends.offline.agent import scene_of, task_in
from skillgit_backends.offline.rules import HARMFUL, RULES, Chore
from skillgit_envs.alfworld import ALFWorld
from skillgit_envs.alfworld.games import TASK_TYPES, fingerprint, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.backend import Message, Tool

GOOD = Skill(
    "home",
    {"SKILL.md": "\n".join(f"- {RULES[chore].wordings[0]}" for chore in Chore if chore not in HARMFUL).encode()},
)


class Player:
    """The offline agent."""

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
        assert not tools
        return Reply(text=agent.complete(messages), usage=Usage(tokens_in=1, tokens_out=1))


@pytest.fixture
def environment(real: Path, tmp_path: Path) -> ALFWorld:
    rows = json.loads((real / "items.json").read_text())
    for split in ("train", "val", "test"):
        (tmp_path / split).mkdir()
        kept = [row for row in rows if row["split"] == ("val" if split == "train" else split)]
        if split == "train":
            kept = [{**kept[0], "id": "train:0"}]
        elif split == "val":
            kept = kept[1:]
        (tmp_path / split / "items.json").write_text(json.dumps(kept))
    return ALFWorld({"split_mode": "split_dir", "split_dir": ".", "data_root": str(real)}, tmp_path)


def every(environment: ALFWorld) -> list[Item]:
    return [item for split in Split for item in environment.items(split)]


def test_all_are_read_with_their_task_types(environment):
    found = every(environment)
    assert len(found) == 17
    assert {item.task_type for item in found} == set(TASK_TYPES)


def test_the_folder_is_read_as_it_was_published(real, tmp_path):
    folder = tmp_path / "json_2.1.1"
    folder.mkdir()
    for split in ("valid_seen", "valid_unseen"):
        (folder / split).symlink_to(real / "json_2.1.1" / split)
    (folder / "train").mkdir()
    game = next((real / "json_2.1.1").rglob("game.tw-pddl"))
    copy = folder / "train" / "look_at_obj_in_light-A-None-DeskLamp-1" / "trial" / "game.tw-pddl"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(game.read_bytes())
    environment = ALFWorld({"split_mode": "split_dir", "split_dir": "json_2.1.1"}, tmp_path)
    assert [len(environment.items(split)) for split in Split] == [1, 9, 8]


def one_of_each_kind(items: Sequence[Item]) -> list[Item]:
    return [next(item for item in reversed(items) if item.task_type == kind) for kind in TASK_TYPES]


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "published"), [(one_of_each_kind, 6), soak(list, 8)])
def test_they_start_as_published_and_are_won_by_what_the_text_says(chosen, published, environment, real):
    items = chosen(every(environment))
    gold = {
        row["gamefile"].partition("alfworld/")[2]: re.sub(r"___\d+$", "", row["goal"])
        for row in json.loads((real / "expel_alfworld_tasks_suffix.json").read_text())
    }

    async def play() -> list[Trajectory]:
        limit = asyncio.Semaphore(3)

        async def one(item: Item) -> Trajectory:
            async with limit:
                return await environment.rollout(item, GOOD, Player())

        return await asyncio.gather(*(one(item) for item in items))

    played = asyncio.run(play())
    environment._simulator.close()
    assert [trajectory.item_id for trajectory in played if not trajectory.answer.startswith("won")] == []
    compared = 0
    for item, trajectory in zip(items, played, strict=True):
        opening = trajectory.turns[0].content.removeprefix("<observation>\n").removesuffix("\n</observation>")
        expected = gold.get(str(item.content["gamefile"]))
        if expected is not None:
            assert opening == expected
            compared += 1
    assert compared == published
    said = [turn.content for trajectory in played for turn in trajectory.turns if turn.role == "assistant"]
    assert any(" in/on " in text for text in said), "these games say put … in/on …"
    assert not any("<action>move " in text for text in said)


def test_every_published_task_line_is_understood_by_the_agent(real):
    rows = json.loads((real / "expel_alfworld_tasks_suffix.json").read_text())
    tasks = [task_in(row["goal"].replace("___", "\n")) for row in rows]
    assert len(tasks) == 134
    assert not [row["goal"] for row, task in zip(rows, tasks, strict=True) if not (task and task.thing and task.target)]
    for row, task in zip(rows, tasks, strict=True):
        _, thing, _, target, _ = row["gamefile"].split("/")[-3].split("-")
        assert (task.thing, task.target) == (thing.lower(), target.lower())


def test_published_transcripts_are_followed(real):
    shown: dict[str, Any] = json.loads((real / "react_alfworld_3prompts.json").read_text())
    followed = 0
    for text in shown.values():
        opening, *parts = re.split(r"^> ", text, flags=re.MULTILINE)
        steps = [(part.partition("\n")[0].strip(), part.partition("\n")[2].strip()) for part in parts]
        scene = scene_of(opening, [step for step in steps if not step[0].startswith("think")])
        assert scene is not None
        assert scene.spots
        assert scene.drops or scene.lit
        followed += 1
    assert followed >= 18


def test_a_game_is_known_by_its_content(real):
    paths = sorted((real / "json_2.1.1").rglob("game.tw-pddl"))
    assert len({fingerprint(path) for path in paths}) == len(paths) == 17
    assert all(parsed(path)["solvable"] for path in paths)
