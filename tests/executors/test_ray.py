"""Rollouts on a Ray cluster: a node that dies costs time, and no call, score or commit."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from program import QUICK, new_repository, refs, skillgit
from ray_nodes import two_nodes
from stage import Stage, any_alive
from trained_runs import RUN, small_run

from skillgit.domain.evaluation import Scored
from skillgit.errors import ConfigError

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def cluster():
    """A head without processors and two nodes with one each; tests may kill one of them and have to replace it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # for what the plug-in file imports
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        with two_nodes() as nodes:
            yield nodes


def fleet(address="", most=8):
    from skillgit.executors.ray_cluster import RaySource  # noqa: PLC0415 - not without the extra

    return RaySource(address, most)


@pytest.mark.usefixtures("cluster")
def test_nodes_give_what_this_process_gives_at_the_same_cost(tmp_path):
    inline, remote = Stage(folder=tmp_path), Stage(folder=tmp_path)
    assert remote.outcomes(remote.pool(fleet())) == inline.outcomes()
    assert len(remote.backend.requests) == 8
    assert remote.ledger.spent("") == inline.ledger.spent("")
    assert sorted(remote.notes("open")) == sorted(remote.notes("close"))


@pytest.mark.usefixtures("cluster")
def test_a_program_asks_its_model_on_its_own_node(tmp_path):
    inline, remote = Stage(folder=tmp_path, act="serve"), Stage(folder=tmp_path, act="serve")
    assert remote.outcomes(remote.pool(fleet())) == inline.outcomes()
    assert len(remote.backend.requests) == 16


def test_a_node_that_dies_costs_no_call_and_no_score_and_prints_nothing(cluster, tmp_path, capfd):
    inline, remote = Stage(folder=tmp_path), Stage(folder=tmp_path, act="pause")
    session = remote.session(remote.pool(fleet()))

    async def whole():
        work = asyncio.create_task(remote.roll_out(session))
        while len(remote.notes("rollout")) < 8:  # noqa: ASYNC110 - other processes write them
            await asyncio.sleep(0.01)
        node = next(iter(cluster.worker_nodes))
        await asyncio.to_thread(cluster.remove_node, node, allow_graceful=False)
        try:
            return await work
        finally:
            await session.aclose()

    rollouts = asyncio.run(whole())
    told = capfd.readouterr()
    cluster.add_node(num_cpus=1)
    assert told.out == ""
    assert "state-dump" not in told.err
    assert {one.item.id: (one.outcome, one.trajectory) for one in rollouts} == inline.outcomes()
    assert all(isinstance(one.outcome, Scored) for one in rollouts)
    assert len(remote.backend.requests) == 8
    assert len(remote.notes("rollout")) > 8 + 8


@pytest.mark.usefixtures("cluster")
def test_a_cancelled_attempt_ends_what_it_started(tmp_path):
    stage = Stage(folder=tmp_path, act="wait")
    session = stage.session(stage.pool(fleet()))

    async def whole():
        work = asyncio.create_task(stage.roll_out(session))
        await stage.noted("waiting")
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        await session.aclose()

    asyncio.run(whole())
    assert not any_alive(stage.notes("waiting"))


@pytest.mark.usefixtures("cluster")
def test_what_cannot_be_made_on_a_node_is_refused(tmp_path):
    stage = Stage(folder=tmp_path)
    pool = stage.pool(fleet())
    pool._recipe = replace(pool._recipe, root=Path("/nowhere"))
    with pytest.raises(ConfigError, match="cannot be made in a worker on "):
        stage.outcomes(pool)


def test_the_address_of_a_client_is_refused():
    with pytest.raises(ConfigError, match="Ray's client"):
        fleet("ray://head:10001")


def raylets():
    names = (path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdigit())
    found = set()
    for name in names:
        with suppress(OSError):
            if b"raylet" in name.read_bytes().partition(b"\0")[0]:
                found.add(name.parent.name)
    return found


def test_the_demo_has_the_same_commits_on_a_cluster_of_its_own_which_ends_with_it(tmp_path, tmp_path_factory):
    before = raylets()
    repository = new_repository(tmp_path / "repository")
    home = tmp_path / "home"
    home.mkdir()
    options = (*QUICK, "-o", "calls.executor=ray")
    skillgit("train", "demo", "--run", RUN, "-q", *options, cwd=repository, env={"HOME": str(home)})
    assert refs(repository) == refs(small_run(tmp_path_factory))
    assert raylets() <= before
    assert not (home / ".ray").exists(), "a token that Ray keeps would be asked for by clusters of the user's own"


def test_a_cluster_that_is_not_there_is_told_in_a_sentence(tmp_path):
    repository = new_repository(tmp_path / "repository")
    options = ("-o", "calls.executor=ray", "-o", "calls.ray_address=127.0.0.1:1")
    done = skillgit("train", "demo", "-q", *QUICK, *options, cwd=repository, code=2)
    assert "the Ray cluster 127.0.0.1:1 cannot be joined" in done.err
