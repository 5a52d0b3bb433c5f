"""A screen looks at a trainer of another process, over the loopback: started, stopped, gone on, killed, finished."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import SKILLGIT, new_repository, refs, skillgit, surroundings
from wire import wire_server
from wire.training import ENVIRONMENT, over

from skillgit.app.workspace.command_journal import commands
from skillgit.app.workspace.live import Standing, live
from skillgit.tui.screens import live as live_text
from skillgit.tui.screens.history import HistoryScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wire import Wire

    from skillgit.tui.screens.live import LiveScreen

RUN = "watched"
SHORT = (
    *("-o", "train.num_epochs=1", "-o", "train.batch_size=20", "-o", "calls.concurrency=4"),
    *("-o", "evaluation.sel_env_num=10", "-o", "evaluation.test_env_num=4"),
)
BETWEEN_LOOKS_S = 0.15
FINISHED = {"improved", "null-result", "underpowered"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with wire_server(latency=0.02, process=True) as running:
        yield running


def words(wire: Wire) -> tuple[str, ...]:
    return ("train", "demo", "--run", RUN, *SHORT, *over(wire, "chat"))


@contextmanager
def training(repository: Path, wire: Wire) -> Iterator[subprocess.Popen[bytes]]:
    command = (*SKILLGIT, *words(wire), "--quiet")
    with subprocess.Popen(
        command, cwd=repository, env=surroundings(**ENVIRONMENT), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class Terminal:
    """A terminal of 104 by 30 in which a program runs."""

    def __init__(self, command: tuple[str, ...], cwd: Path, env: dict[str, str]) -> None:
        self.said = b""
        self._end, inner = pty.openpty()
        ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 104, 0, 0))
        self.process = subprocess.Popen(command, cwd=cwd, env=env, stdin=inner, stdout=inner, stderr=inner)
        os.close(inner)

    def read(self, wanted: str = "") -> None:
        """Read until ``wanted`` was shown, or all until the program ends."""
        while not wanted or not re.search(wanted.encode(), self.said):
            select.select([self._end], [], [])
            try:
                part = os.read(self._end, 65_536)
            except OSError:  # the program has closed the terminal
                part = b""
            if not part:
                assert not wanted, self.said
                return
            self.said += part

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def close(self) -> tuple[int, str]:
        """Return how the program ended, and what it wrote on the terminal after the screen was closed."""
        self.read()
        os.close(self._end)
        screen, _, after = self.said.decode(errors="replace").rpartition("\x1b[?1049l")
        assert "\x1b[?1049h" in screen, "the screen was opened, and closed again"
        plain = re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]", "", after).replace("\r", "")
        return self.process.wait(), plain.strip()


@pytest.fixture
def terminal(wire) -> Callable[..., Terminal]:
    def begin(repository: Path, *options: str) -> Terminal:
        environment = surroundings(**ENVIRONMENT, TERM="xterm-256color")
        return Terminal((*SKILLGIT, *words(wire), *options, "--tui"), repository, environment)

    return begin


async def until(app, wanted: Callable[[LiveScreen], bool]) -> None:
    """Look, as the screen does by itself, until it shows what is wanted."""
    screen = app.screen
    while screen.look is None or not wanted(screen):
        screen.look_again()
        await app.workers.wait_for_complete()
        await asyncio.sleep(BETWEEN_LOOKS_S)


def at(standing: Standing) -> Callable[[LiveScreen], bool]:
    return lambda screen: screen.look.standing is standing


async def stop(app, pilot, process) -> None:
    """Stop the run after its step with keys, and see that it says the same on the screen and to who started it."""
    await until(app, lambda screen: screen.look.snapshot is not None and screen.look.snapshot.rolled)
    assert app.screen.look.pid == process.pid
    await pilot.press("K")
    await pilot.pause()
    await pilot.press("y")
    await app.workers.wait_for_complete()
    await until(app, at(Standing.ENDED))
    assert process.wait() == 130
    end = app.screen.look.snapshot.end
    assert (end.outcome, end.message) == ("stopped", f"run {RUN} is stopped; nothing is lost")
    spent, told = process.stderr.read().decode().split("\n", 1)
    assert re.fullmatch(rf"{RUN}: \d+ calls · .* so far", spent)
    assert told == f"skillgit: {end.message}\nhint: {end.hint}\n"
    assert end.hint.endswith(f"--run {RUN} goes on")


async def kill(app, process) -> None:
    """Kill the trainer, and see that it is not taken for a running one."""
    await until(app, lambda screen: screen.look.pid == process.pid and screen.look.snapshot is not None)
    process.kill()
    assert process.wait() == -9
    await until(app, at(Standing.KILLED))
    assert live_text.told(app.screen.look)[0].startswith(f"process {process.pid} is gone without a word")


async def finish(app, pilot, opened: Terminal) -> None:
    """Let the run go on under a screen of its own to its end; its report and its code reach who started it."""
    await until(app, at(Standing.RUNNING))
    await until(app, at(Standing.ENDED))
    assert app.screen.look.snapshot.end.outcome in FINISHED
    assert app.screen.look.snapshot.step == app.screen.look.snapshot.steps
    app.screen.reload()
    await app.workers.wait_for_complete()
    await pilot.pause()
    assert app.screen.landed.current.kind == "run-finished"
    opened.read("hint: ")
    opened.type("q")
    code, said = opened.close()
    assert code in {0, 20, 21}
    assert said.startswith(f"{RUN}  ")
    assert f"skillgit log {RUN} --graph" in said


def test_a_run_is_watched_stopped_after_its_step_killed_and_ends_as_if_nothing_had_been(
    wire, terminal, tmp_path, app_of, context_of
):
    unbroken = new_repository(tmp_path / "unbroken")
    skillgit(*words(wire), "--quiet", cwd=unbroken, env=ENVIRONMENT)
    repository = new_repository(tmp_path / "repository")
    app = app_of(type("Folder", (), {"workdir": repository})())

    async def scenario() -> None:
        async with app.run_test(size=(104, 30), notifications=True) as pilot:
            await pilot.pause()
            with training(repository, wire) as process:
                while live(context_of(repository)).standing is Standing.IDLE:
                    assert process.poll() is None
                    await asyncio.sleep(BETWEEN_LOOKS_S)
                await pilot.press("L")
                await stop(app, pilot, process)
            with training(repository, wire) as process:
                await kill(app, process)
            await finish(app, pilot, terminal(repository, "--exit-code"))
            await pilot.press("q")
            assert isinstance(app.screen, HistoryScreen)

    asyncio.run(scenario())
    assert refs(repository) == refs(unbroken)


def test_training_goes_on_when_its_screen_is_closed_and_the_terminal_is_left_clean(terminal, tmp_path, context_of):
    repository = new_repository(tmp_path / "repository")
    opened = terminal(repository)
    opened.read("Failing now  ")
    opened.type("q")
    code, said = opened.close()
    first, hint = said.splitlines()
    found = re.fullmatch(rf"run {RUN} goes on as process (\d+)", first)
    assert found, said
    assert (code, hint) == (0, f"hint: skillgit tui {RUN}, then L, watches it; K stops it after its step")
    context = context_of(repository)
    while (look := live(context, RUN)).is_alive:
        assert look.pid == int(found[1])
        time.sleep(BETWEEN_LOOKS_S)
    assert look.snapshot.end.outcome in FINISHED


def test_the_error_of_a_trainer_that_cannot_begin_reaches_the_user(terminal, tmp_path):
    repository = new_repository(tmp_path / "repository")
    code, said = terminal(repository, "-o", "train.no_such_thing=1").close()
    assert code == 2
    assert said.startswith("skillgit: ")
    assert "no_such_thing" in said


@pytest.mark.soak
def test_a_training_that_the_screens_have_started_survives_them_and_is_found_again(wire, tmp_path, context_of):
    repository = new_repository(tmp_path / "repository")
    context = context_of(repository)
    environment = surroundings(**ENVIRONMENT, TERM="xterm-256color")
    first = Terminal((*SKILLGIT, "tui"), repository, environment)
    first.read("no runs yet")
    first.type(":")
    first.read("log --all")
    first.type(f"{shlex.join(words(wire))}\r")
    first.read("It goes on when")
    first.type("y")
    while not (look := live(context, RUN)).pid:
        time.sleep(BETWEEN_LOOKS_S)
    first.process.kill()
    first.process.wait()
    assert Path(f"/proc/{look.pid}").exists()
    os.kill(look.pid, signal.SIGSTOP)  # it must not end before it is looked at
    second = Terminal((*SKILLGIT, "tui"), repository, environment)
    second.read("1 Runs")
    second.type("@")
    second.read(re.escape(f"$ skillgit train demo --run {RUN}"))
    second.type("@L")
    second.read(f"pid {look.pid}")
    os.kill(look.pid, signal.SIGCONT)
    second.process.kill()
    second.process.wait()
    while (look := live(context, RUN)).is_alive:
        time.sleep(BETWEEN_LOOKS_S)
    assert look.snapshot.end.outcome in FINISHED
    (training,) = commands(context)
    assert training.words == words(wire)
    training = training.wait()
    assert training.code == 0
    assert f"skillgit log {RUN} --graph".encode() in training.outputs()[0]
