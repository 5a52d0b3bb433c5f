"""Rollout: the target model works on items with a skill, and the environment scores what it did.

An environment may be a user's own class, so that anything may go wrong in it. Anything it raises is a failure of the
item that it worked on, never a score, and other items go on. What ends a run ends it also if an environment catches it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from skillgit.calls.client import Calls
from skillgit.domain.evaluation import FailedToEvaluate, FailureKind, Outcome
from skillgit.domain.ids import digest
from skillgit.domain.outcomes import outcome_row, read_outcome
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Rollout, Trajectory, Turn
from skillgit.engine.concurrency import ordered
from skillgit.engine.method_settings import Companions, TargetSettings
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN, LEAST, elide
from skillgit.engine.search import Session
from skillgit.errors import BackendError, ConfigError, EnvironmentFaultError, SandboxError
from skillgit.executors.attempt import AskedModel, Row, described, graded_row
from skillgit.plugin.backend import Message, Reply, ReplyForm, Tool
from skillgit.wire import AgentQuestion

if TYPE_CHECKING:
    from skillgit.endpoint.server import Ask, Lease


@dataclass(slots=True, kw_only=True)
class RoleConversation(AskedModel):
    """What one attempt asks one model; ``purpose``, ``seed``, ``item`` and ``sample`` name its draws."""

    calls: Calls
    role: str
    purpose: str
    stage: str
    seed: int
    item: str
    sample: int = 0
    turn: int = 0  # how many questions there were, which names the draws
    end: BaseException | None = None  # the error of a question that no item survives, such as a cap that is reached
    work: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool], form: ReplyForm | None) -> Reply:
        self.turn += 1
        draw: tuple[str | int, ...] = (self.purpose, self.seed, self.item, self.turn, *_resampled(self.sample))
        with self._ending():
            return await self.calls.call(self.role, self.stage, messages, draw=draw, tools=tools, form=form)

    async def ask_for_program(self, question: AgentQuestion, provider: str, number: int) -> Reply:
        before: tuple[str | int, ...] = (self.purpose, self.seed, self.item, *_resampled(self.sample))
        draw = (*before, question.identity, number)
        with self._ending():
            return await self.calls.answer(self.role, self.stage, question, provider, draw=draw)

    def lease(self, ask: Ask) -> AbstractAsyncContextManager[Lease]:
        return self.calls.lease(ask)

    def restart(self) -> None:
        self.turn = 0
        AskedModel.restart(self)  # super() fails in a dataclass with slots

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Keep an error that no item survives."""
        try:
            yield
        except (BackendError, asyncio.CancelledError):
            raise
        except BaseException as error:
            self.end = error
            raise


def _resampled(sample: int) -> tuple[int, ...]:
    """Suffix that distinguishes samples after the first in draws and keys."""
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
    """Roll out ``items`` with ``skill``; results are in the order of the items.

    An item that was rolled out before with the same skill, environment, model, seed and sample is not rolled out again;
    each ``sample`` is a draw of its own. An item that could not be evaluated has the outcome ``FailedToEvaluate``. One
    of a permanent kind is kept like a score; what infrastructure spoilt is tried again by the next who asks.

    ``slots`` are the places of rollouts in progress, where they are shared with others; each call has its own
    otherwise.
    """
    keys = rollout_keys(session, skill, items, sample=sample)
    skill, counts_tokens = delivered(skill, session.settings.target), session.rule.counts_tokens

    async def one(entry: tuple[Item, tuple[str, str]]) -> Rollout:
        item, (key, former_key) = entry
        context = {"calls": session.calls, "stage": stage, "seed": session.seed, "item": item.id, "sample": sample}

        async def produce() -> tuple[object, bool]:
            target = RoleConversation(role="target", purpose="rollout", **context)  # type: ignore[arg-type]
            judge = RoleConversation(role="judge", purpose="judge", **context)  # type: ignore[arg-type]
            attempt = partial(session.executor.attempt, session.task.environment, item, skill, target, judge)
            with session.calls.traced(item.id, stage, sample) as scored:
                row, keep = await kept_row(session, attempt, target, judge)
                scored(row)
            return row, keep

        row = cast("Mapping[str, object]", await session.calls.rollout(key, produce, former_key))
        outcome = read_outcome(row)
        if isinstance(outcome, FailedToEvaluate):
            return Rollout(item=item, trajectory=None, outcome=outcome)
        # its tokens only where a gate counts them, for outcomes are evidence
        outcome = outcome if counts_tokens else replace(outcome, tokens=None)
        turns = tuple(map(Turn.read, cast("list[dict[str, object]]", row["turns"])))
        answer, feedback = str(row["answer"]), str(row["feedback"])
        trajectory = Trajectory(item_id=item.id, turns=turns, answer=answer, feedback=feedback)
        return Rollout(item=item, trajectory=trajectory, outcome=outcome)

    def tell(rollout: Rollout) -> None:
        session.monitor.rolled(rollout)
        each(rollout)

    limit = session.workers if slots is None else slots
    return await ordered(one, list(zip(items, keys, strict=True)), limit=limit, each=tell)


