"""Rollout: the target model works on items with a skill, and the environment scores what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from skillgit.domain.evaluation import FailedToEvaluate, FailureKind
from skillgit.domain.ids import digest
from skillgit.domain.outcomes import outcome_row, read_outcome
from skillgit.domain.trajectory import Rollout, Trajectory, Turn
from skillgit.engine.companions import delivered
from skillgit.engine.concurrency import ordered
from skillgit.errors import BackendError, EnvironmentFaultError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence

    from skillgit.calls.door import Calls
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Role
    from skillgit.engine.session import Session
    from skillgit.plugin.backend import Message, Reply, Tool


@dataclass(slots=True)
class _Conversation:
    """A model while one item is rolled out and scored; counts the turns, which name the draws."""

    calls: Calls
    role: str
    purpose: str
    stage: str
    seed: int
    item: str
    sample: int = 0
    turn: int = 0

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
        """Ask the model."""
        self.turn += 1
        draw: tuple[str | int, ...] = (self.purpose, self.seed, self.item, self.turn, *_resampled(self.sample))
        return await self.calls.call(self.role, self.stage, messages, draw=draw, tools=tools)


def _resampled(sample: int) -> tuple[int, ...]:
    """Return what a draw or a key adds for another sample than the first."""
    return (sample,) if sample else ()


async def roll_out(
    session: Session,
    skill: Skill,
    items: Sequence[Item],
    stage: str,
    *,
    sample: int = 0,
    slots: asyncio.Semaphore | None = None,
    each: Callable[[Rollout], None] = lambda _: None,
) -> list[Rollout]:
    """Roll out ``items`` with ``skill``; results stand in the order of the items.

    An item that was rolled out before with the same skill, environment, model, seed and sample is not rolled out again;
    each ``sample`` is a draw of its own. An item that could not be evaluated has the outcome ``FailedToEvaluate``. One
    of a permanent kind is kept like a score; what infrastructure spoilt is tried again by the next who asks.

    Args:
        session: What to work with.
        skill: The skill.
        items: The items; the first ones start first.
        stage: What for.
        sample: Which draw.
        slots: The places of rollouts in the making, where they are shared with others; each call has its own otherwise.
        each: Called with every rollout as soon as it is there.

    Raises:
        BudgetError: A cap was reached.
        ProviderFailureError: The provider failed systematically.
    """
    skill = delivered(skill, session.settings.target)
    shared = _shared_key(session, skill)

    async def one(item: Item) -> Rollout:
        return await _one(session, skill, item, stage, sample=sample, key=_key(session, item, sample, shared))

    def told(rollout: Rollout) -> None:
        session.monitor.rolled(rollout)
        each(rollout)

    return await ordered(one, items, limit=session.workers if slots is None else slots, each=told)


def _shared_key(session: Session, skill: Skill) -> tuple[str, ...]:
    """Return what the keys of all items have in common."""
    return (skill.digest, session.setup)


def _key(session: Session, item: Item, sample: int, shared: tuple[str, ...]) -> str:
    """Return what decides the outcome of an item."""
    return digest(["rollout", *shared, item.id, item.digest, session.seed, *_resampled(sample)])


async def _one(session: Session, skill: Skill, item: Item, stage: str, *, sample: int, key: str) -> Rollout:
    environment = session.task.environment

    async def produce() -> tuple[object, bool]:
        place = {"calls": session.calls, "stage": stage, "seed": session.seed, "item": item.id, "sample": sample}
        try:
            target = _Conversation(role="target", purpose="rollout", **place)  # type: ignore[arg-type]
            judge = _Conversation(role="judge", purpose="judge", **place)  # type: ignore[arg-type]
            async with session.calls.item_deadline():
                trajectory = await environment.rollout(item, skill, target)
                scored, feedback = await environment.score(item, trajectory, judge)
        except (BackendError, EnvironmentFaultError) as error:
            failure = FailedToEvaluate(error.message, FailureKind.of(error))
            return outcome_row(failure), failure.kind.permanent
        return _trajectory_row(trajectory, feedback) | outcome_row(scored), True

    row = cast("Mapping[str, object]", await session.calls.rollout(key, produce))
    return _rollout(item, row)


def _trajectory_row(trajectory: Trajectory, feedback: str) -> dict[str, object]:
    return {
        "answer": trajectory.answer,
        "feedback": feedback,
        "turns": [{"role": turn.role, "content": turn.content} for turn in trajectory.turns],
    }


def _rollout(item: Item, row: Mapping[str, object]) -> Rollout:
    outcome = read_outcome(row)
    if isinstance(outcome, FailedToEvaluate):
        return Rollout(item=item, trajectory=None, outcome=outcome)
    turns = cast("list[dict[str, str]]", row["turns"])
    trajectory = Trajectory(
        item_id=item.id,
        turns=tuple(Turn(role=cast("Role", turn["role"]), content=turn["content"]) for turn in turns),
        answer=str(row["answer"]),
        feedback=str(row["feedback"]),
    )
    return Rollout(item=item, trajectory=trajectory, outcome=outcome)


def rollout_keys(session: Session, skill: Skill, items: Sequence[Item], *, sample: int = 0) -> list[str]:
    """Return the ledger's keys of the outcomes that :func:`roll_out` would bring, in the order of ``items``."""
    shared = _shared_key(session, delivered(skill, session.settings.target))
    return [_key(session, item, sample, shared) for item in items]
