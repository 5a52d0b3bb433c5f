"""Repositories that are not what ``git init`` makes: skillgit works in them, or says in one sentence why it cannot."""

from __future__ import annotations

import shutil
import subprocess
from itertools import count
from typing import TYPE_CHECKING

import pytest
from program import SKILLGIT, attempt, git, refs, skillgit, surroundings
from sample_run import PATH, RUN, clock_from, transitions, write_run

from skillgit.store.event_writer import RunWriter

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.store.repo import Repo

EVENTS = 9
pytestmark = pytest.mark.slow


@pytest.fixture
def place(repo: Repo) -> Path:
    """A repository with the sample run."""
    write_run(repo)
    folder = repo.workdir
    assert folder is not None
    for key, value in (("user.name", "a"), ("user.email", "a@localhost")):
        git("config", key, value, cwd=folder)
    return folder


def looks(folder: Path, events: int = EVENTS) -> None:
    """Look at the run in every way that reads objects, refs and the index."""
    assert len(skillgit("log", RUN, "--plain", cwd=folder).out.splitlines()) == events
    assert skillgit("diff", f"{RUN}/v0", f"{RUN}/v1", cwd=folder).out.startswith("diff --git")
    deep = skillgit("fsck", "--deep", cwd=folder).out
    assert "no problems" in deep
    assert f"{RUN}: {events} events made again" in deep


def test_a_bare_repository(place, tmp_path):
    git("clone", "-q", "--mirror", place, tmp_path / "bare.git", cwd=tmp_path)
    looks(tmp_path / "bare.git")
    skillgit("gc", "--fold", cwd=tmp_path / "bare.git")
    looks(tmp_path / "bare.git")


def test_a_linked_work_tree_shares_index_and_locks_with_the_main_one(place, tmp_path):
    git("worktree", "add", "-q", "--detach", tmp_path / "beside", f"{RUN}/v1", cwd=place)
    looks(tmp_path / "beside")
    assert (place / ".git" / "skillgit" / "index.db").is_file()
    assert not list((place / ".git" / "worktrees").rglob("index.db"))
    skillgit("gc", "--fold", cwd=tmp_path / "beside")
    assert f"refs/skillgit/attic/{RUN}" in refs(place)
    looks(place)


def test_a_run_goes_on_though_its_branch_is_checked_out_elsewhere(repo, tmp_path):
    write_run(repo, events=6)
    git("worktree", "add", "-q", tmp_path / "beside", f"run/{RUN}", cwd=repo.workdir)
    writer = RunWriter(repo, RUN, clock_from(count(6)))
    for sample in transitions()[6:]:
        writer.append(sample.event, sample.skill, sample.evidence)
    looks(tmp_path / "beside")
    stale = git("status", "--porcelain", cwd=tmp_path / "beside").out
    assert stale.split() == ["M", f"{PATH}/SKILL.md"], "the branch moved, and the work tree is left as it was"
    git("reset", "-q", "--hard", cwd=tmp_path / "beside")
    looks(tmp_path / "beside")


def test_a_folder_inside_the_work_tree(place):
    git("checkout", "-q", f"{RUN}/v1", cwd=place)
    looks(place / PATH)


def test_a_detached_head(place):
    git("checkout", "-q", "--detach", f"{RUN}/v0", cwd=place)
    looks(place)
    assert skillgit("status", cwd=place).code == 0


def test_packed_refs_and_packed_objects(place):
    git("pack-refs", "--all", "--prune", cwd=place)
    git("repack", "-adq", cwd=place)
    looks(place)
    skillgit("gc", "--fold", cwd=place)
    looks(place)
    skillgit("gc", "--unfold", cwd=place)
    looks(place)


def test_folded_refs_in_a_clone_that_fetched_them(place, tmp_path):
    skillgit("gc", "--fold", cwd=place)
    git("clone", "-q", place, tmp_path / "clone", cwd=tmp_path)
    clone = tmp_path / "clone"
    git("fetch", "-q", "origin", "refs/skillgit/*:refs/skillgit/*", cwd=clone)
    looks(clone)


def test_a_plain_clone_has_the_history_and_rightly_no_evidence(place, tmp_path):
    git("clone", "-q", place.as_uri(), tmp_path / "clone", cwd=tmp_path)
    looks(tmp_path / "clone")
    assert "for want of evidence" in skillgit("fsck", RUN, "--deep", cwd=tmp_path / "clone").out


