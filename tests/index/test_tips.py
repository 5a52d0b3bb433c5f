from __future__ import annotations

import os
import subprocess

import pytest
from sample_run import RUN, transitions, write_run

from skillgit.index import refresh
from skillgit.index.queries import events_of, run_names
from skillgit.index.version_queries import note_lines
from skillgit.store import notes, refs
from skillgit.store.event_writer import RunWriter

OTHER = "other-20261121-abcd"


@pytest.fixture
def git(repo):
    def run(*words):
        subprocess.run(["git", "-C", repo.workdir, *words], check=True, capture_output=True)

    return run


def pack(repo, git):
    """Pack all refs, and make the file look old, so that it is trusted to stay as it is."""
    git("pack-refs", "--all")
    os.utime(repo.common_dir / "packed-refs", ns=(10**18, 10**18))


def moves(repo, index):
    return refresh.moved_refs(index.connection, repo, repo.look())


def test_an_index_that_is_up_to_date_knows_it_from_a_look_alone(repo, git, monkeypatch):
    write_run(repo)
    pack(repo, git)
    refresh.open_index(repo).close()
    monkeypatch.setattr(refresh, "moved_refs", None)
    with refresh.open_index(repo) as index:
        assert events_of(index, RUN) == 9


def test_only_runs_that_moved_are_compared(repo, git, clock):
    write_run(repo, events=3)
    write_run(repo, OTHER)
    pack(repo, git)
    with refresh.open_index(repo) as index:
        sample = transitions()[3]
        RunWriter(repo, RUN, clock).append(sample.event, sample.skill, sample.evidence)
        before, now = moves(repo, index)
        assert {refs.run_of(name) for name in before} == {RUN}
        assert now.keys() - before.keys() == set()
        assert now != before
        index.refresh()
        assert events_of(index, RUN) == 4


def test_a_new_run_beside_packed_ones_is_found(repo, git):
    write_run(repo)
    pack(repo, git)
    with refresh.open_index(repo) as index:
        write_run(repo, OTHER)
        index.refresh()
        assert set(run_names(index)) == {RUN, OTHER}


def test_a_packed_ref_that_is_deleted_is_missed(repo, git):
    write_run(repo)
    write_run(repo, OTHER)
    pack(repo, git)
    with refresh.open_index(repo) as index:
        for name in [name for name in repo.tips() if refs.run_of(name) == OTHER]:
            git("update-ref", "-d", name)
        index.refresh()
        assert run_names(index) == (RUN,)


def test_a_loose_ref_that_is_deleted_uncovers_the_packed_one(repo, git, clock):
    write_run(repo, events=3)
    pack(repo, git)
    sample = transitions()[3]
    RunWriter(repo, RUN, clock).append(sample.event, sample.skill, sample.evidence)
    with refresh.open_index(repo) as index:
        assert events_of(index, RUN) == 4
        (repo.common_dir / refs.run_branch(RUN)).unlink()
        index.refresh()
        assert events_of(index, RUN) == 3


def test_packing_refs_changes_no_answer(repo, git, clock):
    write_run(repo, events=5)
    with refresh.open_index(repo) as index:
        pack(repo, git)
        index.refresh()
        assert events_of(index, RUN) == 5
        sample = transitions()[5]
        RunWriter(repo, RUN, clock).append(sample.event, sample.skill, sample.evidence)
        index.refresh()
        assert events_of(index, RUN) == 6


def test_notes_are_followed_beside_packed_refs(repo, git, clock):
    history = write_run(repo)
    pack(repo, git)
    with refresh.open_index(repo) as index:
        notes.append(repo, {history[0].commit: [{"kind": "evaluation"}]}, time=clock())
        index.refresh()
        assert note_lines(index, history[0].commit)


def test_a_run_that_cannot_be_read_is_named_at_every_opening(repo, git):
    write_run(repo)
    git("-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "--allow-empty", "-m", "no event")
    git("branch", "run/astray")
    pack(repo, git)
    for _ in range(2):
        with refresh.open_index(repo) as index:
            assert set(index.broken) == {"astray"}
    git("update-ref", "-d", "refs/heads/run/astray")
    with refresh.open_index(repo) as index:
        assert index.broken == {}


def test_an_index_that_nobody_can_write_is_used_all_the_same(repo, git):
    write_run(repo)
    refresh.open_index(repo).close()
    pack(repo, git)
    with refresh.open_index(repo) as index:
        index.connection.execute("DELETE FROM seen")
        index.connection.execute("PRAGMA query_only = ON")
        index.refresh()
        assert index.on_disk
        assert events_of(index, RUN) == 9
