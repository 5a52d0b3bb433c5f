from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from household_games import POTATO, WINS, Speaker, Table

from skillgit.domain.evaluation import Scored
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import EnvironmentFaultError
from skillgit.testing import check_environment
from skillgit_envs.alfworld import ALFWorld

if TYPE_CHECKING:
    from pathlib import Path


ITEM = Item(id="a", content=POTATO, task_type="pick_heat_then_place_in_recep")


def rolled_out(root: Path, target: Speaker, **options: int | bool) -> tuple[Trajectory, Scored, str, Table]:
    environment, table = ALFWorld(options, root), Table()
    environment._simulator = table  # type: ignore[assignment]

    async def run() -> tuple[Trajectory, tuple[Scored, str]]:
        trajectory = await environment.rollout(ITEM, environment.seed_skill(), target)
        return trajectory, await environment.score(ITEM, trajectory, target)

    trajectory, (scored, feedback) = asyncio.run(run())
    return trajectory, scored, feedback, table


def test_a_won_game_has_the_score_one_and_the_whole_conversation(tmp_path):
    target = Speaker("<think>hm</think><action>Dust</action>")
    trajectory, scored, feedback, _ = rolled_out(tmp_path, target)
    assert scored == Scored(1.0, 1.0)
    assert feedback == "done in 3 steps: dust"
    assert trajectory.answer == "won in 3 steps"
    assert [turn.role for turn in trajectory.turns] == ["user", *["assistant", "user"] * 3]
    assert "<commands>" not in "".join(turn.content for turn in trajectory.turns)
    assert [sum("Find what the task asks for" in message.text for message in heard) for heard in target.heard] == [
        1
    ] * 3
    assert [len(heard) for heard in target.heard] == [2, 4, 6]


def test_a_reply_without_a_command_uses_up_a_step_and_is_told_so(tmp_path):
    target = Speaker("I do not know.", "<action>dust</action>", "", "<action>look</action>")
    trajectory, scored, feedback, table = rolled_out(tmp_path, target, max_steps=5)
    assert table.given == ["", "dust", "", "look", "look"]
    assert scored == Scored(0.0, 0.0)
    assert trajectory.answer == "not won in 5 steps"
    assert "no command between <action> and </action>" in target.heard[1][-1].text
    assert feedback.startswith("not done after 5 steps, of which 5 are allowed: dust; 2 replies had no command; ")


def test_what_is_possible_is_shown_only_if_wanted(tmp_path):
    shown, hidden = Speaker("<action>dust</action>"), Speaker("<action>dust</action>")
    rolled_out(tmp_path, shown)
    rolled_out(tmp_path, hidden, admissible_commands=False)
    assert all("<commands>\ndust\nlook\n</commands>" in heard[-1].text for heard in shown.heard)
    assert not any("<commands>" in message.text for heard in hidden.heard for message in heard)


def test_a_window_shows_the_last_turns(tmp_path):
    target = Speaker("<action>look</action>")
    rolled_out(tmp_path, target, max_steps=6, history_length=1)
    assert [len(heard) for heard in target.heard] == [2, 4, 4, 4, 4, 4]
    assert all("Your task is to: dust." in heard[1].text for heard in target.heard)


def test_a_trajectory_without_a_result_is_no_loss(tmp_path):
    environment = ALFWorld({}, tmp_path)
    with pytest.raises(EnvironmentFaultError, match="reported no result"):
        asyncio.run(environment.score(ITEM, Trajectory(item_id="a", turns=(), answer=""), Speaker("")))


@pytest.mark.slow
def test_a_game_is_played_to_its_end_by_the_real_engine(tmp_path):
    environment, target = ALFWorld({}, tmp_path), Speaker(*(f"<action>{command}</action>" for command in WINS))

    async def run() -> tuple[Trajectory, tuple[Scored, str]]:
        trajectory = await environment.rollout(ITEM, environment.seed_skill(), target)
        return trajectory, await environment.score(ITEM, trajectory, target)

    trajectory, (scored, feedback) = asyncio.run(run())
    environment._simulator.close()
    assert scored == Scored(1.0, 1.0)
    assert feedback == "done in 6 steps: heat some potato and put it in diningtable"
    assert "You heat the potato 1 using the microwave 1." in trajectory.turns[8].content


@pytest.mark.soak
def test_the_environment_keeps_every_promise(tmp_path):
    made: list[ALFWorld] = []

    class Closed(ALFWorld):
        def __init__(self, options, root):
            super().__init__(options, root)
            made.append(self)

        def items(self, split):
            return [Item(id=f"{split}-a", content=POTATO | {"split": split}, task_type=ITEM.task_type)]

    check_environment(
        Closed, {"max_steps": 6}, tmp_path, answers=lambda _: [f"<action>{command}</action>" for command in WINS]
    )
    for environment in made:
        environment._simulator.close()