def test_line_ends_that_git_changes_on_checkout(place):
    git("config", "core.autocrlf", "true", cwd=place)
    git("checkout", "-q", f"{RUN}/v1", cwd=place)
    looks(place)
    assert git("status", "--porcelain", cwd=place).out == ""
    text = git("show", f"{RUN}/v1:{PATH}/SKILL.md", cwd=place).bytes
    assert b"\r" not in text


def test_objects_of_another_repository(place, tmp_path):
    git("clone", "-q", "--mirror", "--shared", place, tmp_path / "shared.git", cwd=tmp_path)
    assert (tmp_path / "shared.git" / "objects" / "info" / "alternates").is_file()
    looks(tmp_path / "shared.git")
    damaged = min((place / ".git" / "objects").glob("[0-9a-f][0-9a-f]/*"))
    damaged.chmod(0o644)
    damaged.write_bytes(damaged.read_bytes()[:7])
    assert "is damaged: its file is cut short" in skillgit("fsck", cwd=tmp_path / "shared.git", code=1).out


def test_a_shallow_clone_is_told_what_it_lacks(place, tmp_path):
    git("clone", "-q", "--depth", "2", "--no-single-branch", place.as_uri(), tmp_path / "clone", cwd=tmp_path)
    way_out = "git fetch --unshallow && skillgit pull"
    for words in (
        f"log {RUN}",
        f"show {RUN}/v1",
        f"items {RUN}",
        f"train --run {RUN}",
        "status",
        f"eval {RUN}/v1",
        "pull",
    ):
        shown = attempt(*words.split(), cwd=tmp_path / "clone")
        assert (shown.code in {2, 3}, way_out in shown.err) == (True, True), shown
    told = skillgit("fsck", cwd=tmp_path / "clone", code=1).out, skillgit("runs", cwd=tmp_path / "clone").err
    assert all("shallow clone" in text and way_out in text for text in told), told
    git("fetch", "-q", "--unshallow", cwd=tmp_path / "clone")
    skillgit("pull", cwd=tmp_path / "clone")
    looks(tmp_path / "clone")


def test_a_partial_clone_is_told_how_to_fetch_what_it_lacks(place, tmp_path):
    git("config", "uploadpack.allowFilter", "true", cwd=place)
    git("clone", "-q", "--filter=tree:0", "--no-checkout", place.as_uri(), tmp_path / "clone", cwd=tmp_path)
    for command in ("show v1", "fsck --repair"):
        ended = skillgit(*command.split(), cwd=tmp_path / "clone", code=6)
        assert "git fetch --refetch --no-filter" in ended.err
    git("fetch", "-q", "--refetch", "--no-filter", cwd=tmp_path / "clone")
    looks(tmp_path / "clone")


def test_a_repository_of_sha256_is_refused_in_a_sentence(tmp_path):
    git("init", "-q", "--object-format=sha256", tmp_path / "new", cwd=tmp_path)
    for verb in ("log", "fsck", "gc --fold", "fsck --deep"):
        ended = skillgit(*verb.split(), cwd=tmp_path / "new", code=3)
        assert "SHA-256" in ended.err
        assert "hint:" in ended.err


def test_a_repository_with_reftable_is_refused_in_a_sentence(place):
    git("config", "core.repositoryformatversion", "1", cwd=place)
    git("config", "extensions.refStorage", "reftable", cwd=place)
    ended = skillgit("log", cwd=place, code=3)
    assert "reftable" in ended.err
    assert "hint:" in ended.err


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap to make a disk read-only")
def test_a_disk_that_nobody_can_write(place):
    inside = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(place), str(place), "--chdir", str(place)]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap may not make name spaces here")

    def read_only(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*inside, *SKILLGIT, *arguments]
        return subprocess.run(command, env=surroundings(), capture_output=True, text=True, check=False)

    assert len(read_only("log", RUN, "--plain").stdout.splitlines()) == EVENTS
    checked = read_only("fsck", "--deep")
    assert (checked.returncode, checked.stderr) == (0, "")
    for refused in (read_only("gc", "--fold"), read_only("fsck", "--repair")):
        assert refused.returncode not in {0, 70}
        assert "Traceback" not in refused.stderr
        assert "hint:" in refused.stderr
    assert not (place / ".git" / "skillgit" / "index.db").exists()
