from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from skillgit.errors import RunLockedError
from skillgit.files import locked
from skillgit.store import seals
from skillgit.store.seals import folders_elsewhere, own_folder, private_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def git_dir(tmp_path: Path) -> Path:
    (tmp_path / "git").mkdir()
    return tmp_path / "git"


def as_somebody_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))


def test_what_is_one_s_own_stays(git_dir, state):
    assert own_folder(git_dir) is None
    assert not state.exists(), "who only looks leaves no key"
    folder = private_folder(git_dir)
    (folder / "ledger.db").write_text("mine")
    assert private_folder(git_dir) == own_folder(git_dir) == folder
    assert (folder / "ledger.db").read_text() == "mine"
    assert folders_elsewhere(git_dir) == []


def test_a_folder_that_somebody_else_made_is_moved_out_of_the_way(git_dir, tmp_path, monkeypatch):
    for number in range(3):
        as_somebody_else(monkeypatch, tmp_path / str(number))
        folder = private_folder(git_dir)
        assert sorted(path.name for path in folder.iterdir()) == ["seal"]
        (folder / "ledger.db").write_text(str(number))
    kept = [(folder / "ledger.db").read_text() for folder in folders_elsewhere(git_dir)]
    assert kept == ["0", "1"], "nothing of anybody is lost"


def test_a_folder_in_which_a_process_with_another_key_works_stays(git_dir, tmp_path, monkeypatch):
    folder = private_folder(git_dir)
    (folder / "run-first.lock").touch()
    as_somebody_else(monkeypatch, tmp_path)
    with locked(os.open(folder / "run-first.lock", os.O_RDWR)):
        with pytest.raises(RunLockedError, match="a process with another key works"):
            private_folder(git_dir)
        assert own_folder(git_dir) is None, "nothing in it is believed"
        assert folder.is_dir()
        assert folders_elsewhere(git_dir) == []
    assert [path.name for path in private_folder(git_dir).iterdir()] == ["seal"]


@pytest.mark.parametrize("theirs", ["folder", "file", "link to a file", "link to a folder", "dangling link", "fifo"])
def test_whatever_comes_in_its_place_is_neither_read_nor_followed(git_dir, tmp_path, theirs):
    mine = private_folder(git_dir).rename(tmp_path / "of-another-repository")
    place = git_dir / "skillgit"
    match theirs:
        case "folder":
            (place / "seal").mkdir(parents=True)
        case "file":
            place.write_text("x")
        case "fifo":
            os.mkfifo(place)
        case "link to a file":
            place.symlink_to(mine / "seal")
        case "link to a folder":
            place.symlink_to(mine)
        case "dangling link":
            place.symlink_to(tmp_path / "nowhere")
    before = sorted(path.name for path in mine.iterdir())
    folder = private_folder(git_dir)
    assert not folder.is_symlink()
    assert sorted(path.name for path in folder.iterdir()) == ["seal"]
    assert sorted(path.name for path in mine.iterdir()) == before
    assert not (tmp_path / "nowhere").exists()
    assert folders_elsewhere(git_dir) == [], "there was nothing to keep"


def test_what_can_be_made_anew_is_not_kept(git_dir, tmp_path, monkeypatch):
    (private_folder(git_dir) / "index.db").write_text("theirs")
    as_somebody_else(monkeypatch, tmp_path)
    private_folder(git_dir)
    assert [path.name for path in git_dir.iterdir()] == ["skillgit"]


def test_many_at_once_make_one(git_dir, tmp_path, monkeypatch):
    (private_folder(git_dir) / "ledger.db").write_text("theirs")
    as_somebody_else(monkeypatch, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: private_folder(git_dir), range(40)))) == 1
    assert len(folders_elsewhere(git_dir)) == 1
    assert sorted(path.name for path in git_dir.iterdir()) == ["skillgit", "skillgit-elsewhere"]


def test_without_a_home_a_folder_is_taken_as_it_is(git_dir, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/none")
    (private_folder(git_dir) / "ledger.db").write_text("mine")
    assert (private_folder(git_dir) / "ledger.db").read_text() == "mine"
    assert own_folder(git_dir) is None


def test_a_folder_that_cannot_be_moved_is_not_used(git_dir, tmp_path, monkeypatch):
    private_folder(git_dir)
    as_somebody_else(monkeypatch, tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(seals.Path, "rename", refuse)
    with pytest.raises(PermissionError):
        private_folder(git_dir)


def test_the_key_is_the_user_s_alone(git_dir, state):
    (private_folder(git_dir) / "ledger.db").write_text("mine")
    (key,) = (state / "skillgit").iterdir()
    assert key.stat().st_mode & 0o777 == 0o600
    shutil.rmtree(state)
    private_folder(git_dir)
    assert len(folders_elsewhere(git_dir)) == 1, "a new key is another user"


@pytest.mark.parametrize("name", ["seal", "key"])
@pytest.mark.parametrize("odd", ["fifo", "endless", "folder", "short"])
def test_a_seal_or_key_that_is_no_plain_file_is_none(git_dir, state, name, odd):
    folder = private_folder(git_dir)
    place = folder / name if name == "seal" else state / "skillgit" / name
    place.unlink()
    match odd:
        case "fifo":
            os.mkfifo(place)
        case "endless":
            place.symlink_to("/dev/zero")
        case "folder":
            place.mkdir()
        case "short":
            place.write_bytes(b"short")
    if name == "seal":
        assert private_folder(git_dir) == folder
        assert own_folder(git_dir) == folder
    else:
        assert own_folder(git_dir) is None
