"""A skill is trained where it is; nothing of people's is replaced, and a repository is made for no one unawares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_git import git
from soaking import soak

from skillgit.app.train.starting_point import init
from skillgit.errors import ConflictError, NotFoundError, UsageError
from skillgit.store.repo import Repo
from skillgit.store.work_tree import skills_at

TEXT = "---\nname: {0}\ndescription: Use it for {0}.\nargument-hint: '[x]'\n---\n\n# {0}\n\n- Be brief.\n"
PLACES = ["skills/town", ".claude/skills/town", ".agents/skills/town", "town", "packages/web/.cursor/skills/town"]


def write(folder: Path, path: str) -> Path:
    place = folder / path
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(TEXT.format(place.name))
    return place


@pytest.fixture
def home(empty):
    """A repository of somebody's whose branch is not called main."""
    git(empty.directory, "init", "-q", "-b", "master", ".")
    (empty.directory / "README").write_text("mine\n")
    git(empty.directory, "add", ".")
    git(empty.directory, "commit", "-qm", "mine")
    return empty


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("form", ["{}", soak("{}/"), soak("{}/SKILL.md")])
def test_a_skill_inside_of_the_repository_is_used_where_it_is(home, path, is_committed, form):
    write(home.directory, path)
    if is_committed:
        git(home.directory, "add", ".")
        git(home.directory, "commit", "-qm", "skill")
    done = init(home, None, Path(form.format(path)))
    assert (done.skill_path, done.added, done.branch, done.source) == (path, not is_committed, "master", "")
    assert skills_at(Repo.discover(home.directory), done.commit) == (path,)
    assert git(home.directory, "status", "--porcelain") == ""
    assert git(home.directory, "branch", "--format=%(refname:short)") == "master"


@pytest.mark.parametrize("path", PLACES)
def test_its_name_does_for_a_skill_that_is_committed(home, path):
    write(home.directory, path)
    git(home.directory, "add", ".")
    git(home.directory, "commit", "-qm", "skill")
    assert init(home, None, Path("town")).skill_path == path
    if path != "town":
        with pytest.raises(NotFoundError, match="there is no skill 'twon'") as caught:
            init(home, None, Path("twon"))
        assert "did you mean 'town'?" in caught.value.hint


def test_a_link_to_a_skill_means_the_folder_that_it_leads_to(home):
    write(home.directory, "skills/town")
    (home.directory / ".claude" / "skills").mkdir(parents=True)
    (home.directory / ".claude" / "skills" / "town").symlink_to("../../skills/town")
    assert init(home, None, Path(".claude/skills/town")).skill_path == "skills/town"


@pytest.mark.parametrize("rules", [".claude/\n", ".claude/skills/\n", "town/\n", ".claude/skills/town\n", "*\n"])
def test_a_folder_that_git_ignores_is_refused_with_two_ways_out(home, rules):
    write(home.directory, ".claude/skills/town")
    (home.directory / ".gitignore").write_text(rules)
    with pytest.raises(UsageError, match=r"git ignores \.claude/skills/town") as caught:
        init(home, None, Path(".claude/skills/town"))
    assert "git check-ignore -v" in caught.value.hint


