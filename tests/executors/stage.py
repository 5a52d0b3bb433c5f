"""Rolls the items of ``scene.py`` out with an executor."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path

from toy import History, ToyBackend, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import Split
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Task
from skillgit.executors.attempt import Inline
from skillgit.executors.pool import ProcessSource, WorkerPool
from skillgit.executors.worker import EnvironmentRecipe
from skillgit.plugin.registry import find_environment

HERE = Path(__file__).parent
NAME = "scene.py:Scene"


@dataclass(kw_only=True)
class Stage:
    """An environment, a ledger and a backend that outlive sessions."""

    folder: Path
    act: str = ""
    item: str = "selection3"

    def __post_init__(self):
        self.options = {"act": self.act, "item": self.item, "folder": str(self.folder)}
        self.plugin = find_environment(NAME, HERE)
        self.backend, self.ledger = ToyBackend(), Ledger.in_memory()

    def pool(self, source=None):
        digest = self.session().task.digest
        recipe = EnvironmentRecipe(name=NAME, options=self.options, root=HERE, digest=digest)
        return WorkerPool(recipe, source or ProcessSource(3))

    def session(self, executor=None, **options):
        environment = self.plugin.cls(self.options, HERE)
        session = trainer(self.backend, History(), environment=environment, ledger=self.ledger, **options).session
        task = Task(environment=environment, items=session.task.items, source=self.plugin.source)
        return replace(session, task=task, executor=executor or Inline(), workers=8)

    async def roll_out(self, session, each=lambda _: None):
        items = session.task.items[Split.SELECTION]
        return await roll_out(session, session.task.environment.seed_skill(), items, "selection", each=each)

    def outcomes(self, executor=None, **options):
        """Return item to outcome, of a session that begins and ends with it."""
        session = self.session(executor, **options)

        async def whole():
            try:
                return await self.roll_out(session)
            finally:
                await session.aclose()

        rollouts = asyncio.run(whole())
        return {rollout.item.id: (rollout.outcome, rollout.trajectory) for rollout in rollouts}

    async def noted(self, word):
        """Wait until there is a note after ``word``."""
        while not self.notes(word):  # noqa: ASYNC110 - another process writes them
            await asyncio.sleep(0.01)

    def notes(self, word):
        """Return what is noted after ``word``, in the order in which it was."""
        path = self.folder / "notes"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]


def any_alive(pids):
    return any(map(_is_alive, pids))


def _is_alive(pid):
    """Say whether there is a process that does more than to wait for its parent."""
    try:
        os.kill(int(pid), 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (ProcessLookupError, FileNotFoundError):
        return False
