"""Which work trees have a branch checked out, as git itself lists them, and that such a branch is not moved."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from program import git

from skillgit.errors import ConflictError
from skillgit.store.ignore_rules import ignore_rules
from skillgit.store.repo import Repo

BRANCH = "refs/heads/run/a"
WHO = ("-c", "user.name=P", "-c", "user.email=p@example.org")


def layouts(beside: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return what a person may have done, as calls of git in the main work tree."""
    add = ("worktree", "add", "-q")
    return {
        "the branch is nowhere": [],
        "in the main work tree": [("switch", "-q", "run/a")],
        "in a linked one": [(*add, beside, "run/a")],
        "in a linked one with a name to quote": [(*add, beside.with_name("two words"), "run/a")],
        "in both": [("switch", "-q", "run/a"), (*add, "--force", beside, "run/a")],
        "at its commit, without the branch": [(*add, "--detach", beside, "run/a")],
        "at another branch of that beginning": [(*add, beside, "run/ab")],
        "in a linked one that was moved": [
            (*add, beside, "run/a"),
            ("worktree", "move", beside, beside.with_name("b")),
        ],
        "in a locked one": [(*add, beside, "run/a"), ("worktree", "lock", beside)],
        "in one that was removed": [(*add, beside, "run/a"), ("worktree", "remove", beside)],
        "a bare repository and a linked one": [
            (*add, beside, "run/a"),
            ("symbolic-ref", "HEAD", BRANCH),
            ("config", "core.bare", "true"),
        ],
    }


@pytest.mark.parametrize("layout", layouts(Path("x")))
def test_work_trees_are_those_that_git_lists_seen_from_each_of_them(tmp_path, layout):
    home, beside = tmp_path / "home", tmp_path / "beside"
    git("init", "-q", "-b", "main", home, cwd=tmp_path)
    git(*WHO, "commit", "-q", "--allow-empty", "-m", "x", cwd=home)
    git("branch", "run/a", cwd=home)
    git("branch", "run/ab", cwd=home)
    for words in layouts(beside)[layout]:
        git(*words, cwd=home)
    entries = [
        dict(line.partition(" ")[::2] for line in entry.splitlines())
        for entry in git("worktree", "list", "--porcelain", cwd=home).out.split("\n\n")
    ]
    expected = sorted(entry["worktree"] for entry in entries if entry.get("branch") == BRANCH and "bare" not in entry)
    for entry in filter(None, entries):
        repo = Repo.discover(Path(entry["worktree"]))
        assert sorted(str(folder).rstrip("/") for folder in repo.work_trees(BRANCH)) == expected, entry
    for _ in expected:
        with pytest.raises(ConflictError, match="run/a is checked out in") as refusal:
            repo.check_movable(BRANCH)
        _, *words = shlex.split(refusal.value.hint.partition(";")[0])
        git(*words, cwd=home)
    repo.check_movable(BRANCH)


@pytest.mark.parametrize(
    ("folder", "ignored"),
    [(".", ["a.tmp"]), ("skill", ["a.own", "a.tmp"]), ("left-out", ["a.own"]), ("../outside", ["a.own"])],
)
def test_rules_hold_where_git_says_and_a_folder_that_is_left_out_has_its_own(tmp_path, folder, ignored):
    root = tmp_path / "repository"
    git("init", "-q", root, cwd=tmp_path)
    (root / ".gitignore").write_text("*.tmp\n/left-out\n")
    for name in ("skill", "left-out", "../outside"):
        (root / name).mkdir()
        (root / name / ".gitignore").write_text("*.own\n")
    place = (root / folder).resolve()
    with ignore_rules(place) as rules:
        assert [name for name in ("a.own", "a.tmp", "a.md") if rules.ignores(place / name)] == ignored
