from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillgit.store.seals import is_own, local_settings, note_own

if TYPE_CHECKING:
    from pathlib import Path

START, OTHER = "a" * 40, "b" * 40
LOCAL = {"calls.concurrency": 3, "model.prices.m": [1.0, 2.0]}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_run_that_began_here_is_known_by_its_commit_alone(repo, state):
    assert not is_own(repo, start=START)
    note_own(repo, START, LOCAL)
    assert is_own(repo, start=START)
    assert local_settings(repo, START) == LOCAL
    assert not is_own(repo, start=OTHER)
    assert (state / "skillgit" / "key").stat().st_mode & 0o777 == 0o600


def test_marks_that_another_user_made_are_none(repo, tmp_path, monkeypatch):
    """A folder or an archive may bring a ``.git`` with whatever marks its maker likes."""
    note_own(repo, START, LOCAL)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "victim"))
    assert not is_own(repo, start=START)
    assert local_settings(repo, START) == {}
    note_own(repo, OTHER, {})
    assert not is_own(repo, start=START)
    (repo.private_dir / "own" / START).write_bytes((repo.private_dir / "own" / OTHER).read_bytes())
    assert not is_own(repo, start=START), "a seal is for one commit"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_no_content_of_a_mark_makes_a_run_one_s_own(repo, content):
    note_own(repo, OTHER, {})
    (repo.private_dir / "own" / START).write_bytes(content)
    assert not is_own(repo, start=START)


def test_settings_of_a_mark_cannot_be_changed(repo):
    note_own(repo, START, LOCAL)
    mark = repo.private_dir / "own" / START
    mark.write_text(mark.read_text().replace("3", "4"))
    assert not is_own(repo, start=START)


@pytest.mark.parametrize("home", ["relative", "/dev/null/home"])
def test_without_a_folder_of_one_s_own_no_run_is(repo, monkeypatch, home):
    monkeypatch.setenv("XDG_STATE_HOME", home)
    note_own(repo, START, LOCAL)
    assert not is_own(repo, start=START)
    assert not os.path.lexists("relative")
