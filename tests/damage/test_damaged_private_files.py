"""Files beside the objects of a repository and settings of git may hold anything: one sentence, no internal error."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

import pytest
from inside import run
from once import copy_folder
from sample_run import RUN, write_run
from soaking import sampled

from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

CONTENTS = (
    b"",
    b"\xff\xfe\0",
    b"garbage \x80\n",
    b"null",
    b"[]",
    b"{}",
    b'"x"',
    b"9" * 6000,
    b"[" * 100_000,
    b"\0" * 5000,
    b'{"a": "\\ud800"}',
    b'{"pid": "abc"}',
    b'{"pid": 1e400}',
    b'{"pid": "%s"}' % (b"9" * 6000),
    b'{"schema": 1}',
    b'{"schema": 1, "places": [{"path": 1, "skill": 2, "layers": [{}]}]}',
    None,
)
"""None is a folder in the file's place."""
READING = (("status",), ("runs",), ("log",), ("fsck",), ("show", "v2"), ("gc", "--dry-run"), ("install", "--list"))
FILES = ("lock", f"run-{RUN}.lock", f"run-{RUN}.own", f"run-{RUN}.elsewhere", f"run-{RUN}.progress", f"run-{RUN}.stop")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    repo = Repo.init(tmp_path_factory.mktemp("private") / "repository")
    write_run(repo)
    return repo.workdir


@pytest.fixture
def folder(home, tmp_path) -> Path:
    return copy_folder(home, tmp_path / "copy")


def put(path: Path, content: bytes | None) -> None:
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)


@pytest.mark.parametrize("name", sampled([*FILES, "adopted/places.json", "adopted/lock"], 4))
def test_no_private_file_is_an_internal_error(folder, name) -> None:
    path = folder / ".git" / "skillgit" / name
    for content in CONTENTS:
        put(path, content)
        for command in READING:
            code, _, said = run(folder, *command)
            assert code != 70, (content, command, said)


def test_a_lock_that_is_held_may_say_anything_of_its_holder(folder) -> None:
    path = folder / ".git" / "skillgit" / f"run-{RUN}.lock"
    for content in CONTENTS[:-1]:
        put(path, content)
        with path.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for command in READING:
                code, _, said = run(folder, *command)
                assert code != 70, (content, command, said)


@pytest.mark.parametrize(
    "setting",
    [
        b"[user]\n\tname = J\xfcrgen\n",
        b"[user]\n\temail = \xff\n",
        b"[skillgit]\n\trun = \xff\n",
        b"[skillgit]\n\trun\n",
        b"[diff]\n\tcontext = \xff\n",
        b'[remote "origin"]\n\turl = \xff\n',
        b"[core]\n\tsshCommand = \xff\n",
        b"garbage\n",
        b"\xff\xfe\0",
    ],
)
def test_no_setting_of_git_is_an_internal_error(folder, setting) -> None:
    config = folder / ".git" / "config"
    config.write_bytes(config.read_bytes() + setting)
    for command in (
        *READING,
        ("diff", "v0", "v1"),
        ("push", "--dry-run"),
        ("pull", "--dry-run"),
        ("revert", "--to", "v1"),
    ):
        code, _, said = run(folder, *command)
        assert code != 70, (command, said)


def test_a_setting_that_is_no_text_is_named(folder) -> None:
    config = folder / ".git" / "config"
    config.write_bytes(config.read_bytes() + b"[skillgit]\n\trun = \xff\n")
    code, _, said = run(folder, "status")
    assert code == 2
    assert "git's setting skillgit.run is not UTF-8" in said
