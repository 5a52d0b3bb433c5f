from __future__ import annotations

import subprocess
from itertools import count
from typing import TYPE_CHECKING

import pygit2
import pytest
from sample_run import PATH, RUN, clock_from, seed_skill, transitions, write_run

from skillgit.errors import FormatVersionError, HistoryError, RevisionNotFoundError, TrailerError
from skillgit.store import history_reader, refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.evidence import read_evidence
from skillgit.store.history import sources
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path


def clone(repo: Repo, target: Path, *arguments: str) -> Repo:
    subprocess.run(["git", "clone", "-q", *arguments, str(repo.workdir), str(target)], check=True, capture_output=True)
    return Repo.discover(target)


def git_in(repo: Repo, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=repo.workdir, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_fresh_clone_has_the_same_history(repo, history, git, tmp_path) -> None:
    git("switch", "-q", "--detach", f"{RUN}/v3")
    cloned = clone(repo, tmp_path / "clone", "--no-local")

    assert cloned.tip(refs.run_branch(RUN)) is None
    assert history_reader.runs(cloned) == [RUN]
    assert history_reader.read_run(cloned, RUN) == history
    assert read_evidence(cloned, history[0].evidence) is None


@pytest.mark.usefixtures("git")
def test_a_clone_of_another_remote_name_works_too(repo, history, tmp_path) -> None:
    cloned = clone(repo, tmp_path / "clone", "-o", "team/upstream", "--no-checkout")

    assert history_reader.read_run(cloned, RUN) == history


def test_checking_out_the_accepted_line_of_a_clone_hides_nothing(repo, history, tmp_path) -> None:
    cloned = clone(repo, tmp_path / "clone", "--no-checkout")
    git_in(cloned, "branch", f"run/{RUN}", f"origin/run/{RUN}")

    assert history_reader.read_run(cloned, RUN) == history


def test_what_other_runs_have_changes_nothing(repo, history) -> None:
    tips = repo.tips()
    others = {name.replace(RUN, "other"): tip for name, tip in tips.items()}
    others |= {name.replace("refs/heads/", "refs/remotes/origin/"): tip for name, tip in others.items()}
    assert sources(repo, RUN, tips | others) == sources(repo, RUN, tips) != []
    assert history


def test_side_branches_of_a_remote_that_went_another_way_are_left_out(repo, tmp_path) -> None:
    write_run(repo, events=2)
    cloned = clone(repo, tmp_path / "clone", "--no-checkout")
    own = RunWriter(cloned, RUN, clock_from(count(77)))
    three = transitions()[2]
    own.append(three.event, three.skill, three.evidence)
    theirs = RunWriter(repo, RUN, clock_from(count(2)))
    for sample in transitions()[2:]:
        theirs.append(sample.event, sample.skill, sample.evidence)

    git_in(cloned, "fetch", "-q")

    assert [record.event for record in history_reader.read_run(cloned, RUN)] == [
        sample.event for sample in transitions()[:3]
    ]


def test_training_goes_on_in_a_clone(repo, tmp_path) -> None:
    write_run(repo, events=5)
    cloned = clone(repo, tmp_path / "clone", "--no-checkout")

    writer = RunWriter(cloned, RUN, clock_from(count(5)))
    for sample in transitions()[5:]:
        writer.append(sample.event, sample.skill, sample.evidence)

    assert [record.event for record in history_reader.read_run(cloned, RUN)] == [
        sample.event for sample in transitions()
    ]
    assert cloned.tip(refs.rejected_branch(RUN, 2)) == repo.tip(refs.rejected_branch(RUN, 2))
    assert cloned.tip(refs.slow_branch(RUN)) == repo.tip(refs.slow_branch(RUN))
    assert cloned.tip(refs.best_branch(RUN)) == cloned.tip(refs.version_tag(RUN, 3))


def test_only_what_is_new_is_read(repo) -> None:
    writer = RunWriter(repo, RUN, clock_from(count()))
    since: dict[str, str] = {}
    for sample in transitions():
        recorded = writer.append(sample.event, sample.skill, sample.evidence)
        assert history_reader.read_new(repo, RUN, since) == [recorded]
        since = repo.tips()

    assert history_reader.read_new(repo, RUN, since) == []


def test_a_rewritten_line_is_read_as_a_whole(repo, history) -> None:
    since = {refs.run_branch(RUN): "0" * 40}

    assert history_reader.read_new(repo, RUN, since) == history


def test_a_single_commit_is_read_on_its_own(repo, history) -> None:
    for record in history:
        assert history_reader.read_commit(repo, record.commit) == record
        assert history_reader.message(repo, record.commit).startswith(("run: ", "skill: ", "skip: ", "slow: "))


def test_revisions_are_those_of_git(repo, history, git) -> None:
    for name in (f"{RUN}/v1", f"run/{RUN}", f"run/{RUN}~1", f"best/{RUN}^{{commit}}", history[3].commit[:10]):
        assert history_reader.resolve(repo, name) == git("rev-parse", f"{name}^{{commit}}").strip()


@pytest.mark.parametrize("name", ["nothing", "", "..", "v1", "0" * 40, "HEAD", f"{RUN}/v1:{PATH}", "a b", "\0"])
def test_what_is_no_revision_is_not_found(repo, history, name) -> None:
    assert history
    with pytest.raises(RevisionNotFoundError):
        history_reader.resolve(repo, name)


def test_runs_and_commits_that_are_not_there(repo) -> None:
    assert history_reader.runs(repo) == []
    with pytest.raises(RevisionNotFoundError, match="no run 'x'"):
        history_reader.read_run(repo, "x")
    with pytest.raises(RevisionNotFoundError):
        history_reader.read_commit(repo, "0" * 40)


def test_a_skill_that_is_not_there(repo, history) -> None:
    with pytest.raises(RevisionNotFoundError, match="no folder 'skills/other'"):
        history_reader.skill_at(repo, history[0].commit, "skills/other")
    assert history_reader.skill_at(repo, history[0].commit, PATH) == seed_skill()


def test_a_commit_with_trailers_out_of_place_in_the_line_is_named(repo, history, git) -> None:
    tree = git("rev-parse", f"run/{RUN}^{{tree}}").strip()
    identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    stranger = git(*identity, "commit-tree", tree, "-p", f"run/{RUN}", "-m", "skillgit-event: accepted").strip()
    git("update-ref", refs.run_branch(RUN), stranger)

    with pytest.raises(TrailerError, match=f"commit {stranger[:12]}: the commit has no skillgit trailers"):
        history_reader.read_run(repo, RUN)
    assert history


def test_a_newer_format_is_named(repo, history, git) -> None:
    message = history_reader.message(repo, history[-1].commit).replace("Skillgit-Format: 1", "Skillgit-Format: 2")
    tree = git("rev-parse", f"run/{RUN}^{{tree}}").strip()
    identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    newer = git(*identity, "commit-tree", tree, "-p", f"run/{RUN}~1", "-F", "-", stdin=message).strip()
    git("update-ref", refs.run_branch(RUN), newer)

    with pytest.raises(FormatVersionError, match="format 2") as refused:
        history_reader.read_run(repo, RUN)
    assert "newer skillgit" in refused.value.hint


def test_a_shallow_clone_is_an_error_with_advice(repo, history, git, tmp_path) -> None:
    assert history
    git("switch", "-q", "--detach", f"{RUN}/v3")
    cloned = clone(repo, tmp_path / "clone", "--no-local", "--depth=2", "--no-single-branch")

    with pytest.raises((RevisionNotFoundError, HistoryError)):
        history_reader.read_run(cloned, RUN)


def test_a_long_run_is_one_walk(repo, monkeypatch) -> None:
    """Each commit is looked up once, plus the start once more for the slow line."""
    history = write_run(repo)
    looked_up: list[str] = []
    real = Repo.commit

    def counting(self: Repo, oid: str) -> object:
        looked_up.append(oid)
        return real(self, oid)

    monkeypatch.setattr(Repo, "commit", counting)
    assert history_reader.read_run(repo, RUN) == history

    assert len(looked_up) == len(history) + 1


def test_branches_with_a_common_history_are_read_in_one_walk(tmp_path, monkeypatch):
    """Whoever makes a branch called run/… of each commit makes no run, and costs no more than one walk through all."""
    repo = Repo.init(tmp_path)
    tree = repo.raw.TreeBuilder().write()
    tip, commits = [], []
    for number in range(60):
        tip = [repo.raw.create_commit(None, *[pygit2.Signature("a", "a@b", number, 0)] * 2, str(number), tree, tip)]
        commits.append(str(tip[0]))
        repo.raw.references.create(f"refs/heads/run/r{number}", tip[0])
    read: list[str] = []
    commit = Repo.commit
    monkeypatch.setattr(Repo, "commit", lambda self, oid: read.append(oid) or commit(self, oid))

    for number in range(60):
        with pytest.raises(HistoryError, match=f"run r{number} has no beginning on run/r{number}"):
            history_reader.read_run(repo, f"r{number}")

    assert len(read) <= 2 * len(commits)


def test_a_commit_that_cannot_be_read_ends_each_walk_with_the_same_words(tmp_path):
    repo = Repo.init(tmp_path)
    tree = repo.raw.TreeBuilder().write()
    signature, message = pygit2.Signature("a", "a@b", 1, 0), "x\n\nSkillgit-Format: 1\nSkillgit-Event: praised\n"
    broken = repo.raw.create_commit(None, signature, signature, message, tree, [])
    for name in ("one", "two"):
        after = repo.raw.create_commit(None, signature, signature, name, tree, [broken])
        repo.raw.references.create(f"refs/heads/run/{name}", after)
    for name in ("one", "two", "one"):
        with pytest.raises(HistoryError, match=f"commit {str(broken)[:12]}: 'x' is not the subject of an event"):
            history_reader.read_run(repo, name)
