"""Grading again: a judge scores results that exist, several times, so that its agreement with itself shows.

Each grading is a question of its own: its number is part of the ledger's key, as the sample of a rollout is, so that a
repetition asks again, and a command that was killed pays for no grading twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from skillgit.domain.evaluation import Outcome
from skillgit.domain.ids import digest
from skillgit.domain.outcomes import read_outcome
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.engine.concurrency import ordered
from skillgit.engine.rollout import RoleConversation, kept_row
from skillgit.engine.session import Session
from skillgit.executors.attempt import Row, graded_row

STAGE = "agreement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """One question to a judge: how good a result is, for the ``number``-th time, from 1."""

    role: str
    item: Item
    trajectory: Trajectory
    number: int


def grading_key(session: Session, grading: Grading) -> str:
    """Return the ledger's key of what a grading comes to."""
    item, trajectory = grading.item, grading.trajectory
    result = [trajectory.answer, *(turn.row for turn in trajectory.turns)]
    judge = session.calls.routes[grading.role].fingerprint
    return digest(["graded", session.task.digest, judge, item.id, item.digest, result, grading.number])


async def grade(
    session: Session, gradings: Sequence[Grading], *, each: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Return what the gradings come to, in their order; one that failed has the outcome ``FailedToEvaluate``."""

    async def one(grading: Grading) -> Outcome:
        return await _one(session, grading)

    return await ordered(one, gradings, limit=session.workers, each=each)


async def _one(session: Session, grading: Grading) -> Outcome:
    async def produce() -> tuple[Row, bool]:
        judge = RoleConversation(
            calls=session.calls,
            role=grading.role,
            purpose=STAGE,
            stage=STAGE,
            seed=0,
            item=grading.item.id,
            sample=grading.number,
        )

        async def attempt() -> Row:
            return await graded_row(session.task.environment, grading.item, grading.trajectory, judge)

        return await kept_row(session, attempt, judge)

    row = await session.calls.rollout(grading_key(session, grading), produce)
    return read_outcome(cast("Mapping[str, object]", row))
