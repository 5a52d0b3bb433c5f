"""A writer that is killed at any moment of an append leaves either the whole event or none of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import count

import pytest
from program import python
from sample_run import RUN, clock_from, transitions, write_run
from soaking import sampled, soak

from skillgit.app.upkeep.run_checks import check_run
from skillgit.errors import ConflictError, HistoryError
from skillgit.store import history_reader, refs, transaction
from skillgit.store.event_writer import RunWriter
from skillgit.store.repair import remove_locks, repair_run
from skillgit.store.repo import Repo
from skillgit.store.transaction import RefUpdate, update_refs

KILLED = """
import os, signal, sys
from itertools import count
from pathlib import Path

sys.path[:0] = {path!r}
from pygit2.transaction import ReferenceTransaction
from sample_run import RUN, clock_from, transitions
from skillgit.store import event_writer, transaction
from skillgit.store.repo import Repo

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def after(function, calls):
    seen = count(1)
    def wrapped(*arguments, **named):
        result = function(*arguments, **named)
        if next(seen) == calls:
            die()
        return result
    return wrapped

{hook}
made = event_writer.RunWriter(Repo.discover(Path({repo!r})), RUN, clock_from(count({done})))
sample = transitions()[{done}]
made.append(sample.event, sample.skill, sample.evidence, local=None if {done} else {{}})
"""

HOOKS = {
    "before refs move": "event_writer.update_refs = die",
    "with one ref locked": "ReferenceTransaction.lock_ref = after(ReferenceTransaction.lock_ref, 1)",
    "with two refs locked": "ReferenceTransaction.lock_ref = after(ReferenceTransaction.lock_ref, 2)",
    "with all refs locked": "transaction._compare = die",
    "with targets set": "ReferenceTransaction.commit = die",
    "after the first refs moved": "ReferenceTransaction.commit = after(ReferenceTransaction.commit, 1)",
    "after the second refs moved": "ReferenceTransaction.commit = after(ReferenceTransaction.commit, 2)",
    "after all refs moved": "event_writer.update_refs = after(event_writer.update_refs, 1)",
}


def killed(repo: Repo, hook: str, done: int) -> None:
    program = repo.workdir.with_name("killed.py")
    program.write_text(KILLED.format(path=sys.path, hook=hook, repo=str(repo.workdir), done=done))
    ended = python(program)
    assert ended.code == -signal.SIGKILL, ended


def go_on(repo: Repo) -> None:
    done = len(history_reader.read_run(repo, RUN)) if history_reader.runs(repo) else 0
    writer = RunWriter(repo, RUN, clock_from(count(done)))
    for sample in transitions()[done:]:
        writer.append(sample.event, sample.skill, sample.evidence)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "_PATIENCE_S", 0.05)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("done", [1, 4, soak(0), soak(2), soak(5)])
@pytest.mark.parametrize("pruned", ["pruned", soak("")])
@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_a_killed_run_goes_on_to_the_same_commits(tmp_path, hook, done, pruned) -> None:
    unbroken = Repo.init(tmp_path / "unbroken")
    write_run(unbroken)
    broken = Repo.init(tmp_path / "broken")
    write_run(broken, events=done)

    killed(broken, hook, done)
    if pruned:
        subprocess.run(["git", "prune", "--expire=now"], cwd=broken.workdir, check=True)
    go_on(Repo.discover(broken.workdir))

    assert broken.tips() == unbroken.tips()
    assert check_run(broken, RUN) == []
    assert list(broken.common_dir.glob("refs/**/*.lock")) == []


@pytest.mark.parametrize("stage", ["after the first refs moved", "after the second refs moved"])
@pytest.mark.parametrize("done", sampled([0, 1, 2, 4, 5], 4))
def test_what_died_amid_the_moves_is_repaired(tmp_path, done, stage) -> None:
    broken, unbroken = Repo.init(tmp_path / "broken"), Repo.init(tmp_path / "unbroken")
    write_run(broken, events=done)
    write_run(unbroken, events=done + 1)

    killed(broken, HOOKS[stage], done)
    assert all(problem.repairable for problem in check_run(broken, RUN))
    remove_locks(broken)
    repair_run(broken, RUN)

    assert broken.tips() == unbroken.tips()
    assert check_run(broken, RUN) == []


def test_what_died_before_refs_moved_is_garbage(tmp_path) -> None:
    repo = Repo.init(tmp_path / "repo")
    write_run(repo, events=1)
    before = repo.tips()

    killed(repo, HOOKS["before refs move"], 1)

    assert repo.tips() == before
    found = subprocess.run(["git", "fsck", "--dangling"], cwd=repo.workdir, capture_output=True, check=True, text=True)
    assert "dangling commit" in found.stdout


def torn(repo: Repo, *moved: str) -> None:
    """Leave the second event half visible: of the refs that it moves, only ``moved`` did."""
    before = repo.tips()
    sample = transitions()[1]
    RunWriter(repo, RUN, clock_from(count(1))).append(sample.event, sample.skill, sample.evidence)
    for name in set(repo.tips()) - set(moved):
        if name in before:
            repo.raw.references[name].set_target(before[name])
        else:
            repo.raw.references.delete(name)


MOVES = (f"refs/heads/run/{RUN}", f"refs/heads/best/{RUN}", f"refs/tags/{RUN}/v1", f"refs/skillgit/evidence/{RUN}")


@pytest.mark.parametrize("moved", sampled(range(2 ** len(MOVES)), 3))
def test_refs_that_moved_only_in_part_are_mended_by_the_next_event(tmp_path, moved) -> None:
    unbroken = Repo.init(tmp_path / "unbroken")
    write_run(unbroken)
    repo = Repo.init(tmp_path / "torn")
    write_run(repo, events=1)

    torn(repo, *(name for place, name in enumerate(MOVES) if moved >> place & 1))
    go_on(repo)

    assert repo.tips() == unbroken.tips()
    assert check_run(repo, RUN) == []


def update(repo: Repo, name: str, commit: str, expected: str | None) -> None:
    update_refs(repo, [RefUpdate(name=name, new=commit, old=expected)], reason="test")


@pytest.mark.usefixtures("impatient")
def test_a_lock_that_nobody_touches_is_removed(repo, git) -> None:
    history = write_run(repo)
    name = refs.best_branch(RUN)
    lock = repo.common_dir / f"{name}.lock"
    lock.touch()
    with pytest.raises(subprocess.CalledProcessError):
        git("update-ref", name, history[0].commit)

    update(repo, name, history[0].commit, history[6].commit)

    assert not lock.exists()
    assert repo.tip(name) == history[0].commit


def test_a_lock_that_its_owner_gives_back_is_waited_for(repo, monkeypatch) -> None:
    history = write_run(repo)
    name = refs.best_branch(RUN)
    lock = repo.common_dir / f"{name}.lock"
    lock.touch()
    looks = count()

    def pause(seconds: float) -> None:
        del seconds
        if next(looks) == 3:
            lock.unlink()

    monkeypatch.setattr(transaction.time, "sleep", pause)
    update(repo, name, history[0].commit, history[6].commit)

    assert repo.tip(name) == history[0].commit


@pytest.mark.usefixtures("impatient")
def test_refs_that_cannot_be_locked_at_all_are_an_error(repo) -> None:
    history = write_run(repo, events=1)
    (repo.common_dir / "refs" / "odd").write_text("not a folder\n")

    with pytest.raises(ConflictError, match="git cannot lock"):
        update(repo, "refs/odd/x", history[0].commit, None)


def test_a_run_whose_ref_is_damaged_is_not_started_again(repo) -> None:
    write_run(repo, events=2)
    (repo.common_dir / refs.run_branch(RUN)).write_text("")
    sample = transitions()[0]

    with pytest.raises(HistoryError, match=f"git cannot read run/{RUN}"):
        RunWriter(repo, RUN, clock_from(count())).append(sample.event, sample.skill, sample.evidence)
