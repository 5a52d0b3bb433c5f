from __future__ import annotations

import os
import subprocess

import pygit2
import pytest
from real_git import git

from skillgit.errors import HistoryError, RepositoryNotFoundError, RevisionNotFoundError
from skillgit.store import refs
from skillgit.store.git_binary import git as ask_git
from skillgit.store.refs import RefFiles
from skillgit.store.repo import Identity, Repo


def test_a_new_repository_is_on_main_and_has_no_commits(tmp_path) -> None:
    repo = Repo.init(tmp_path / "a" / "b")

    assert repo.head() == ("main", "")
    assert repo.workdir == tmp_path / "a" / "b"
    assert repo.common_dir == tmp_path / "a" / "b" / ".git"
    assert repo.tips() == {}
    assert not (repo.common_dir / "skillgit").exists()
    assert repo.private_dir.is_dir()


def test_making_it_again_opens_it(tmp_path) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")

    assert Repo.init(tmp_path).head() == ("trunk", "")


def test_a_repository_is_found_from_inside(repo) -> None:
    (repo.workdir / "deep" / "er").mkdir(parents=True)

    assert Repo.discover(repo.workdir / "deep" / "er").common_dir == repo.common_dir


@pytest.mark.parametrize("folder", [".", "missing"])
def test_without_a_repository_the_hint_is_to_make_one(tmp_path, folder) -> None:
    with pytest.raises(RepositoryNotFoundError) as refused:
        Repo.discover(tmp_path / folder)

    assert "skillgit init" in refused.value.hint


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"extensions.objectformat": "sha256"}, "SHA-256"),
        ({"extensions.refstorage": "reftable"}, "reftable"),
        ({"extensions.partialclone": "origin"}, "extension"),
    ],
)
def test_repositories_that_cannot_be_opened_say_why(tmp_path, config, sentence) -> None:
    git(tmp_path, "init", "-q")
    for key, value in {"core.repositoryformatversion": "1", **config}.items():
        git(tmp_path, "config", key, value)

    with pytest.raises(RepositoryNotFoundError, match=sentence) as refused:
        Repo.discover(tmp_path)

    assert "\n" not in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("content", ["", "\0\0\0\0", "nonsense", "ref:"])
def test_a_damaged_head_is_named_with_the_command_that_mends_it(tmp_path, content) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "HEAD").write_text(content)

    with pytest.raises(HistoryError, match="HEAD") as refused:
        Repo.discover(tmp_path)

    subprocess.run(["bash", "-c", refused.value.hint], check=True)
    assert Repo.discover(tmp_path).head() == ("main", "")


def test_objects_that_are_borrowed_from_a_folder_that_is_gone_are_missed_at_once(tmp_path) -> None:
    lender, borrower = tmp_path / "lender", tmp_path / "borrower"
    git(tmp_path, "init", "-q", str(lender))
    git(tmp_path, "clone", "-q", "-s", str(lender), str(borrower))
    Repo.discover(borrower)
    lender.rename(tmp_path / "elsewhere")

    with pytest.raises(HistoryError, match="lender") as refused:
        Repo.discover(borrower)

    assert "alternates" in refused.value.hint


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_repository_of_another_user_says_so(tmp_path) -> None:
    git(tmp_path, "init", "-q")
    for folder in (tmp_path, tmp_path / ".git"):
        os.chown(folder, 65534, 65534)

    with pytest.raises(RepositoryNotFoundError, match="another user") as refused:
        Repo.discover(tmp_path)

    assert "safe.directory" in refused.value.hint


def test_git_is_not_sent_elsewhere_by_the_environment(repo, monkeypatch) -> None:
    for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_COMMON_DIR", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, "/nowhere")
    repo.raw.create_blob(b"a file")

    assert ask_git(repo, "cat-file", "--batch-all-objects", "--batch-check").out


def test_who_signs_comes_from_configuration(repo) -> None:
    assert repo.identity() == Identity(name="skillgit", email="skillgit@localhost")
    git(repo.workdir, "config", "user.name", " A <B>\n")
    assert repo.identity() == Identity(name="A B", email="skillgit@localhost")
    assert repo.config("user.email") == ""


def test_ancestry(repo, git_line) -> None:
    first, second, other = git_line

    assert repo.reaches(second, first)
    assert repo.reaches(first, first)
    assert not repo.reaches(first, second)
    assert not repo.reaches(second, other)
    assert not repo.reaches("0" * 40, first)


@pytest.fixture
def git_line(repo) -> tuple[str, str, str]:
    signature = pygit2.Signature("n", "e@localhost", 0, 0)
    empty = repo.raw.TreeBuilder().write()

    def commit(message: str, *parents: str) -> str:
        return str(repo.raw.create_commit(None, signature, signature, message, empty, list(parents)))

    first = commit("one")
    return first, commit("two", first), commit("other")


def test_what_is_no_commit_is_not_found(repo) -> None:
    blob = str(repo.raw.create_blob(b"x"))

    assert repo.has_object(blob)
    for oid in (blob, "0" * 40):
        with pytest.raises(RevisionNotFoundError):
            repo.commit(oid)


def test_refs_that_are_looked_at_once_are_read_once(tmp_path, monkeypatch) -> None:
    """The answers of a block that moves nothing are those of single questions, at the cost of one look."""
    repo = Repo.init(tmp_path)
    tree = repo.raw.TreeBuilder().write()
    signature = pygit2.Signature("a", "a@b", 1, 0)
    commit = repo.raw.create_commit(None, signature, signature, "x", tree, [])
    for run in ("one", "two"):
        for name in (refs.run_branch(run), refs.version_tag(run, 0), refs.evidence_ref(run)):
            repo.raw.references.create(name, commit)
    (repo.common_dir / refs.best_branch("two")).parent.mkdir(parents=True, exist_ok=True)
    (repo.common_dir / refs.best_branch("two")).write_text("nothing\n")

    def answers() -> list[object]:
        return [
            *((repo.tips(run), repo.damaged_refs(run)) for run in ("", "one", "two", "three")),
            *(repo.tip(name) for name in (refs.run_branch("one"), refs.run_branch("three"), refs.NOTES)),
        ]

    alone = answers()
    with repo.still():
        monkeypatch.setattr(RefFiles, "read", None)
        monkeypatch.setattr(RefFiles, "look", None)
        assert answers() == alone
    assert alone[1] == ({name: str(commit) for name in repo_refs("one")}, [])


def repo_refs(run: str) -> tuple[str, ...]:
    return refs.run_branch(run), refs.version_tag(run, 0), refs.evidence_ref(run)
