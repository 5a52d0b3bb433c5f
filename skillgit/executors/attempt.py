"""One attempt at an item: a rollout and its score, wherever it is made, and the executor that makes it right here."""

from __future__ import annotations

import asyncio
import json
import traceback
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from skillgit.domain.evaluation import Loading, Scored
from skillgit.domain.outcomes import outcome_row
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.errors import BackendError, ConfigError, EnvironmentFaultError, SandboxError
from skillgit.plugin.backend import Message, Reply, ReplyForm, Tool
from skillgit.plugin.environment import Environment, LongLived, ModelEndpoint
from skillgit.wire import AgentQuestion

if TYPE_CHECKING:
    from skillgit.endpoint.server import Ask, Lease

Row = dict[str, object]  # an outcome as JSON values: answer, feedback, turns and scores


class AskedModel(ABC):
    """A model as one attempt asks it; it is the ``Asked`` that environments see."""

    judge: AskedModel | None = None  # that a rollout may ask besides its target

    def __init__(self) -> None:
        self.work: dict[str, tuple[Turn, ...]] = {}  # answer of an agent to what it did before it
        self.replies: list[Reply] = []

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), form: ReplyForm | None = None
    ) -> Reply:
        if not all(isinstance(message, Message) for message in messages):
            raise TypeError("chat was given something else than a Message")
        reply = await self.ask(messages, tools, form)
        self.replies.append(reply)
        if reply.turns:
            self.work[reply.text] = reply.turns
        return reply

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[ModelEndpoint]:
        async with self.lease(self._ask_and_count) as lease:
            yield lease
        if lease.refusal is not None:  # what the program did without an answer is not a result
            raise lease.refusal

    async def _ask_and_count(self, question: AgentQuestion, provider: str, number: int) -> Reply:
        reply = await self.ask_for_program(question, provider, number)
        self.replies.append(reply)
        return reply

    def restart(self) -> None:
        """Start over, for an attempt that was cut off: equal questions are equal draws."""
        self.work.clear()
        self.replies.clear()

    @abstractmethod
    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool], form: ReplyForm | None) -> Reply:
        """Ask the next question of the attempt."""

    @abstractmethod
    async def ask_for_program(self, question: AgentQuestion, provider: str, number: int) -> Reply:
        """Ask what a program asks, the ``number``-th time."""

    @abstractmethod
    def lease(self, ask: Ask) -> AbstractAsyncContextManager[Lease]:
        """Let a program ask during a block, at an address of the machine that the attempt is made on."""


class Executor(Protocol):
    """Where attempts are made. Questions to models are answered by the process that has the ledger, wherever it is."""

    async def open(self, environment: Environment) -> None:
        """Get ready, once for all who ask; after a failure, who asks next tries again."""
        ...

    async def attempt(
        self,
        environment: Environment,
        item: Item,
        skill: Skill,
        target: AskedModel,
        judge: AskedModel,
    ) -> Row:
        """Roll an item out and score it; a failure of the environment is an EnvironmentFaultError, however it fails."""
        ...

    async def close(self, environment: Environment) -> None:
        """End all that was started."""
        ...


class Inline:
    """Attempts in this process."""

    def __init__(self) -> None:
        self._opening: asyncio.Task[None] | None = None

    async def open(self, environment: Environment) -> None:
        # Not isinstance alone: this is asked for every rollout, and a look at a protocol takes long.
        if not hasattr(environment, "open") or not isinstance(environment, LongLived):
            return
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.create_task(environment.open())
        await asyncio.shield(self._opening)

    async def attempt(
        self, environment: Environment, item: Item, skill: Skill, target: AskedModel, judge: AskedModel
    ) -> Row:
        return await _explained(_attempt(environment, item, skill, target, judge))

    async def close(self, environment: Environment) -> None:
        opening, self._opening = self._opening, None
        if opening is not None and isinstance(environment, LongLived):
            await asyncio.wait({opening})
            await environment.close()


async def graded_row(environment: Environment, item: Item, trajectory: Trajectory, judge: AskedModel) -> Row:
    """Score a result that exists; a failure of the environment is an EnvironmentFaultError, however it fails."""

    async def grade() -> Row:
        score, _ = await environment.score(item, trajectory, judge)
        return outcome_row(_checked(score))

    return await _explained(grade())


async def _explained(work: Awaitable[Row]) -> Row:
    try:
        return await work
    except (KeyboardInterrupt, SandboxError, ConfigError, BackendError, EnvironmentFaultError):
        raise
    except BaseException as error:  # the environment may be a user's own class
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise fault_of(error) from error


