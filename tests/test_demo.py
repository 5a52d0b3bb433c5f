"""The demo run as a user meets it: trained by the program, read by git and by the program."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from once import copy_folder
from program import QUICK, git, new_repository, refs, skillgit
from trained_runs import RUN, small_run, trained_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_folder(trained_run(tmp_path_factory, "demo"), tmp_path_factory.mktemp("demo") / "repository")


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shorter run, that is only read."""
    return small_run(tmp_path_factory)


@pytest.fixture
def repository(trained: Path, tmp_path: Path) -> Path:
    return copy_folder(trained, tmp_path / "repository")


def trailers(repository: Path, key: str, *revisions: str) -> list[str]:
    listed = git("log", f"--format=%(trailers:key={key},valueonly)", *revisions, cwd=repository).out
    return [line for line in listed.splitlines() if line]


def test_the_demo_learns_on_selection_and_on_test(trained):
    rows = json.loads(skillgit("log", "--json", cwd=trained).out)["events"]
    kinds = [row["kind"] for row in rows]
    assert kinds.count("accepted") >= 5
    assert kinds.count("rejected") >= 3
    assert kinds.count("slow-merged") >= 1
    scores = [row["score"] for row in rows if row["version"] is not None]
    assert max(scores) > scores[-1] + 0.2, "clearly above the seed"
    tests = [
        re.search(r"version=(\d+) .*hard=([\d.]+)|hard=([\d.]+)", line)
        for line in trailers(trained, "Skillgit-Eval", "run/demo", "-1")
    ]
    assert len(tests) >= 2
    hard = [
        float(re.search(r"hard=([\d.]+)", line).group(1))
        for line in trailers(trained, "Skillgit-Eval", "run/demo", "-1")
    ]
    assert hard[1] > hard[0] + 0.2, "the test score rises too"


def test_plain_git_shows_the_run(trained):
    graph = git("log", "--graph", "--oneline", "run/demo", cwd=trained).out
    assert re.search(r"^\*   \w+ slow: ", graph, re.MULTILINE), "a slow update is a merge"
    assert len(git("branch", "--list", "rejected/*", cwd=trained).out.splitlines()) >= 3
    decisions = {line.split()[0] for line in trailers(trained, "Skillgit-Gate", "--all")}
    assert decisions == {"accept_new_best", "reject"}
    rejected = git("log", "--all", "--grep=^Skillgit-Event: rejected", "--format=%h", cwd=trained).out.split()
    assert len(rejected) == len(git("branch", "--list", "rejected/*", cwd=trained).out.splitlines())
    counted = git("shortlog", "-s", "--group=trailer:skillgit-event", "run/demo", cwd=trained).out
    assert "accepted" in counted
    message = git("log", "-1", "--format=%B", "demo/v1", cwd=trained)
    block = git("log", "-1", "--format=%(trailers:only)", "demo/v1", cwd=trained).out.strip()
    assert block.startswith("Skillgit-Format: 1\n")
    assert message.out.strip().endswith(block)


def test_git_finds_nothing_wrong_and_nothing_loose(trained):
    checked = git("fsck", "--strict", cwd=trained)
    assert (checked.out, checked.err) == ("", "")


def test_training_leaves_the_work_tree_and_the_index_alone(trained):
    assert git("status", "--porcelain", cwd=trained).out == ""
    assert git("rev-parse", "--abbrev-ref", "HEAD", cwd=trained).out.strip() == "main"


def test_the_tree_of_a_version_holds_the_skill_and_nothing_of_ours(trained):
    listed = git("ls-tree", "-r", "--name-only", "best/demo", cwd=trained).out.splitlines()
    assert listed == [".gitattributes", "skills/searchqa/SKILL.md"]


def test_a_clone_shows_the_same_history(trained, tmp_path):
    git("clone", "-q", trained, tmp_path / "clone", cwd=tmp_path)
    here, there = (json.loads(skillgit("log", "--json", cwd=place).out) for place in (trained, tmp_path / "clone"))
    for row in (*here["events"], *there["events"]):
        row["refs"] = []
    assert here == there
    assert skillgit("diff", "v0", "v2", cwd=trained).out == skillgit("diff", "v0", "v2", cwd=tmp_path / "clone").out


