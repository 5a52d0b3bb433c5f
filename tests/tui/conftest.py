from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from sample_run import write_run

from skillgit.app.workspace.context import Context
from skillgit.tui.app import SkillgitApp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from skillgit.store.repo import Repo

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


async def _between_keys(_: float) -> None:
    """Wait until the app has done next to nothing for 2 ms; Textual itself waits for 20 ms, twice for every key.

    What it puts off, such as a new layout, it does every 17 ms, so that after the last key nothing less will do.
    """
    for _ in range(500):
        before = time.process_time()
        await asyncio.sleep(0.002)
        if time.process_time() - before < 0.0001:
            return


async def _settled(pilot: Pilot[None]) -> None:
    """Wait until all that was asked for has been read and shown."""
    quiet = 0
    while quiet < 2:
        await pilot.pause()
        screen = pilot.app.screen
        busy = pilot.app.workers._workers or getattr(screen, "_waiting", None) is not None
        quiet = 0 if busy else quiet + 1
        if busy:
            await asyncio.sleep(0.02)


@pytest.fixture
def settled() -> Callable[[Pilot[None]], Awaitable[None]]:
    """Wait until all that was asked for has been read and shown."""
    return _settled


@pytest.fixture
def context_of() -> Callable[[Path], Context]:
    """Return the context of somebody who looks at a folder an hour after the sample was made."""

    def build(directory: Path) -> Context:
        return Context(directory=directory, environ={}, clock=lambda: NOW, entropy=bytes)

    return build


@pytest.fixture
def sample(repo: Repo) -> Repo:
    """A repository with the sample run."""
    write_run(repo)
    return repo


@pytest.fixture
def app_of(context_of) -> Callable[..., SkillgitApp]:
    """Return the app over a repository, with what it would run instead of running it."""

    def build(repo: Repo, run: str = "", *, unicode: bool = True, watched: bool = False) -> SkillgitApp:
        return SkillgitApp(context_of(repo.workdir), run, unicode=unicode, watch=watched)

    return build


@pytest.fixture
def visit(app_of, sample) -> Callable[..., None]:
    """Open the sample run and play a scenario with it."""

    def with_app(
        scenario: Callable[[SkillgitApp, Pilot[None]], Awaitable[None]],
        *,
        size: tuple[int, int] = (104, 30),
        repo: Repo | None = None,
        **options: object,
    ) -> None:
        app = app_of(repo or sample, **options)

        async def run() -> None:
            async with app.run_test(size=size, notifications=True) as pilot:
                await _settled(pilot)
                await scenario(app, pilot)

        asyncio.run(run())

    return with_app


@pytest.fixture
def press() -> Callable[..., Awaitable[None]]:
    """Press keys, then wait until all is shown."""

    async def keys(pilot: Pilot[None], *names: str) -> None:
        with patch("textual.app.wait_for_idle", _between_keys):
            await pilot.press(*names)
        await _settled(pilot)

    return keys
