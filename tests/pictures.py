"""Take the pictures of the screens that the documents show: ``python tests/pictures.py build/demo docs/images``.

It needs Chromium, which draws what Textual exports. The repository is that of ``make demo``; it is copied, and nothing
in it changes.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from browser import PROGRAM, chromium
from played_session import Player, training
from program import git
from textual.pilot import Pilot
from wire import wire_server

from skillgit.app.workspace.context import Context
from skillgit.tui.app import SkillgitApp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

RUN = "demo"
SIZE = 104, 32
NOW = {"SKILLGIT_CLOCK": ""}


class Screens:
    """The screens in this process, as ``played_session.Terminal``."""

    def __init__(self, pilot: Pilot[None]) -> None:
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*(key.lower() if len(key) > 1 else key for key in keys))

    async def shown(self) -> str:
        lines = self._pilot.app.screen._compositor.render_strips()
        return "\n".join(line.text for line in lines)


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


async def take(repository: Path, play: Callable[[Player], Awaitable[None]]) -> str:
    """Return the screen at the end of ``play``, as SVG."""
    context = Context(
        directory=repository, environ=dict(os.environ), clock=lambda: datetime.now(UTC), entropy=os.urandom
    )
    app = SkillgitApp(context, RUN)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        player = Player(Screens(pilot), repository, RUN)
        await player.sees("1 Runs", "2 History", "3 Score", "epoch")
        await play(player)
        await app.workers.wait_for_complete()
        await pilot.pause()
        return app.export_screenshot(title="skillgit tui")


def drawn(svg: str) -> bytes:
    """Return ``svg`` as PNG, with the fonts that this machine has: nothing is loaded from elsewhere."""
    local = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    with chromium() as browser:
        page = browser.new_page(device_scale_factor=1)
        page.set_content(f"<style>body {{ margin: 0 }} svg {{ display: block; width: 1010px }}</style>{local}")
        return page.locator("svg").screenshot()


def main(repository: Path, folder: Path) -> None:
    """Take all pictures."""
    if PROGRAM is None:
        sys.exit("chromium is not installed")
    for theme, plays in (("dark", (history, compare, item)), ("light", (history,))):
        with copied(repository, theme) as copy:
            for play in plays:
                name = play.__name__ if theme == "dark" else f"{play.__name__}-{theme}"
                (folder / f"{name}.png").write_bytes(drawn(asyncio.run(take(copy, play))))
    with (
        copied(repository, "dark") as copy,
        wire_server(latency=0.8, process=True) as wire,
        training(copy, wire, **NOW),
    ):
        (folder / "live.png").write_bytes(drawn(asyncio.run(take(copy, live))))


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:3]))
