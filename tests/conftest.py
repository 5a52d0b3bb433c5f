"""What all tests share: git that reads no configuration of this machine, and hypothesis without a stopwatch."""

from __future__ import annotations

import gc
import os
import signal
import sys
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pygit2
import pytest
from hypothesis import settings
from once import copy_folder
from pygit2.enums import ConfigLevel
from sample_run import clock_from

from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

# A suite that draws other examples every time fails on what nobody changed: a push is judged by the same ones always,
# and `make soak` draws new ones, many.
settings.register_profile("skillgit", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("skillgit")


_STATE = "SKILLGIT_STATE_OF_TESTS"
"""The variable by which the processes of a session know that they share a folder for the user's key."""


def pytest_configure(config: pytest.Config) -> None:
    """Give the user of all tests of a session one folder of state, which is no user's of this machine."""
    if _STATE not in os.environ:
        folder = TemporaryDirectory(prefix="skillgit-state-")
        config.add_cleanup(folder.cleanup)
        os.environ[_STATE] = os.environ["XDG_STATE_HOME"] = folder.name
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # as a background job of a shell has it, and then all programs that tests start and interrupt
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # all that is collected stays
    # tests start programs by the thousand, which is quicker once they are compiled
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish() -> None:
    """Look for garbage as seldom as the program does, and never in all that was collected: it stays to the end."""
    gc.set_threshold(20_000, 20, 50)
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _git_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path_factory.getbasetemp() / "no-configuration"
    nowhere.mkdir(exist_ok=True)
    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.settings.search_path[level] = str(nowhere)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(nowhere))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(nowhere))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """An empty repository in a folder of its own."""
    return Repo.discover(copy_folder(_empty().name, tmp_path / "repository"))


@cache
def _empty() -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix="skillgit-empty-")
    Repo.init(Path(folder.name))
    return folder


@pytest.fixture
def clock() -> Callable[[], datetime]:
    """A clock that stands at a fixed time and goes on by a minute with each look."""
    return clock_from(count())
