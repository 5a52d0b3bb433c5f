"""The session in a terminal: tmux shows the screens, and tells what stands on them."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from played_session import SIZE, WATCHED_ANSWERS, play, prepared, training
from program import SKILLGIT, surroundings
from wire import wire_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]
NAMES = {" ": "Space"}


class Tmux:
    """A terminal in which a command runs."""

    def __init__(self, socket: str) -> None:
        self._tmux = ("tmux", "-S", socket, "-u", "-f", "/dev/null")

    def begin(self, *command: str) -> None:
        columns, rows = SIZE
        environment = surroundings(TERM="screen-256color") | {"TMUX": ""}
        self._run(*("new-session", "-d", "-x", str(columns), "-y", str(rows), shlex.join(command)), env=environment)

    async def press(self, *keys: str) -> None:
        self._run("send-keys", *(NAMES.get(key, key) for key in keys))

    async def shown(self) -> str:
        return self._run("capture-pane", "-p")

    def end(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    def _run(self, *words: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run([*self._tmux, *words], check=True, capture_output=True, env=env)
        return done.stdout.decode()


@contextmanager
def tmux(repository: Path) -> Iterator[Tmux]:
    with TemporaryDirectory(prefix="tmux-") as folder:  # the path of a socket must be short
        terminal = Tmux(f"{folder}/socket")
        try:
            terminal.begin(*SKILLGIT, "-C", str(repository), "tui")
            yield terminal
        finally:
            terminal.end()


def test_a_session_in_a_terminal_shows_what_it_should(tmp_path, tmp_path_factory):
    repository = prepared(tmp_path_factory, tmp_path / "repository")
    with wire_server(answers=WATCHED_ANSWERS, process=True) as wire, ExitStack() as later, tmux(repository) as terminal:
        asyncio.run(play(terminal, repository, lambda: later.enter_context(training(repository, wire))))