def _checked(score: object) -> Scored:
    if not isinstance(score, Scored):
        raise TypeError(f"score returned {type(score).__name__}, and not Scored")
    return score


async def _attempt(environment: Environment, item: Item, skill: Skill, target: AskedModel, judge: AskedModel) -> Row:
    target.judge = judge
    trajectory = await environment.rollout(item, skill, target)
    replies = tuple(target.replies)  # a scorer may ask the target too, whose verdicts are not part of the answer
    score, feedback = await environment.score(item, trajectory, judge)
    score, feedback = _with_cuts(_checked(score), feedback, trajectory, replies)
    loading = Loading.of_calls(reply.loading for reply in replies)
    score = score if loading is None else replace(score, loading=loading)
    if loading is Loading.NOT_LOADED:
        feedback = "; ".join(filter(None, (_NOT_LOADED, feedback)))
    # environments see an agent's answer only; the optimizer shall see how it came to it
    turns = [each.row for turn in trajectory.turns for each in (*_work_before(turn, target), turn)]
    row: Row = {"answer": trajectory.answer, "feedback": feedback, "turns": turns}
    if not all(isinstance(text, str) for text in _texts(trajectory, feedback)):
        raise TypeError("an answer, a feedback, a role or the content of a turn is not text")
    tokens = sum(reply.usage.tokens_in + reply.usage.tokens_out for reply in replies)
    return row | outcome_row(replace(score, tokens=tokens or None))


_NOT_LOADED = "the agent did not load the skill, so this says nothing about its rules"


def _with_cuts(score: Scored, feedback: str, trajectory: Trajectory, replies: Sequence[Reply]) -> tuple[Scored, str]:
    """Return score and feedback, which say which replies ended at the limit of their length.

    An answer that a cut reply ends with may be half of one: it never counts as right. An answer
    that was complete before the cut, such as one in a closed tag, keeps its score.
    """
    note = _cut_note(replies)
    if not note:
        return score, feedback
    if not _is_open(trajectory, replies[-1]):
        return replace(score, cut=True), f"{note}; {feedback}" if feedback else note
    return Scored(0.0, 0.0, cut=True), f"{note}, so that there is no complete answer"


def _cut_note(replies: Sequence[Reply]) -> str:
    """Say how many replies were cut, and how many of those that agents got on the way; empty if none was."""
    count, within = sum(reply.finish_reason == "length" for reply in replies), sum(each.cut_within for each in replies)
    parts = []
    if count:
        is_only = len(replies) == 1
        scope = "the reply was" if is_only else f"{count} of {len(replies)} replies were"
        parts.append(f"{scope} cut at the limit of {'its' if is_only else 'their'} length")
    if within:
        scope, whose = ("1 reply was", "its") if within == 1 else (f"{within} replies were", "their")
        parts.append(f"{scope} cut at the limit of {whose} length while the agent worked")
    return f"{', and '.join(parts)} (calls.max_output_tokens)" if parts else ""


def _is_open(trajectory: Trajectory, reply: Reply) -> bool:
    """Say whether the answer is what a reply that was cut ends with, and no whole JSON."""
    text, answer = reply.text.strip(), trajectory.answer.strip()
    is_last = bool(trajectory.turns) and trajectory.turns[-1].content.strip() == text
    if reply.finish_reason != "length" or trajectory.products or not (is_last and answer and text.endswith(answer)):
        return False
    try:
        return not isinstance(json.loads(answer), dict | list)
    except (ValueError, RecursionError):
        return True


def _work_before(turn: Turn, target: AskedModel) -> tuple[Turn, ...]:
    return target.work.get(turn.content, ()) if turn.role == "assistant" else ()


def _texts(trajectory: Trajectory, feedback: str) -> Iterator[str]:
    yield from (trajectory.answer, feedback)
    for turn in trajectory.turns:
        yield from (turn.role, turn.content)
        for call in turn.tool_calls:
            yield from (call.name, call.arguments)


def fault_of(error: BaseException) -> EnvironmentFaultError:
    return EnvironmentFaultError(f"the environment raised {described(error)}", hint="fix the environment")


def described(error: BaseException, caller: str = __file__) -> str:
    """Return what a plug-in raised, and the line of its own file, which the file ``caller`` has called."""
    try:
        words = " ".join(str(error).split())[:300]
    except Exception:  # noqa: BLE001 - the class may be the plug-in's as well
        words = ""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != caller]
    inside = [frame for frame in own if frame.filename == own[0].filename]
    line = f" ({Path(inside[-1].filename).name}, line {inside[-1].lineno})" if inside else ""
    return f"{type(error).__name__}{f': {words}' if words else ''}{line}"
