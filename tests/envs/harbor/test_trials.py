"""Trials in a stand-in for Harbor's few classes: what is a score, what is a fault, and that nothing is left.

The real package is tried in ``test_training``.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from harbor_trials import SKILL, Serves, outcome

from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit_envs.harbor import Harbor

ONE = 'rewards {"reward": 1}'


def left(played) -> list[Path]:
    return list((played.folder / "temporary").iterdir())


@pytest.mark.parametrize(
    ("rewards", "options", "scores"),
    [
        ('{"reward": 1}', {}, (1, 1)),
        ('{"reward": 0.5}', {}, (0, 0.5)),
        ('{"reward": 0.5}', {"pass_at": 0.5}, (1, 0.5)),
        ('{"reward": 40}', {"full_reward": 80.0, "pass_at": 60.0}, (0, 0.5)),
        ('{"speed": 0.25, "reward": 1}', {"reward": "speed"}, (0, 0.25)),
    ],
)
def test_the_verifier_scores(played, rewards, options, scores):
    scored, feedback = played.rollout(f"rewards {rewards}", **options)
    assert (scored.hard, scored.soft) == scores
    assert feedback.startswith("reward ")
    assert left(played) == []


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "its verifier gave no reward"),
        (("error EnvironmentStartTimeoutError",), "EnvironmentStartTimeoutError: it failed"),
        ((ONE, "error VerifierTimeoutError", "invalid yes"), "VerifierTimeoutError"),
        (('rewards {"other": 1}',), "no number as reward"),
        (('rewards {"reward": NaN}',), "no number as reward"),
        (('rewards {"reward": "good"}',), "no number as reward"),
        (('rewards {"reward": 3}',), "not a share of env.full_reward"),
        (("raise of the task",), "ValueError: of the task"),
    ],
)
def test_what_is_no_reward_is_a_fault_and_never_a_score(played, lines, message):
    with pytest.raises(EnvironmentFaultError, match=message):
        played.rollout(*lines)
    assert left(played) == []


def test_an_agent_that_fails_gets_what_the_verifier_says(played):
    scored, feedback = played.rollout('rewards {"reward": 0}', "error AgentTimeoutError", "output too little")
    assert scored.soft == 0
    assert feedback == "reward 0\nthe agent failed: AgentTimeoutError: it failed\ntoo little"


def test_feedback_has_no_token_and_no_line_of_the_tests(played):
    _, feedback = played.rollout(ONE, "output the key is TOKEN")
    assert feedback.endswith("the key is [redacted]")


def test_a_line_that_the_tests_hold_is_left_out(played):
    quotation = "grep -q 'forty-two crates' /app/answer"
    _, feedback = played.rollout(ONE, f"output >   {quotation}")
    assert feedback == "reward 1"


def test_a_trial_whose_process_dies_is_begun_again_by_a_model_that_is_served_anew(played, tmp_path):
    played.task("tried", ONE, f"die {tmp_path / 'mark'}")
    target = Serves()
    scored, _ = asyncio.run(outcome(played.environment(), target))
    assert scored.hard == 1
    assert target.rounds == 2
    assert left(played) == []


def test_a_cancelled_rollout_ends_its_trial(played, tmp_path):
    waiting = tmp_path / "waiting"
    played.task("tried", f"wait {waiting}")
    environment = played.environment()
    folders = []

    def begun() -> None:
        while not waiting.exists():
            time.sleep(0.01)
        folders.append(Path(waiting.read_text()))
        assert folders[0].exists()

    async def cancelled():
        await environment.open()
        item = next(item for split in environment._splits.values() for item in split if item.id == "tried")
        task = asyncio.create_task(environment.rollout(item, SKILL, Serves()))
        await asyncio.to_thread(begun)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert [waiting.read_text(), *map(Path.exists, folders)] == ["ended", False]
        await environment.close()

    asyncio.run(cancelled())
    assert left(played) == []


def test_it_may_be_opened_again_after_it_was_closed(played):
    played.task("tried", ONE)
    environment = played.environment()
    for _ in range(2):
        assert asyncio.run(outcome(environment, Serves()))[0].hard == 1


def test_a_python_without_harbor_is_a_sentence_and_a_way_out(played):
    with pytest.raises(ConfigError, match=r"cannot run Harbor: .*No module named 'harbor'") as raised:
        played.rollout(ONE, modules="")
    assert "pip install harbor" in raised.value.hint
    with pytest.raises(ConfigError, match="cannot be run: No such file"):
        asyncio.run(played.environment(python="/nowhere/python").open())
    assert left(played) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent_args": "[1]"}, "env.agent_args is not a JSON object"),
        ({"full_reward": 0.0}, "env.full_reward must be above 0"),
        ({"variables": "KEY=value"}, "env.variables has names only"),
    ],
)
def test_a_wrong_option_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Harbor(options, Path())


def test_an_agent_has_to_be_named(played):
    with pytest.raises(ConfigError, match=r"env\.agent names no agent"):
        asyncio.run(played.environment(agent="").open())


def test_a_start_that_takes_too_long_is_told(played, monkeypatch):
    monkeypatch.setattr("skillgit_envs.harbor.trial_process._START_S", 0.0)
    with pytest.raises(EnvironmentFaultError, match="Harbor did not start within 0 s"):
        played.rollout(ONE)
    assert left(played) == []