@pytest.mark.parametrize("place", ["skills", ".claude", "lib/skills", ".claude/skills/town", "lib"])
def test_a_submodule_stays_and_the_hint_leads_into_it(home, place, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    git(theirs, "init", "-q", ".")
    write(theirs, "answering")
    git(theirs, "add", ".")
    git(theirs, "commit", "-qm", "x")
    git(home.directory, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", theirs, place)
    git(home.directory, "commit", "-qm", "module")
    before = git(home.directory, "ls-tree", "-r", "HEAD")
    if place == "skills":
        with pytest.raises(ConflictError, match="'skills' is a submodule") as caught:
            init(home, None, None)
        assert "skillgit -C skills init" in caught.value.hint
    else:
        init(replace(home, directory=home.directory / place), None, None)
    assert git(home.directory, "ls-tree", "-r", "HEAD") == before
    assert init(replace(home, directory=home.directory / place), None, None).skill_path == "answering"


@pytest.mark.parametrize("place", ["skills", "skills/town", "skills/town/SKILL.md"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_or_link_in_the_way_stays(home, place, kind, tmp_path):
    path = home.directory / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x") if kind == "file" else path.symlink_to("README")
    git(home.directory, "add", ".")
    git(home.directory, "commit", "-qm", "x")
    before = git(home.directory, "ls-tree", "-r", "HEAD")
    source = write(tmp_path, "seeds/town")
    if place == "skills/town/SKILL.md":
        assert not init(home, None, source).added
    else:
        with pytest.raises(ConflictError, match=f"'{place}' is a {kind}, not a folder"):
            init(home, None, source)
    assert git(home.directory, "ls-tree", "-r", "HEAD") == before


@pytest.mark.parametrize("path", ["skills/town", ".claude/skills/town", "town", ".", "a/town"])
@pytest.mark.parametrize("is_repository", [True, False])
def test_no_starter_is_invented_beside_a_skill_that_is_not_committed(empty, path, is_repository):
    if path == ".":
        (empty.directory / "SKILL.md").write_text(TEXT.format("town"))
    else:
        write(empty.directory, path)
    if is_repository:
        git(empty.directory, "init", "-q", ".")
    with pytest.raises(UsageError, match="skills here that are not committed") as caught:
        init(empty, None, None)
    assert (empty.directory / ".git").exists() == is_repository
    words = caught.value.hint.removeprefix("skillgit init --skill ")
    done = init(empty, None, Path(words))
    assert done.skill_path == ("skills/town" if path == "." else path)


def test_a_folder_without_a_document_is_no_skill_that_was_there_before(home, tmp_path):
    (home.directory / "skills" / "town").mkdir(parents=True)
    (home.directory / "skills" / "town" / "notes.md").write_text("x")
    git(home.directory, "add", ".")
    git(home.directory, "commit", "-qm", "x")
    with pytest.raises(ConflictError, match=r"'skills/town' on master is a folder without SKILL\.md"):
        init(home, None, write(tmp_path, "seeds/town"))


def test_a_repository_that_is_made_of_a_folder_with_files_is_reported(empty):
    (empty.directory / "notes.txt").write_text("x")
    (empty.directory / "photos").mkdir()
    done = init(empty, None, None)
    assert (done.created, done.entries) == (True, 2)
    assert init(empty, None, None).entries == 0


def test_a_copy_says_where_it_is_from_and_what_was_left_out(home, tmp_path):
    source = write(tmp_path, "seeds/town")
    (source / ".env").write_text("KEY=x\n")
    done = init(home, None, source)
    assert (done.source, done.left_out) == (str(source), (".env",))


def test_a_document_that_was_completed_is_said_to_differ(home):
    place = write(home.directory, ".claude/skills/town")
    (place / "SKILL.md").write_text("# Town\n\nAnswer briefly.\n")
    done = init(home, None, Path(".claude/skills/town"))
    assert (done.skill_path, done.differs) == (".claude/skills/town", True)
    assert (place / "SKILL.md").read_text() == "# Town\n\nAnswer briefly.\n"


_PART = st.sampled_from(["a", ".claude", "skills", "node_modules", "x.y", "b c"])


@given(st.sets(st.lists(_PART, min_size=1, max_size=5).map("/".join), min_size=1, max_size=8))
def test_every_tracked_folder_with_a_document_is_a_skill_the_outermost_ones(tmp_path_factory, folders):
    home = tmp_path_factory.mktemp("r")
    git(home, "init", "-q", ".")
    for folder in folders:
        (home / folder).mkdir(parents=True, exist_ok=True)
        (home / folder / "SKILL.md").write_text("x")
    git(home, "add", "-f", ".")
    git(home, "commit", "-qm", "x")
    outermost = {
        folder
        for folder in folders
        if not any(folder.startswith(f"{other}/") for other in folders) and "node_modules" not in folder.split("/")
    }
    assert set(skills_at(Repo.discover(home), git(home, "rev-parse", "HEAD"))) == outermost
