"""A session that somebody plays with the screens: browse, filter, compare, open an item, check out, watch a training.

Whatever is expected is waited for, with a deadline that no machine in order reaches; nothing depends on how long
anything takes.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from once import copy_folder
from program import SKILLGIT, git, skillgit, surroundings
from trained_runs import RUN, small_run
from wire.training import ENVIRONMENT, over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest
    from wire import Wire

SIZE = 104, 30
WATCHED = "watched"
WATCHED_ANSWERS = 32
"""After so many answers the watched training is in its second step, and stays there until it was looked at."""
DEADLINE_S = 60
BETWEEN_LOOKS_S = 0.03
SHORT = (
    *("-o", "train.num_epochs=1", "-o", "train.batch_size=10", "-o", "calls.concurrency=2"),
    *("-o", "evaluation.sel_env_num=4", "-o", "evaluation.test_env_num=2"),
)
Event = dict[str, Any]


class Terminal(Protocol):
    """What shows the screens."""

    async def press(self, *keys: str) -> None:
        """Press keys: signs, or ``Enter``, ``Escape``, ``Tab``."""

    async def shown(self) -> str:
        """Return the lines of the screen."""


def prepared(factory: pytest.TempPathFactory, path: Path) -> Path:
    """Return a repository with a finished run."""
    return copy_folder(small_run(factory), path)


@contextmanager
def training(repository: Path, wire: Wire, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Train a second run in a process of its own."""
    command = (*SKILLGIT, "train", "demo", "--run", WATCHED, "--quiet", *SHORT, *over(wire, "chat"))
    with subprocess.Popen(
        command,
        cwd=repository,
        env=surroundings(**ENVIRONMENT, **more),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class Player:
    """Somebody who presses a key and looks until the screen shows what should come."""

    def __init__(self, terminal: Terminal, repository: Path, run: str = RUN) -> None:
        self.terminal, self.repository = terminal, repository
        listed = json.loads(skillgit("log", run, "--json", cwd=repository).out)
        self.events: list[Event] = listed["events"]

    async def sees(self, *wanted: str, gone: str = "") -> str:
        """Wait until the screen shows all of ``wanted``, which are patterns, and not ``gone``, and return it."""
        screen = ""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    screen = await self.terminal.shown()
                    if all(re.search(pattern, screen) for pattern in wanted) and not (gone and gone in screen):
                        return screen
                    await asyncio.sleep(BETWEEN_LOOKS_S)
        except TimeoutError:
            raise AssertionError(f"{wanted} is not shown:\n{screen}") from None

    async def press(self, *keys: str) -> None:
        await self.terminal.press(*keys)

    def place(self, version: int) -> int:
        """Return in which line of the history a version stands."""
        return next(line for line, event in enumerate(self.events) if event["version"] == version)

    def version_with(self, kind: str, at_most: int) -> int:
        """Return the newest version up to ``at_most`` that an event of that kind made."""
        made = [event["version"] for event in self.events if event["kind"] == kind and event["version"]]
        return max(version for version in made if version <= at_most)

    async def go_to(self, version: int) -> None:
        """Put the cursor on a version, and see it in full."""
        await self.press("g", *"j" * self.place(version))
        await self.sees(rf"epoch.* {self.events[self.place(version)]['commit'][:7]} ")


async def play(terminal: Terminal, repository: Path, train: Callable[[], object]) -> None:
    """Play the session; ``train`` starts the training that is watched at its end."""
    player = Player(terminal, repository)
    best = json.loads(skillgit("show", f"{RUN}/best", "--json", cwd=repository).out)["row"]["version"]
    await browse(player)
    await narrow(player)
    await compare(player, 1, best)
    await check_out(player, 2)
    train()
    await watch(player)


async def browse(player: Player) -> None:
    """The history stands there, newest first, and the event under the cursor in full."""
    newest = player.events[0]["commit"][:7]
    screen = await player.sees("1 Runs", r"2 History  \d+ v", "3 Score", rf" {newest} ")
    assert RUN in screen.splitlines()[1]
    await player.go_to(1)
    await player.press("]")
    await player.sees("▶Edits")
    await player.press("[")
    await player.sees("▶Diff")


async def narrow(player: Player) -> None:
    """The filter counts, and goes again."""
    rejected = sum(event["kind"] == "rejected" for event in player.events)
    every = len(player.events)
    await player.press("/")
    await player.sees("event: score> step:")
    await player.press(*"event:rejected")
    # the letters before narrow it as well, perhaps to as many
    await player.sees(rf"{rejected} of {every}", gone="●   v1")
    await player.press("Escape")
    await player.sees("●   v1")


async def compare(player: Player, before: int, after: int) -> None:
    """A version is compared with another: text, then items, and one of these over all versions."""
    await player.go_to(before)
    await player.press("w")
    await player.go_to(after)
    await player.press("c")
    await player.sees(f"v{before} → v{after}", "▶Text", r"@@ -\d+,\d+ \+\d+,\d+ @@", r"\d+ fixed")
    await player.press("Tab", "Tab")
    await player.sees("▶Items")
    await player.press("Enter")
    await player.sees(r"Item \S+ ", r"1 user")
    await player.press("Escape")
    await player.sees("▶Items")
    await player.press("Escape")
    await player.sees("1 Runs")


async def check_out(player: Player, version: int) -> None:
    """A version is put in the work tree once the command was shown and agreed to."""
    await player.go_to(version)
    await player.press(" ")
    await player.sees(rf"\$ skillgit checkout {RUN}/v{version}", "changes files in the work tree")
    await player.press("y")
    await player.sees("work tree holds")
    head = git("rev-parse", "HEAD", cwd=player.repository).out.strip()
    assert head == player.events[player.place(version)]["commit"]


async def watch(player: Player) -> None:
    """A training shows as it goes on: its stages, and its events as they land."""
    await player.sees(rf"▶ {WATCHED}", "L live")
    await player.press("L")
    await player.sees(rf"{WATCHED}.* pid \d+", "rollout", "run started|seed|v0")
    await player.sees(r"step [2-9]/", r"(v1|r1|s1) ")