@pytest.mark.parametrize("command", [["log"], ["log", "--graph"], ["log", "--json"], ["runs"], ["show", "best"]])
def test_deleting_the_index_changes_no_byte(repository, command):
    before = skillgit(*command, cwd=repository).bytes
    for path in (repository / ".git/skillgit").glob("index.db*"):
        path.unlink()
    assert skillgit(*command, cwd=repository).bytes == before


def test_a_text_diff_is_byte_for_byte_what_git_prints(trained):
    for pair in (("v1", "v3"), ("v0", "v2")):
        ours = skillgit("diff", *pair, cwd=trained).bytes
        assert ours == git("diff", *(f"demo/{name}" for name in pair), cwd=trained).bytes
        assert ours


def test_items_tell_which_were_fixed_and_broken(trained):
    found = json.loads(skillgit("diff", "v0", "best", "--items", "--json", cwd=trained).out)
    assert len(found["fixed"]) > len(found["broken"])
    total = sum(len(found[name]) for name in ("fixed", "broken", "stable_pass", "stable_fail", "missing"))
    assert total == 40
    assert 0 <= found["p"] < 0.05


def test_a_rejected_candidate_can_be_looked_at(trained):
    rows = json.loads(skillgit("log", "--json", cwd=trained).out)["events"]
    step = next(row["step"] for row in rows if row["kind"] == "rejected")
    shown = skillgit("show", f"r{step}", cwd=trained).out
    assert "reject" in shown
    assert "+- " in shown


def test_checkout_puts_a_version_into_the_work_tree(repository):
    skillgit("checkout", "v2", cwd=repository)
    assert git("rev-parse", "HEAD", cwd=repository).out == git("rev-parse", "demo/v2", cwd=repository).out
    assert git("status", "--porcelain", cwd=repository).out == ""


def test_a_dirty_work_tree_does_not_matter_to_training_and_is_never_overwritten(repository):
    skill = repository / "skills/searchqa/SKILL.md"
    skill.write_text("mine\n")
    skillgit("train", "demo", "--run", "second", "-o", "train.num_epochs=1", cwd=repository)
    assert skill.read_text() == "mine\n"
    refused = skillgit("checkout", "v2", cwd=repository, code=4)
    assert refused.err.startswith("skillgit: ")
    assert "hint: " in refused.err
    assert skill.read_text() == "mine\n"


def test_a_finished_run_is_not_trained_again(repository):
    before = refs(repository)
    again = skillgit("train", "demo", "--run", "demo", cwd=repository)
    assert refs(repository) == before
    assert "finished" in again.out + again.err


def test_a_run_can_start_from_a_version_of_another_run(repository):
    skillgit("train", "demo", "--run", "fork", "--from", "demo/v3", "-o", "train.num_epochs=1", cwd=repository)
    first = git("rev-parse", "fork/v0^", cwd=repository).out
    assert first == git("rev-parse", "demo/v3", cwd=repository).out
    assert trailers(repository, "Skillgit-Fork-Of", "fork/v0", "-1") == ["demo/v3"]
    assert (
        git("rev-parse", "fork/v0^{tree}", cwd=repository).out == git("rev-parse", "demo/v3^{tree}", cwd=repository).out
    )


def test_the_dry_run_spends_and_writes_nothing(repository):
    before = refs(repository)
    planned = json.loads(skillgit("train", "demo", "--dry-run", "--json", cwd=repository).out)
    assert planned["schema"] == "skillgit.plan/2"
    assert refs(repository) == before


def test_equal_runs_have_equal_commits(small, tmp_path):
    other = new_repository(tmp_path / "other")
    skillgit("train", "demo", "--run", RUN, *QUICK, cwd=other)
    assert refs(other) == refs(small)
