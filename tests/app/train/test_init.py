from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from real_git import git

from skillgit.app.train.starting_point import init
from skillgit.errors import ConflictError, SkillError, UsageError

VALID = "---\nname: demo\ndescription: Answers questions.\n---\n\n# Demo\n"


def seed(folder, name="demo"):
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(VALID.replace("demo", name))
    script = folder / name / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return folder / name


def test_a_new_repository_has_main_with_the_seed_and_attributes(empty, tmp_path):
    done = init(empty, None, seed(tmp_path / "seeds"))
    assert (done.path.resolve(), done.skill_path, done.created, done.added) == (
        empty.directory,
        "skills/demo",
        True,
        True,
    )
    assert git(empty.directory, "rev-parse", "main").strip() == done.commit
    assert git(empty.directory, "ls-tree", "-r", "--name-only", "main").split() == [
        ".gitattributes",
        "skills/demo/SKILL.md",
        "skills/demo/run.sh",
    ]
    assert git(empty.directory, "ls-tree", "main", "skills/demo/run.sh").startswith("100755")
    assert (empty.directory / ".gitattributes").read_text() == "*.md diff=markdown\n*.md text eol=lf\n"
    assert git(empty.directory, "status", "--porcelain") == ""
    assert git(empty.directory, "status", "--branch", "--porcelain").startswith("## main")


def test_doing_it_again_changes_nothing(empty, tmp_path):
    folder = seed(tmp_path / "seeds")
    first = init(empty, None, folder)
    (folder / "SKILL.md").write_text(VALID + "\nMore.\n")
    again = init(empty, None, folder)
    assert (again.commit, again.created, again.added) == (first.commit, False, False)
    assert init(empty, None, None).skill_path == "skills/demo"


def test_a_directory_is_made_and_relative_paths_begin_at_the_context(empty):
    (empty.directory / "notes.md").write_text("# Notes on trains\n\nTake the first one.\n")
    done = init(empty, Path("deep/new"), Path("notes.md"))
    assert done.path.resolve() == empty.directory / "deep" / "new"
    assert done.skill_path == "skills/notes"
    assert (done.path / "skills" / "notes" / "SKILL.md").read_text().startswith("---\nname: notes\n")


def test_a_directory_inside_of_a_repository_becomes_one_of_its_own(context):
    inner = context.directory / "inner"
    done = init(context, inner, None)
    assert done.created
    assert done.path.resolve() == inner


def test_without_a_seed_a_skill_without_rules_is_made(empty):
    done = init(empty, None, None)
    assert done.skill_path == "skills/mine"
    assert "(No rules yet.)" in (empty.directory / "skills" / "mine" / "SKILL.md").read_text()


def test_an_environment_gives_its_seed(empty, tmp_path):
    (empty.directory / "my_env.py").write_text(
        "from skillgit.domain.skill import Skill\n"
        "from skillgit.plugin.environment import EnvironmentInfo\n"
        "class MyEnv:\n"
        "    info = EnvironmentInfo(name='mine', summary='', fields={}, scorer='', source='')\n"
        "    def __init__(self, options, root): pass\n"
        "    def seed_skill(self): return Skill('toy', {'SKILL.md': b'# Toy\\n'})\n"
    )
    done = init(empty, tmp_path / "toy", None, environment="my_env.py:MyEnv")
    assert done.skill_path == "skills/toy"


def test_uncommitted_work_stays_as_it_is(context, tmp_path):
    folder = context.directory
    init(context, None, seed(tmp_path / "seeds", "first"))
    (folder / "skills" / "first" / "SKILL.md").write_text("changed")
    (folder / "staged.txt").write_text("staged")
    git(folder, "add", "staged.txt")
    (folder / "skills" / "second").mkdir()
    (folder / "skills" / "second" / "SKILL.md").write_text("mine")
    done = init(context, None, seed(tmp_path / "seeds", "second"))
    assert (done.created, done.added) == (False, True)
    assert git(folder, "status", "--porcelain").splitlines() == [
        " M skills/first/SKILL.md",
        " M skills/second/SKILL.md",
        "A  staged.txt",
    ]
    assert (folder / "skills" / "first" / "SKILL.md").read_text() == "changed"
    assert (folder / "skills" / "second" / "SKILL.md").read_text() == "mine"
    assert (folder / "skills" / "second" / "run.sh").exists()


def test_the_branch_that_is_checked_out_gets_the_seed_and_no_other_branch_is_made(context, tmp_path):
    folder = context.directory
    git(folder, "checkout", "--quiet", "-b", "work")
    (folder / "a.txt").write_text("a")
    git(folder, "add", "a.txt")
    git(folder, "commit", "--quiet", "-m", "a")
    before = git(folder, "branch", "--list")
    done = init(context, None, seed(tmp_path / "seeds"))
    assert git(folder, "status", "--porcelain", "--branch").splitlines() == ["## work"]
    assert (folder / "skills" / "demo" / "SKILL.md").is_file()
    assert (done.branch, done.commit) == ("work", git(folder, "rev-parse", "work").strip())
    assert git(folder, "branch", "--list") == before


def test_a_bare_repository_is_fine(tmp_path, empty):
    git(tmp_path, "init", "--quiet", "--bare", "-b", "main", "bare.git")
    done = init(empty, tmp_path / "bare.git", seed(tmp_path / "seeds"))
    assert not done.created
    assert git(tmp_path / "bare.git", "rev-parse", "main").strip() == done.commit


def test_a_file_in_the_way_is_a_conflict(context, tmp_path):
    (context.directory / "skills").write_text("a file")
    git(context.directory, "add", "skills")
    git(context.directory, "commit", "--quiet", "-m", "skills")
    with pytest.raises(ConflictError, match="'skills' is a file"):
        init(context, None, seed(tmp_path / "seeds"))


def test_a_bad_seed_leaves_nothing_behind(empty, tmp_path):
    with pytest.raises(SkillError, match="there is no skill"):
        init(empty, tmp_path / "new", tmp_path / "nowhere")
    assert not (tmp_path / "new").exists()
    with pytest.raises(UsageError, match="both name a seed"):
        init(empty, None, tmp_path, environment="searchqa")
    (empty.directory / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        init(empty, empty.directory / "file", None)


def test_a_folder_inside_another_repository_becomes_a_repository_of_its_own(context, tmp_path):
    outer = init(context, tmp_path / "outer", None)
    inner = outer.path / "inner"
    inner.mkdir()
    made = init(replace(context, directory=inner), None, None)
    assert made.created
    assert made.path.resolve() == inner.resolve()
