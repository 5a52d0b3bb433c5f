"""Take the pictures of the screens that the documents show: ``python tests/pictures.py build/demo docs/images``.

It needs Debian's ``chromium``. The repository is that of ``make demo``; it is copied, and nothing in it changes.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from chromium import PROGRAM, page
from played_session import Player, training
from program import git
from web_client import serving
from wire import wire_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

RUN = "demo"
PIXELS = 1010, 632
NOW = {"SKILLGIT_CLOCK": ""}


async def history(player: Player) -> None:
    """The history, with a version that a step brought."""
    await player.go_to(player.version_with("accepted", 5))


async def compare(player: Player) -> None:
    """Two versions side by side."""
    await player.go_to(1)
    await player.press("w")
    await player.go_to(player.version_with("accepted", 7))
    await player.press("c")
    await player.sees("▶Text", r"\d+ fixed")
    await player.press("S")
    await player.sees("side by side|│")


async def item(player: Player) -> None:
    """One item over all versions."""
    await compare(player)
    await player.press("Tab", "Tab")
    await player.sees("▶Items")
    await player.press("Enter")
    await player.sees(r"Item \S+ ", "1 user")


async def live(player: Player) -> None:
    """A run that is being trained."""
    await player.sees("L live")
    await player.press("L")
    await player.sees("step [3-9]/", "reflect █|select █|evaluate █|rollout ██")


@contextmanager
def copied(repository: Path, theme: str) -> Iterator[Path]:
    with TemporaryDirectory(prefix="pictures-") as folder:
        copy = shutil.copytree(repository, Path(folder) / "demo")
        git("config", "skillgit.tui.theme", theme, cwd=copy)
        yield copy


async def take(repository: Path, play: Callable[[Player], Awaitable[None]]) -> bytes:
    with serving(repository, RUN, **NOW) as served:
        async with page(*PIXELS) as opened:
            await opened.go(served.link)
            player = Player(opened, repository, RUN)
            await player.sees("1 Runs", "2 History", "3 Score", "epoch")
            await play(player)
            await asyncio.sleep(1)  # the browser draws a little later than the screen is told
            return await opened.picture()


def main(repository: Path, folder: Path) -> None:
    """Take all pictures."""
    if PROGRAM is None:
        sys.exit("chromium is not installed")
    for theme, plays in (("dark", (history, compare, item)), ("light", (history,))):
        with copied(repository, theme) as copy:
            for play in plays:
                name = play.__name__ if theme == "dark" else f"{play.__name__}-{theme}"
                (folder / f"{name}.png").write_bytes(asyncio.run(take(copy, play)))
    with (
        copied(repository, "dark") as copy,
        wire_server(latency=0.2, process=True) as wire,
        training(copy, wire, **NOW),
    ):
        (folder / "live.png").write_bytes(asyncio.run(take(copy, live)))


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:3]))
