from __future__ import annotations

import subprocess

import pytest

from skillgit.view.diff import coloured
from skillgit.view.surface import Screen

OLD = "# Skill\n\none\n  two\nthree\n-- four\nfive\nsix\nseven\neight\nnine\nten\nlast"
NEW = "# Skill\n\none\n  two and a half  \nthree\n\n++ four\t\nfive\nsix\nseven\neight\nnine\nten\nnew\nlast\n"


def git_diff(folder, *options: str) -> str:
    ended = subprocess.run(
        ["git", "-c", "core.pager=cat", "diff", *options, "HEAD"], cwd=folder, capture_output=True, check=True
    )
    return ended.stdout.decode()


@pytest.fixture
def changed(tmp_path):
    for command in (["init", "-q"], ["config", "user.name", "T"], ["config", "user.email", "t@localhost"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / ".gitattributes").write_text("*.md diff=markdown\n")
    (tmp_path / "SKILL.md").write_text(OLD)
    (tmp_path / "gone.txt").write_text("gone\n")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-qm", "seed"], cwd=tmp_path, check=True)
    (tmp_path / "SKILL.md").write_text(NEW)
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "new.txt").write_text("new\n")
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    return tmp_path


def test_colours_are_those_of_git(changed):
    plain, expected = git_diff(changed, "--color=never"), git_diff(changed, "--color=always")
    assert "".join(f"{line}\n" for line in coloured(plain, Screen())) == expected


def test_no_difference_has_no_lines():
    assert not list(coloured("", Screen()))