def rollout_keys(session: Session, skill: Skill, items: Sequence[Item], *, sample: int = 0) -> list[tuple[str, str]]:
    """Return the ledger's keys of the outcomes that :func:`roll_out` brings, in the order of ``items``.

    The second one is what an outcome was kept under before servers were recorded; empty where that is the same.
    """
    text, setup, former_setup = delivered(skill, session.settings.target).digest, session.setup, session.setup_by_name

    def key(item: Item, setup: str) -> str:
        return digest(["rollout", text, setup, item.id, item.digest, session.seed, *_resampled(sample)])

    return [(key(item, setup), key(item, former_setup) if former_setup != setup else "") for item in items]


async def kept_row(
    session: Session, attempt: Callable[[], Awaitable[Row]], *conversations: RoleConversation
) -> tuple[Row, bool]:
    """Return the outcome of an attempt, or why there is none, and whether the ledger keeps it.

    The last of ``conversations`` is that of the judge, which is asked again where its answers were of no use.
    """
    try:
        await session.executor.open(session.task.environment)
        async with session.calls.item_deadline():
            row, keep = await attempt(), True
    except (KeyboardInterrupt, SandboxError, ConfigError):
        raise
    except BaseException as error:  # noqa: BLE001 - see the module
        if isinstance(error, BackendError | EnvironmentFaultError):
            failure = FailedToEvaluate(error.message, FailureKind.of(error))
        else:
            failure = FailedToEvaluate(f"the environment raised {described(error)}", FailureKind.ENVIRONMENT)
        row, keep = outcome_row(failure), failure.kind.permanent
        _go_on(*conversations)
        if failure.kind is FailureKind.ENVIRONMENT:
            session.calls.ask_anew(conversations[-1].role)
    else:
        _go_on(*conversations)
    return row, keep


def _go_on(*conversations: RoleConversation) -> None:
    """Raise what ends more than one item, which an environment may have caught, or that no caller waits any more."""
    for conversation in conversations:
        if conversation.end is not None:
            raise conversation.end
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


TAG = "companion"


def delivered(skill: Skill, settings: TargetSettings) -> Skill:
    """Return ``skill`` as a target gets it: with the texts that its ``SKILL.md`` names at the end of that.

    A file counts as named if its path inside the skill folder is in the text: in a link, in code or in a sentence.
    What those files name in turn is not followed. They share ``max_companion_tokens`` in the order in which they
    are named; what is cut says so, and those that have no room are listed.
    """
    if settings.companions is Companions.NONE or len(skill.files) == 1:
        return skill
    room = settings.max_companion_tokens * CHARACTERS_PER_TOKEN
    parts: list[str] = []
    left_out: list[str] = []
    for path, text in named_texts(skill):
        if room < min(LEAST, len(text)):
            left_out.append(path)
            continue
        part = elide(text, room)
        room -= len(part)
        parts.append(f'<{TAG} path="{path}">\n{part.strip(chr(10))}\n</{TAG}>')
    if left_out:
        parts.append(f"[... {', '.join(left_out)} left out: too long ...]")
    if not parts:
        return skill
    return skill.with_text(DOCUMENT, "\n\n".join([skill.document.rstrip("\n"), *parts]) + "\n")


def named_texts(skill: Skill) -> list[tuple[str, str]]:
    """Return path and text of the other text files that ``SKILL.md`` names, in the order in which it does."""
    body = skill.document.removeprefix(frontmatter(skill.document))
    mentions = [
        (match.start(), path, text)
        for path, text in skill.text_files()
        if path != DOCUMENT and (match := _mention(path).search(body)) is not None
    ]
    return [(path, text) for _, path, text in sorted(mentions)]


def _mention(path: str) -> re.Pattern[str]:
    """Return what finds ``path`` where it is not part of another path; a folder's placeholder may be before it."""
    return re.compile(rf"(?:(?<![\w./\-])(?:\./)?|(?<=\}}/)){re.escape(path)}(?![\w/\-]|\.\w)")


AGREEMENT = "agreement"


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
        item = grading.item

        async def produce() -> tuple[Row, bool]:
            judge = RoleConversation(
                calls=session.calls,
                role=grading.role,
                purpose=AGREEMENT,
                stage=AGREEMENT,
                seed=0,
                item=item.id,
                sample=grading.number,
            )
            attempt = partial(graded_row, session.task.environment, item, grading.trajectory, judge)
            return await kept_row(session, attempt, judge)

        row = await session.calls.rollout(grading_key(session, grading), produce)
        return read_outcome(cast("Mapping[str, object]", row))

    return await ordered(one, gradings, limit=session.workers, each=each)
