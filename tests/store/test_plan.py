"""The plan of a run: it is taken where it is byte for byte what the run's first event names, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pygit2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_run import RUN

from skillgit.store import refs, tree
from skillgit.store.evidence import PLAN, plan_commit, read_evidence
from skillgit.store.repo import Repo, message_of

FILES = {
    "config.json": b'{"train": {"seed": 42}}\n',
    "environment.json": b'{"name": "demo"}\n',
    "splits.json": b'{"selection": [{"id": "q01", "digest": "d"}]}\n',
}
TRAJECTORY = {"selection/trajectories/a.json": b"what was said\n", "selection.json": b"[]\n"}


@pytest.fixture
def away(tmp_path, repo, history):
    """A repository without evidence, and the sample run's first event with the plan that a push would send."""
    start = history[0]
    evidence = str(tree.write_files(repo, FILES | TRAJECTORY).id)
    start = replace(start, evidence=evidence)
    commit = plan_commit(repo, start)
    assert commit == plan_commit(repo, start), "it is the same whenever it is made"
    bare = Repo.init(tmp_path / "away")
    return bare, start, message_of(repo.commit(commit)), tree.read_files(repo, repo.commit(commit).tree)


def planted(repo: Repo, message: str, files: dict[str, bytes], name: str = refs.plan_ref(RUN)) -> str:
    someone = pygit2.Signature("someone", "someone@localhost", 0, 0)
    oid = repo.raw.create_commit(None, someone, someone, message, tree.write_files(repo, files).id, [])
    repo.raw.references.create(name, oid, force=True)
    return str(oid)


@pytest.mark.parametrize("name", [refs.plan_ref(RUN), f"refs/skillgit/remotes/some/where/plan/{RUN}"])
def test_a_plan_stands_for_the_evidence_wherever_nothing_else_is_asked_for(away, name):
    repo, start, message, files = away
    assert read_evidence(repo, start.evidence, PLAN) is None
    oid = planted(repo, message, files, name)
    assert read_evidence(repo, start.evidence, PLAN) == FILES
    assert read_evidence(repo, start.evidence, ("config.json",)) == {"config.json": FILES["config.json"]}
    assert read_evidence(repo, start.evidence) is None
    assert read_evidence(repo, start.evidence, ("config.json", "selection.json")) is None
    assert plan_commit(repo, start) == oid, "who was sent it sends it on as it is"


def test_no_trajectory_and_no_outcome_is_in_a_plan(away):
    _, _, _, files = away
    assert files.keys() == {*FILES, "listing"}
    assert not any(content in b"".join(files.values()) for content in TRAJECTORY.values())


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_whatever_is_changed_in_a_plan_it_counts_no_more(away, data):
    """A plan that a host, or somebody with a right to push, has touched: nobody acts on it, not even its owner."""
    repo, start, message, files = away
    name = data.draw(st.sampled_from(sorted(files)))
    content = files[name]
    at = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(at, len(content)))
    new = content[:at] + data.draw(st.binary(max_size=40)) + content[end:]
    planted(repo, message, files | {name: new})
    assert read_evidence(repo, start.evidence, PLAN) == (FILES if new == content else None)


@pytest.mark.parametrize("name", ["tried.json", "pinned.json", "selection.json"])
def test_a_file_that_the_evidence_lacks_or_that_is_no_plan_is_not_read(away, name):
    repo, start, message, files = away
    planted(repo, message, files | {name: b'{"env": {"sandbox": "none"}}'})
    assert read_evidence(repo, start.evidence, PLAN) == FILES
    assert not (read_evidence(repo, start.evidence, (name,)))
    assert not ({})


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_plan_that_holds_back_a_file_is_none(away, name):
    repo, start, message, files = away
    planted(repo, message, {path: content for path, content in files.items() if path != name})
    assert read_evidence(repo, start.evidence, PLAN) is None


def test_a_run_without_evidence_has_no_plan(repo, history):
    start = history[0]
    without = replace(start, evidence="")
    assert plan_commit(repo, without) is None
