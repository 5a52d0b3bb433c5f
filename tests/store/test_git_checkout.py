from __future__ import annotations

import os

import pygit2
import pytest
from sample_run import PATH, RUN, transitions

from skillgit.errors import ConflictError, RevisionNotFoundError, UsageError
from skillgit.store.repo import Repo
from skillgit.store.work_tree import checkout, write_paths

DOCUMENT = f"{PATH}/SKILL.md"


@pytest.fixture
def v0(repo, history) -> str:
    checkout(repo, history[0].commit)
    return history[0].commit


def read(repo: Repo, path: str = DOCUMENT) -> bytes:
    return (repo.workdir / path).read_bytes()


def test_a_version_lies_in_the_work_tree_as_it_was_made(repo, history) -> None:
    files = checkout(repo, history[6].commit)

    skill = transitions()[6].skill
    assert skill is not None
    assert {path: read(repo, f"{PATH}/{path}") for path in skill.files} == dict(skill.files)
    assert os.access(repo.workdir / PATH / "scripts" / "convert.sh", os.X_OK)
    assert repo.head() == ("", history[6].commit)
    assert set(files) == {".gitattributes", *(f"{PATH}/{path}" for path in skill.files)}


@pytest.mark.usefixtures("v0")
def test_only_what_differs_is_told(repo, history, git) -> None:
    assert checkout(repo, history[1].commit) == (DOCUMENT,)
    assert checkout(repo, history[1].commit) == ()
    assert git("status", "--porcelain") == ""


@pytest.mark.usefixtures("git")
def test_changes_that_would_be_lost_are_not_overwritten(repo, history, v0) -> None:
    (repo.workdir / DOCUMENT).write_text("my own words\n")

    with pytest.raises(ConflictError, match=r"SKILL\.md") as refused:
        checkout(repo, history[1].commit)

    assert "stash" in refused.value.hint
    assert read(repo) == b"my own words\n"
    assert repo.head() == ("", v0)


def test_what_git_cannot_do_for_another_reason_is_no_matter_of_changes(repo, history, v0) -> None:
    (repo.common_dir / "index.lock").touch()
    with pytest.raises(ConflictError, match=r"index\.lock") as refused:
        checkout(repo, history[1].commit)
    assert refused.value.hint == "git status"
    assert repo.head() == ("", v0)


def test_an_untracked_file_in_the_way_is_not_overwritten(repo, history) -> None:
    (repo.workdir / PATH).mkdir(parents=True)
    (repo.workdir / DOCUMENT).write_text("mine\n")

    with pytest.raises(ConflictError):
        checkout(repo, history[0].commit)

    assert read(repo) == b"mine\n"


@pytest.mark.usefixtures("v0")
def test_other_changes_are_carried_along_as_git_does(repo, history) -> None:
    (repo.workdir / PATH / "references" / "units.md").write_text("mine\n")

    checkout(repo, history[1].commit)

    assert read(repo, f"{PATH}/references/units.md") == b"mine\n"


def test_paths_write_files_and_nothing_else(repo, history, v0, git) -> None:
    index = (repo.common_dir / "index").read_bytes()

    assert write_paths(repo, history[1].commit, [PATH]) == tuple(
        f"{PATH}/{name}" for name in ("SKILL.md", "references/units.md", "scripts/convert.sh")
    )

    assert repo.head() == ("", v0)
    assert git("diff", "--cached", "--name-only") == ""
    assert git("diff", "--name-only").split() == [DOCUMENT]
    assert read(repo).decode() == git("show", f"{RUN}/v1:{DOCUMENT}")
    assert len(index) == len((repo.common_dir / "index").read_bytes())


@pytest.mark.usefixtures("v0")
def test_paths_may_be_written_again_from_another_version(repo, history, git) -> None:
    write_paths(repo, history[1].commit, [DOCUMENT])

    assert write_paths(repo, history[6].commit, [DOCUMENT]) == (DOCUMENT,)
    assert read(repo).decode() == git("show", f"{RUN}/v3:{DOCUMENT}")


@pytest.mark.usefixtures("v0")
def test_paths_with_changes_that_git_has_nowhere_are_refused(repo, history) -> None:
    (repo.workdir / DOCUMENT).write_text("my own words\n")

    with pytest.raises(ConflictError, match=DOCUMENT):
        write_paths(repo, history[1].commit, [PATH])

    assert read(repo) == b"my own words\n"
    assert write_paths(repo, history[1].commit, [f"{PATH}/references/"]) == (f"{PATH}/references/units.md",)


@pytest.mark.usefixtures("history")
def test_files_that_are_missing_come_back(repo, v0) -> None:
    (repo.workdir / DOCUMENT).unlink()

    write_paths(repo, v0, [DOCUMENT])

    assert read(repo) == transitions()[0].skill.files["SKILL.md"]


@pytest.mark.usefixtures("history")
def test_a_folder_or_link_in_the_place_of_a_file_is_left_alone(repo, v0) -> None:
    (repo.workdir / DOCUMENT).unlink()
    (repo.workdir / DOCUMENT).symlink_to("/etc/hostname")

    with pytest.raises(ConflictError):
        write_paths(repo, v0, [DOCUMENT])


@pytest.mark.parametrize("path", ["nowhere", "skills/demo/none.md", "*.md", ":(top)skills"])
@pytest.mark.usefixtures("v0")
def test_paths_are_names_and_have_to_exist(repo, history, path) -> None:
    with pytest.raises(RevisionNotFoundError):
        write_paths(repo, history[1].commit, [path])


def test_a_bare_repository_has_nowhere_to_write(tmp_path) -> None:
    pygit2.init_repository(str(tmp_path), bare=True)
    bare = Repo.discover(tmp_path)

    for write in (lambda: checkout(bare, "0" * 40), lambda: write_paths(bare, "0" * 40, ["x"])):
        with pytest.raises(UsageError, match="bare"):
            write()


@pytest.mark.usefixtures("history")
def test_a_commit_that_does_not_exist(repo) -> None:
    with pytest.raises(RevisionNotFoundError):
        checkout(repo, "0" * 40)
