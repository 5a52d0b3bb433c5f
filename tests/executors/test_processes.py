"""Rollouts in worker processes: what an inline run gives, even where workers die, hang or lie."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from unittest.mock import Mock

import pytest
from program import QUICK, new_repository, refs, skillgit
from soaking import soak
from stage import Stage, any_alive
from trained_runs import RUN, small_run

from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import FailedToEvaluate, FailureKind, Scored
from skillgit.errors import BudgetError, ConfigError, EnvironmentFaultError
from skillgit.executors import pool
from skillgit.executors.worker import Frame


def test_workers_give_what_this_process_gives_at_the_same_cost(tmp_path):
    inline, process = Stage(folder=tmp_path), Stage(folder=tmp_path)
    assert process.outcomes(process.pool()) == inline.outcomes()
    assert len(process.backend.requests) == len(inline.backend.requests) == 8
    pids = {line.split()[1] for line in inline.notes("rollout")}
    assert pids > {str(os.getpid())}
    assert process.ledger.spent("") == inline.ledger.spent("")
    assert process.outcomes() == inline.outcomes(), "each finds what the other would ask in its ledger"
    assert len(process.backend.requests) == 8


def test_environments_are_opened_and_closed_where_they_are_used(tmp_path):
    stage = Stage(folder=tmp_path)
    stage.outcomes(stage.pool())
    assert sorted(stage.notes("open")) == sorted(stage.notes("close"))
    assert str(os.getpid()) not in stage.notes("open")
    assert not any_alive(stage.notes("open"))


def test_a_killed_worker_costs_its_items_another_try_and_no_call(tmp_path):
    stage, inline = Stage(folder=tmp_path, act="die_once"), Stage(folder=tmp_path)
    assert stage.outcomes(stage.pool()) == inline.outcomes()
    assert len(stage.backend.requests) == 8, "what was asked before is in the ledger"
    tries = [line.split()[0] for line in stage.notes("rollout")]
    assert len(tries) > 16, "items were tried again, here and in the inline run"


def test_an_item_that_kills_its_worker_each_time_has_no_score_and_takes_no_other_with_it(tmp_path):
    stage = Stage(folder=tmp_path, act="die")
    outcomes = {name: outcome for name, (outcome, _) in stage.outcomes(stage.pool()).items()}
    failed = outcomes.pop("selection3")
    assert isinstance(failed, FailedToEvaluate)
    assert failed.kind is FailureKind.ENVIRONMENT
    assert all(isinstance(outcome, Scored) for outcome in outcomes.values())


@pytest.mark.parametrize("act", ["fail", soak("pickle")])
def test_an_environment_that_fails_in_a_worker_says_so_as_it_does_here(act, tmp_path):
    stage, inline = Stage(folder=tmp_path, act=act), Stage(folder=tmp_path, act=act)
    there, here = stage.outcomes(stage.pool()), inline.outcomes()
    reason = there["selection3"][0].reason
    if act == "fail":
        assert there == here
        assert "the environment raised ValueError: no such cell (scene.py, line " in reason
    else:
        assert "pickle" in reason
    assert sum(isinstance(outcome, Scored) for outcome, _ in there.values()) == 7


class LosingSource(pool.WorkerSource):
    """One worker at a time, which is ready, is lost with its first attempt, and takes some turns of the loop to go."""

    tries, alone_from = 1, 1

    def __init__(self):
        super().__init__(most=1)
        self.started = self.gone = 0

    async def size(self):
        return 1

    async def start_worker(self, recipe):
        del recipe
        begun = asyncio.Event()
        self.started += 1

        async def frames():
            yield Frame("ready")
            await begun.wait()

        async def end():
            for _ in range(20):
                await asyncio.sleep(0)
            self.gone += 1

        return pool.WorkerLink(lambda _: begun.set(), frames(), end)


def test_a_pool_closes_once_the_last_of_its_workers_is_gone():
    source = LosingSource()
    workers = pool.WorkerPool(recipe=None, source=source)

    async def whole():
        with suppress(EnvironmentFaultError):
            await workers.attempt(None, None, None, Mock(), Mock())
        await workers.close(None)

    asyncio.run(whole())
    assert source.started == source.gone > 0


def test_a_program_asks_its_model_on_the_machine_that_it_runs_on(tmp_path):
    stage, inline = Stage(folder=tmp_path, act="serve"), Stage(folder=tmp_path, act="serve")
    assert stage.outcomes(stage.pool()) == inline.outcomes()
    assert len(stage.backend.requests) == 16
    assert stage.ledger.spent("") == inline.ledger.spent("")


@pytest.mark.parametrize("act", ["", soak("serve")])
def test_a_cap_ends_the_run_wherever_it_is_met(act, tmp_path):
    stage = Stage(folder=tmp_path, act=act)
    with pytest.raises(BudgetError):
        stage.outcomes(stage.pool(), caps=Caps(max_calls=3))
    assert not any_alive(stage.notes("open"))


def test_an_attempt_that_never_gives_way_is_ended_with_what_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_GIVE_WAY_S", 0.2)
    stage = Stage(folder=tmp_path, act="hang")
    session = stage.session(stage.pool())

    async def whole():
        work = asyncio.create_task(stage.roll_out(session))
        await stage.noted("hanging")
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        await session.aclose()

    asyncio.run(whole())
    assert not any_alive(chain(stage.notes("hanging"), stage.notes("open")))


def test_a_cancelled_attempt_ends_what_it_started_and_its_worker_goes_on(tmp_path):
    stage = Stage(folder=tmp_path, act="wait")
    session = stage.session(stage.pool())

    async def whole():
        work = asyncio.create_task(stage.roll_out(session))
        await stage.noted("waiting")
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        while any_alive(stage.notes("waiting")):  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.01)
        assert any_alive(stage.notes("open"))
        await session.aclose()

    asyncio.run(whole())
    assert not any_alive(stage.notes("open"))


def test_what_is_another_environment_in_a_worker_is_refused(tmp_path):
    stage = Stage(folder=tmp_path, act="differ")
    with pytest.raises(ConfigError, match="is another one in a worker"):
        stage.outcomes(stage.pool())


def test_what_cannot_be_made_in_a_worker_is_refused(tmp_path):
    stage = Stage(folder=tmp_path)
    made = stage.pool()
    made._recipe = replace(made._recipe, name="scene.py:Nothing")
    with pytest.raises(ConfigError, match=r"cannot be made in a worker on .*: environment 'scene.py:Nothing' has no"):
        stage.outcomes(made)


def test_a_worker_that_never_starts_ends_the_run_with_a_sentence(tmp_path, monkeypatch):
    stage = Stage(folder=tmp_path)
    monkeypatch.setenv("SCENE_ENDS", str(os.getpid()))
    with pytest.raises(ConfigError, match="before it is ready"):
        stage.outcomes(stage.pool(pool.ProcessSource(1)))


def test_the_demo_has_the_same_commits_with_workers(tmp_path, tmp_path_factory):
    repository = new_repository(tmp_path / "repository")
    skillgit("train", "demo", "--run", RUN, "-q", *QUICK, "-o", "calls.executor=process", cwd=repository)
    assert refs(repository) == refs(small_run(tmp_path_factory))


PARENT = """
import asyncio, sys
from pathlib import Path
from stage import Stage
stage = Stage(folder=Path(sys.argv[1]), act="hang")
asyncio.run(stage.roll_out(stage.session(stage.pool())))
"""


def test_workers_end_with_the_process_that_started_them(tmp_path):
    stage = Stage(folder=tmp_path, act="wait")
    program = PARENT.replace("hang", "wait")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], env=environ) as parent:
        while not stage.notes("waiting"):
            assert parent.poll() is None
        parent.send_signal(signal.SIGKILL)
    while any_alive(chain(stage.notes("waiting"), stage.notes("open"))):
        pass  # the time limit of tests ends it
