"""Ahead: rollouts of the next step that begin while the event before it still waits for its last items.

They are rollouts that the step makes anyway, charged to it, and the step finds them in the ledger or in the making. So
a run with them makes the same calls as one without. What fails here fails nothing: the step asks again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.engine.concurrency import ended
from skillgit.engine.rollout import roll_out
from skillgit.engine.scope import step_scope
from skillgit.engine.session import Monitor
from skillgit.engine.step import step_batches

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.engine.session import Session


@dataclass(slots=True)
class Ahead:
    """The rollouts that run ahead of their step, if there are any."""

    _task: asyncio.Task[None] | None = None
    _over: bool = False

    def start(self, session: Session, skill: Skill, step: int, slots: asyncio.Semaphore) -> None:
        """Begin the rollouts of ``step``, which is certain to come and to work on ``skill``; once begun they go on.

        Under a cap nothing runs ahead: it would be reached at another place.

        Args:
            session: What to work with.
            skill: The current version.
            step: The next step.
            slots: The places of rollouts in the making, shared with the event that is being waited for.
        """
        if (self._task is None or self._task.done()) and not session.calls.capped:
            self._over = False
            self._task = asyncio.create_task(self._roll_out(session, skill, step, slots))

    def give_way(self) -> None:
        """Begin no further rollout, for the step begins now; it waits for those in the making as for its own."""
        self._over = True

    async def settled(self) -> None:
        """Begin no further rollout, and wait for those in the making; whoever stops the calls before waits briefly."""
        self.give_way()
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def close(self) -> None:
        """Cancel what still runs, and wait until it has ended."""
        if self._task is not None:
            task, self._task = self._task, None
            await ended((task,))

    async def _roll_out(self, session: Session, skill: Skill, step: int, slots: asyncio.Semaphore) -> None:
        unseen = replace(session, monitor=Monitor())

        async def one(item: Item) -> None:
            async with slots:
                if not self._over:
                    await roll_out(unseen, skill, [item], "rollout")

        with session.calls.charged_to(step_scope(session.run, step)):
            tasks = [asyncio.create_task(one(item)) for batch in step_batches(session, step) for item in batch]
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await ended(tasks)
