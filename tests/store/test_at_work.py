"""Whenever git prunes while something is written, nothing that refs lead to is lost."""

from __future__ import annotations

import subprocess
from itertools import count

import pytest
from sample_run import PATH, RUN, clock_from, seed_skill, transitions, write_run
from soaking import sampled, soak

from skillgit.store import evidence, git_binary, history, history_reader, notes, promotion, transaction, work_tree
from skillgit.store.event_writer import RunWriter
from skillgit.store.repo import Repo

TIME = clock_from(count())()
RELEASE = promotion.Release(tag="refs/tags/demo-1.0.0", message="1.0.0\n", document=b"---\nname: demo\n---\n\n# New\n")


def seed(repo):
    work_tree.add_skill(repo, PATH, seed_skill(), time=TIME)


def note(repo):
    notes.append(repo, {history_reader.read_run(repo, RUN)[1].commit: [{"kind": "flaky"}]}, time=TIME)


def version(repo):
    return history_reader.read_run(repo, RUN)[1].commit


def promote(repo):
    promotion.promote(repo, PATH, version(repo), "Promote\n", time=TIME, reason="test", release=RELEASE)


def tag(repo):
    promotion.tag_release(repo, RELEASE, time=TIME, reason="test")


def drop(repo):
    records = history_reader.read_run(repo, RUN)
    evidence.drop(repo, RUN, records, [records[1]], clock_from(count()))


def append(repo):
    sample = transitions()[2]
    RunWriter(repo, RUN, clock_from(count())).append(sample.event, sample.skill, sample.evidence)


def nothing(_repo):
    return None


WRITERS = {
    "seed": ((), seed),
    "note": ((write_run,), note),
    "second note": ((write_run, note), lambda repo: notes.append(repo, {version(repo): [{"a": 1}]}, time=TIME)),
    "promote": ((write_run, seed), promote),
    "tag": ((write_run, seed), tag),
    "fold": ((write_run,), lambda repo: history.fold(repo, RUN)),
    "unfold": ((write_run, lambda repo: history.fold(repo, RUN)), lambda repo: history.unfold(repo, RUN)),
    "drop": ((write_run,), drop),
    "append": ((lambda repo: write_run(repo, events=2),), append),
}


class Steps:
    """Calls ``act`` after the step ``at`` of what is written."""

    def __init__(self, monkeypatch, repo, at, act):
        self.number, self.at, self.act = 0, at, act
        for owner, name in ((repo, "write_blob"), (repo.raw, "create_commit"), (transaction, "_lock")):
            monkeypatch.setattr(owner, name, self.stepping(getattr(owner, name)))
        monkeypatch.setattr(transaction, "keep", self.stepping(transaction.keep, before=True))

    def stepping(self, work, *, before=False):
        def stepped(*arguments, **options):
            made = None if before else work(*arguments, **options)
            self.number += 1
            if self.number == self.at:
                self.act()
            return work(*arguments, **options) if before else made

        return stepped


def prune(repo):
    subprocess.run(["git", "prune", "--expire=now"], cwd=repo.workdir, check=True, capture_output=True)


def collect(repo):
    subprocess.run(["git", "gc", "--quiet", "--prune=now"], cwd=repo.workdir, check=False, capture_output=True)


def is_whole(repo):
    command = ["git", "fsck", "--connectivity-only", "--no-dangling"]
    done = subprocess.run(command, cwd=repo.workdir, capture_output=True, text=True, check=False)
    return done.returncode == 0 and "missing" not in done.stdout, done


def prepared(folder, before):
    repo = Repo.init(folder)
    for work in before:
        work(repo)
    return repo


@pytest.mark.parametrize("name", sampled(WRITERS, 3))
@pytest.mark.parametrize("tidy", [soak(prune), collect])
def test_whatever_git_prunes_at_any_step_is_written_all_the_same(name, tidy, tmp_path, monkeypatch):
    before, work = WRITERS[name]
    undisturbed = prepared(tmp_path / "undisturbed", before)
    with monkeypatch.context() as patch:
        steps = Steps(patch, undisturbed, 0, nothing)
        work(undisturbed)
    assert steps.number
    for at in range(1, steps.number + 1):
        repo = prepared(tmp_path / str(at), before)
        with monkeypatch.context() as patch:
            Steps(patch, repo, at, lambda repo=repo: tidy(repo))
            work(repo)
        whole, told = is_whole(repo)
        assert whole, (at, told)
        assert Repo.discover(tmp_path / str(at)).tips() == undisturbed.tips()


@pytest.mark.parametrize("name", WRITERS)
def test_what_git_prunes_after_the_refs_moved_is_written_before_the_process_ends(name, tmp_path, monkeypatch):
    before, work = WRITERS[name]
    repo = prepared(tmp_path / "repository", before)
    objects = repo.common_dir / "objects"
    old, working = set(objects.glob("??/*")), {7}
    monkeypatch.setattr(git_binary, "_pruning", lambda _: frozenset(working))
    work(repo)
    young = set(objects.glob("??/*")) - old
    for path in young:
        path.unlink()
    working.clear()
    git_binary._settle()
    assert git_binary._writes == []
    assert set(objects.glob("??/*")) - old >= young
    assert is_whole(repo)[0]
    assert young or name == "unfold"


def test_a_git_that_prunes_is_seen_and_others_are_not(repo):
    command = ["git", "-c", "alias.gc=x", "hash-object", "--stdin"]
    with subprocess.Popen(command, cwd=repo.workdir, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as other:
        while not git_binary.git_is_at_work(repo):  # it has its name a moment after it began
            assert other.poll() is None
        assert git_binary._pruning(repo) == frozenset()
        other.stdin.close()
    hook = repo.common_dir / "hooks" / "pre-auto-gc"
    hook.parent.mkdir(exist_ok=True)
    gate = repo.common_dir / "gate"
    hook.write_text(f"#!/bin/sh\necho here\nread line < {gate}\n")
    hook.chmod(0o755)
    subprocess.run(["mkfifo", str(gate)], check=True)
    repo.set_config("gc.auto", "1")
    repo.set_config("gc.autoDetach", "false")
    for number in range(9):  # git counts the objects in this folder
        path = repo.common_dir / "objects" / "17" / f"{number:038x}"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    command = ["git", "gc", "--auto"]
    with subprocess.Popen(command, cwd=repo.workdir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as gc:
        while b"here" not in gc.stdout.readline():
            assert gc.poll() is None
        assert gc.pid in git_binary._pruning(repo)
        gate.write_text("go\n")
        gc.communicate()
