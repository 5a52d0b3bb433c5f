"""A skill whose rules stand in a file of their own: trained by the program, read by git and by the program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from once import copy_folder, once
from program import QUICK, attempt, git, new_repository, refs, skillgit

from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

SKILL = "skills/searchqa"
RULES = f"{SKILL}/references/rules.md"
CONFIG = """\
_base_: demo
env:
  skill_init: searchqa
optimizer:
  files: [SKILL.md, references/*.md]
"""
DOCUMENT = """\
---
name: searchqa
description: How to answer a question from search results. Use it for every question with search results.
---

# Answer from search results

Read the results, then answer. The rules stand in [references/rules.md](references/rules.md); follow all of them.
"""
TRAIN = ("train", "several.yaml", "--run", "several", "-q", *QUICK)


def prepared(place: Path) -> Path:
    """Return a new repository with the configuration and the seed skill beside it."""
    repository = new_repository(place)
    for path, text in {
        "several.yaml": CONFIG,
        "searchqa/SKILL.md": DOCUMENT,
        "searchqa/references/rules.md": "# Rules\n\n- Answer in a few words.\n",
        "searchqa/scripts/count.py": "def count(text):\n    return len(text.split())\n",
    }.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text, encoding="utf-8")
    (repository / "searchqa/assets").mkdir()
    (repository / "searchqa/assets/logo.png").write_bytes(b"\x89PNG\x00")
    (repository / "searchqa/scripts/count.py").chmod(0o755)
    return repository


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(folder: Path) -> None:
        skillgit(*TRAIN, cwd=prepared(folder / "repository"))

    return once(tmp_path_factory, "several-files", fill) / "repository"


@pytest.fixture
def repository(trained: Path, tmp_path: Path) -> Path:
    return copy_folder(trained, tmp_path / "repository")


def events(repository: Path) -> list[dict[str, object]]:
    return json.loads(skillgit("log", "--json", cwd=repository).out)["events"]


def test_training_improves_the_score_by_rules_in_another_file(trained):
    rows = events(trained)
    scores = [row["score"] for row in rows if row["version"] is not None]
    assert max(scores) > scores[-1] + 0.2
    accepted = [row["version"] for row in rows if row["kind"] == "accepted"]
    assert accepted
    for version in accepted:
        changed = git("show", "--format=", "--name-only", f"several/v{version}", cwd=trained).out.split()
        assert changed == [RULES]
        told = git("log", "-1", "--format=%(trailers:key=Skillgit-Edit,valueonly)", f"several/v{version}", cwd=trained)
        assert all("file=references/rules.md" in line for line in told.out.split("\n") if line)


def test_every_version_holds_the_whole_folder(trained):
    listed = git("ls-tree", "-r", "best/several", SKILL, cwd=trained).out.splitlines()
    assert {line.partition("\t")[2]: line.split()[0] for line in listed} == {
        f"{SKILL}/SKILL.md": "100644",
        f"{SKILL}/assets/logo.png": "100644",
        RULES: "100644",
        f"{SKILL}/scripts/count.py": "100755",
    }


def test_history_holds_together(trained):
    assert "no problems" in skillgit("fsck", "--deep", cwd=trained).out
    checked = git("fsck", "--strict", cwd=trained)
    assert (checked.out, checked.err) == ("", "")


def test_a_run_that_was_stopped_ends_in_the_same_commits(trained, tmp_path):
    other = prepared(tmp_path / "other")
    stopped = skillgit(*TRAIN, "--max-calls", "120", cwd=other, code=7)
    assert "--run several" in stopped.err
    skillgit(*TRAIN, cwd=other)
    assert refs(other) == refs(trained)


def test_the_diff_shows_all_files_as_git_does(trained):
    ours = skillgit("diff", "v0", "best", cwd=trained).bytes
    assert ours == git("diff", "several/v0", "best/several", cwd=trained).bytes
    assert b"references/rules.md" in ours


def test_rules_are_compared_in_every_file(trained):
    found = json.loads(skillgit("diff", "v0", "best", "--rules", "--json", cwd=trained).out)
    added = [row for row in found["rules"] if row["file"] == "references/rules.md"]
    assert added
    assert all(row["change"] == "added" and row["support"] and row["version"] for row in added)


def test_blame_credits_the_lines_of_another_file(trained):
    rows = json.loads(skillgit("blame", "best", "references/rules.md", "--json", cwd=trained).out)["lines"]
    learned = [row for row in rows if row["version"]]
    assert [row["source"] for row in rows[:3]] == ["seed"] * 3
    assert learned
    assert all(row["support"] and row["items"] for row in learned)
    code = json.loads(skillgit("blame", "best", "scripts/count.py", "--json", cwd=trained).out)["lines"]
    assert {row["source"] for row in code} == {"seed"}


def test_why_finds_a_rule_in_another_file(trained):
    text = git("show", f"best/several:{RULES}", cwd=trained).out.splitlines()[-1].removeprefix("- ")
    told = skillgit("why", text, "--rev", "best", cwd=trained).out
    assert "references/rules.md" in told
    assert "because" in told


def test_checkout_puts_all_files_into_the_work_tree(repository):
    skillgit("checkout", "best", cwd=repository)
    assert (repository / SKILL / "scripts/count.py").stat().st_mode & 0o111
    assert (repository / SKILL / "assets/logo.png").read_bytes() == b"\x89PNG\x00"
    status = git("status", "--porcelain", "--untracked-files=no", cwd=repository).out
    assert status == ""


def test_what_is_reverted_and_picked_again_keeps_its_file(repository):
    skillgit("revert", "--to", "v0", cwd=repository)
    assert git("diff", "--stat", "several/v0", "run/several", "--", SKILL, cwd=repository).out == ""
    assert attempt("cherry-pick", "v1", "-q", cwd=repository).code in {0, 1}, "whatever the gate says"
    newest = next(row for row in events(repository) if row["origin"] == "cherry-pick")
    assert git("show", "--format=", "--name-only", newest["commit"], cwd=repository).out.split() == [RULES]
    assert "no problems" in skillgit("fsck", "--deep", cwd=repository).out


def test_a_version_measured_again_has_the_score_that_was_recorded(repository):
    told = skillgit("eval", "--fresh", "best", "--sample", "3", "--no-note", cwd=repository).out
    assert "consistent with what was recorded" in told


def test_a_configuration_that_names_what_cannot_be_trained_is_refused_before_anything_is_spent(tmp_path):
    repository = prepared(tmp_path / "repository")
    before = refs(repository)
    for value, told in (
        ("[../SKILL.md]", "does not stay inside the skill folder"),
        ("[assets/*.png]", "only text can be trained"),
        ("[templates/*.md]", "optimizer.files names no file of skill 'searchqa'"),
    ):
        refused = skillgit(*TRAIN, "-o", f"optimizer.files={value}", cwd=repository, code=ExitCode.USAGE)
        assert told in refused.err
        assert "hint: " in refused.err
    assert refs(repository) == before
