from __future__ import annotations

import subprocess
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import FileMode
from sample_run import START, with_file

from skillgit.errors import ConflictError
from skillgit.store import notes, refs
from skillgit.store.repo import Repo


def test_lines_are_added_in_one_commit_and_read_by_git(repo, history, git) -> None:
    one, two = history[0].commit, history[1].commit
    notes.append(repo, {one: [{"split": "test", "hard": 0.1 + 0.2}], two: [{"b": 1, "a": "ü"}]}, time=START)
    notes.append(repo, {one: [{"later": True}, {"split": "test", "hard": 0.1 + 0.2}]}, time=START)

    assert notes.read(repo, one) == [{"hard": 0.30000000000000004, "split": "test"}, {"later": True}]
    assert git("notes", "--ref=skillgit/evals", "show", two) == '{"a":"ü","b":1}\n'
    assert notes.read_all(repo) == {
        one: ['{"hard":0.30000000000000004,"split":"test"}', '{"later":true}'],
        two: ['{"a":"ü","b":1}'],
    }
    assert git("rev-list", "--count", refs.NOTES).strip() == "2"


def test_without_notes_there_is_nothing(repo, history) -> None:
    assert notes.read_all(repo) == {}
    assert notes.read(repo, history[0].commit) == []


def test_what_people_add_is_kept_and_not_taken_for_a_fact(repo, history, git) -> None:
    commit = history[0].commit
    identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    git(*identity, "notes", "--ref=skillgit/evals", "add", "-m", "looks odd\n[1]", commit)

    notes.append(repo, {commit: [{"a": 1}]}, time=START)

    assert notes.read(repo, commit) == [{"a": 1}]
    assert notes.read_all(repo)[commit] == ["looks odd", "[1]", '{"a":1}']


def test_notes_that_git_spread_over_folders_stay_where_they_are(repo, history, git) -> None:
    one, two = history[0].commit, history[1].commit
    spread = with_file(repo, None, f"{one[:2]}/{one[2:]}", b"{}\n")
    identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    git("update-ref", refs.NOTES, git(*identity, "commit-tree", "-m", "notes", str(spread.id)).strip())

    notes.append(repo, {history[0].commit: [{"a": 1}], history[1].commit: [{"b": 2}]}, time=START)

    assert git("notes", "--ref=skillgit/evals", "show", one) == '{}\n{"a":1}\n'
    assert git("notes", "--ref=skillgit/evals", "show", two) == '{"b":2}\n'
    assert git("ls-tree", "-r", "--name-only", refs.NOTES).split() == sorted([f"{one[:2]}/{one[2:]}", two])


def note(path: str, commit: str, number: int) -> None:
    notes.append(Repo.discover(Path(path)), {commit: [{"n": number}]}, time=START)


def test_writers_at_once_lose_nothing(repo, history) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(note, [str(repo.workdir)] * 20, [history[0].commit] * 20, range(20)))

    assert sorted(line["n"] for line in notes.read(repo, history[0].commit)) == list(range(20))


def test_two_histories_of_notes_are_joined_by_git(repo, history, git, tmp_path) -> None:
    subprocess.run(
        ["git", "clone", "-q", "-n", str(repo.workdir), str(tmp_path / "b")], check=True, capture_output=True
    )
    other, commit = Repo.discover(tmp_path / "b"), history[0].commit
    notes.append(repo, {commit: [{"here": 1}]}, time=START)
    notes.append(other, {commit: [{"there": 1}]}, time=START)

    git("fetch", "-q", str(other.workdir), f"{refs.NOTES}:refs/notes/theirs")
    identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    git(*identity, "notes", "--ref=skillgit/evals", "merge", "-q", "-s", "cat_sort_uniq", "refs/notes/theirs")

    assert notes.read(repo, commit) == [{"here": 1}, {"there": 1}]


def test_a_repository_that_cannot_be_written_is_told_in_a_sentence(repo, history, monkeypatch) -> None:
    def refuse(*_) -> None:
        raise OSError("failed to create temporary file '/a/b': Permission denied")  # as libgit2 says it

    monkeypatch.setattr(notes, "_append", refuse)
    with pytest.raises(ConflictError, match=r"the repository at '.*' cannot be written: Permission denied"):
        notes.append(repo, {history[0].commit: [{"a": 1}]}, time=START)


def test_notes_of_strangers_are_read_however_deep_they_are(repo, history) -> None:
    commit = history[0].commit
    notes.append(repo, {commit: [{"mine": 1}]}, time=START)
    tree = repo.commit(repo.tip(refs.NOTES)).tree
    deep = repo.raw.TreeBuilder().write()
    for _ in range(3000):
        builder = repo.raw.TreeBuilder()
        builder.insert("ab", deep, FileMode.TREE)
        deep = builder.write()
    builder = repo.raw.TreeBuilder(tree)
    builder.insert("ab", deep, FileMode.TREE)
    signature = pygit2.Signature("m", "m@localhost", 1, 0)
    oid = repo.raw.create_commit(None, signature, signature, "x\n", builder.write(), [repo.tip(refs.NOTES)])
    repo.raw.references.create(refs.NOTES, oid, force=True)
    assert notes.read(repo, commit) == [{"mine": 1}]


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a":' * 50_000, '{"n": 1' + "0" * 5000 + "}", '{"t": "\\ud800"}'])
def test_a_line_that_is_no_note_is_passed_over(repo, history, line) -> None:
    commit = history[0].commit
    notes.append(repo, {commit: [{"mine": 1}]}, time=START)
    tree, builder = repo.commit(repo.tip(refs.NOTES)).tree, repo.raw.TreeBuilder()
    content = tree[commit].data + line.encode() + b"\n"
    builder.insert(commit, repo.raw.create_blob(content), FileMode.BLOB)
    signature = pygit2.Signature("m", "m@localhost", 1, 0)
    oid = repo.raw.create_commit(None, signature, signature, "x\n", builder.write(), [repo.tip(refs.NOTES)])
    repo.raw.references.create(refs.NOTES, oid, force=True)
    assert {"mine": 1} in notes.read(repo, commit)
