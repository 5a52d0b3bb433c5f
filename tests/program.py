"""Run ``skillgit`` and ``git`` as a user does: other processes, clean surroundings, a stopped clock."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from once import copy_folder
from prepared import Prepared

if TYPE_CHECKING:
    from collections.abc import Mapping

SKILLGIT = (sys.executable, "-m", "skillgit")
QUICK = (
    *("-o", "train.num_epochs=2", "-o", "train.batch_size=20", "-o", "optimizer.slow_update_samples=8"),
    *("-o", "evaluation.sel_env_num=20", "-o", "evaluation.test_env_num=8"),
)
"""Overrides that make a run of the demo configuration short."""
_OF_A_START = {"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "LC_ALL"}
"""What a process looks at while it starts, and never again."""


def surroundings(**more: str) -> dict[str, str]:
    """Return environment variables without the user's git configuration and with a stopped clock."""
    # Textual's pictures leave the size of their last screen behind, and a program takes it for that of its terminal
    left_behind = ("GIT_", "SKILLGIT_", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_behind)}
    return kept | {
        "SKILLGIT_CLOCK": "2026-11-21T12:00:00Z",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": "/nonexistent",
        "XDG_CONFIG_HOME": "/nonexistent",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        **more,
    }


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
    """Run a command and return how it ended."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=surroundings(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return Done(done)


class Done:
    """How a process ended: its exit code and what it wrote."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.bytes = done.stdout
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


def attempt(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Done:
    """Run ``skillgit`` and return how it ended."""
    if _OF_A_START.isdisjoint(env or {}):
        return Done(_prepared().run([str(word) for word in arguments], cwd, surroundings(**(env or {}))))
    return run(*SKILLGIT, *arguments, cwd=cwd, env=env)


def python(
    program: Path, *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Done:
    """Run a Python file of the tests, in a process that has loaded ``skillgit``, and return how it ended."""
    return Done(_prepared().run([str(word) for word in arguments], cwd, surroundings(**(env or {})), str(program)))


def skillgit(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, code: int = 0) -> Done:
    """Run ``skillgit`` and check its exit code; whatever happens, there is no traceback."""
    done = attempt(*arguments, cwd=cwd, env=env)
    assert done.code == code, done
    assert "Traceback" not in done.err, done
    return done


def git(*arguments: str | Path, cwd: Path, code: int = 0) -> Done:
    """Run ``git`` and check its exit code."""
    done = run("git", *arguments, cwd=cwd)
    assert done.code == code, done
    return done


def refs(repository: Path) -> dict[str, str]:
    """Return every ref with what it points to."""
    listed = git("for-each-ref", "--format=%(refname) %(objectname)", cwd=repository).out
    return dict(line.split() for line in listed.splitlines())


def new_repository(path: Path) -> Path:
    """Return a repository with the seed skill of searchqa on main."""
    return copy_folder(Path(_seeded().name) / "repository", path)


@cache
def _seeded() -> TemporaryDirectory[str]:
    """Return a folder in which ``skillgit init`` was typed; it is gone with the process."""
    folder = TemporaryDirectory(prefix="skillgit-seeded-")
    skillgit("init", "repository", "--env", "searchqa", cwd=Path(folder.name))
    return folder


@cache
def _prepared() -> Prepared:
    return Prepared(surroundings())
