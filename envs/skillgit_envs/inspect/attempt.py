"""One rollout as a sample of Inspect: what it asks models, how far it is, and how it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from skillgit.domain.trajectory import Turn
from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.plugin.backend import Message, Reply, estimated_tokens
from skillgit.plugin.environment import Asked
from skillgit_envs.inspect.conversion import (
    as_messages,
    as_output,
    as_tools,
    asked_form,
    with_section,
)

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput
    from inspect_ai.scorer import Score
    from inspect_ai.solver import TaskState
    from inspect_ai.tool import Tool as InspectTool
    from inspect_ai.tool import ToolChoice, ToolInfo

PROVIDER = "skillgit"
TARGET, PLAYER, JUDGE = "target", "player", "judge"
"""Names of models: who works on the sample, the same model without the skill in another role, and the judge."""
_KEY = "skillgit:rollout"  # in the store of a sample, which everything that runs in it can read
_DISPLAY = "INSPECT_DISPLAY"
_ROLES_HINT = "name who answers: env.roles: grader=judge, or grader=target"


@dataclass(slots=True, eq=False, kw_only=True)
class SampleRun:
    """A rollout and what follows; ``work`` is there once the task's solver is done, ``over`` once nothing runs."""

    number: int
    target: Asked
    section: str  # the skill, as the target reads it; empty where a tool hands it out
    skill_tool: InspectTool | None
    asks_judge: bool
    judge: Asked | None = None  # once it is known
    work: asyncio.Future[SolverWork] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    over: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    score: Score | None = None
    limit: str = ""  # of Inspect, that ended the work
    failure: Exception | None = None  # of a question, which Inspect would turn into a text
    is_cancelled: bool = False
    _is_scored: asyncio.Event = field(default_factory=asyncio.Event)  # whether scoring may begin
    _context: Context = field(default_factory=copy_context)
    _scopes: list[Any] = field(default_factory=list)
    _arguments: dict[str, str] = field(default_factory=dict)  # call id to what the model wrote
    _readings: dict[str, list[Message]] = field(default_factory=dict)  # what was read of the skill before a message

    def cancel(self) -> None:
        """End the sample where it is; what it costs until then is recorded."""
        if not self.over.done():
            self.is_cancelled = True
            self._is_scored.set()
            for scope in self._scopes:
                scope.cancel()

    def begin_scoring(self, judge: Asked) -> None:
        self.judge, self._context = judge, copy_context()
        self._is_scored.set()

    def end(self, limit: str, error: str) -> None:
        """Note how Inspect ended the sample; an ``error`` of ours is raised as it was."""
        self.limit = limit
        self.failure = self.failure or (_fault(f"Inspect: {_one_line(error)}") if error else None)
        if not self.work.done():
            self.work.set_exception(self.failure or _fault("Inspect ended the sample without scoring it"))
            self.work.exception()  # looked at here: who waited may have been cancelled
        if not self.over.done():
            self.over.set_result(None)

    async def within(self, job: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - of the extra
        """Do what is part of the sample, so that it ends when the rollout is cancelled."""
        import anyio  # noqa: PLC0415 - of the extra

        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            if self.is_cancelled:
                scope.cancel()
            try:
                return await job()
            finally:
                self._scopes.remove(scope)
        raise self.failure or _fault("the rollout was cancelled")

    async def hand_over(self, state: TaskState) -> None:
        """Publish what the solver did, and wait until it is to be scored."""
        if not self.work.done():
            self.work.set_result(SolverWork(turns=self._turns(state), answer=state.output.completion))
        await self._is_scored.wait()

    def _turns(self, state: TaskState) -> tuple[Turn, ...]:
        return tuple(message.turn() for message in self._conversation(state.messages) if message.role != "system")

    def _conversation(self, messages: Sequence[ChatMessage]) -> list[Message]:
        conversation: list[Message] = []
        for message in messages:
            conversation += self._readings.get(message.id or "", [])
            conversation += as_messages([message], self._arguments)
        return conversation

    async def answer(
        self,
        model: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolInfo],
        choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Answer what the sample asks of ``model``; after a failure nothing is answered any more."""
        if self.failure is not None:
            raise self.failure
        try:
            player, is_target = self._player(model), model == TARGET
            form, conversation = asked_form(config, choice if tools else "auto"), self._conversation(messages)
            readings: list[Message] = []
            while True:
                prompt = with_section([*conversation, *readings], self.section if is_target else "")
                offers = [*as_tools(tools), *(await self._skill_offer() if is_target else ())]
                # in a task of its own, whose context is the rollout's, so that it is charged there
                call = player.chat(prompt, offers) if form is None else player.chat(prompt, offers, form)
                reply = await asyncio.get_running_loop().create_task(_run(call), context=self._context.copy())
                if not (is_target and self.skill_tool and any(use.name == "skill" for use in reply.tool_calls)):
                    break
                readings += await self._read_skill(reply)
            self._refuse_half_verdict(reply, config)
        except Exception as error:
            self.failure = self.failure or error
            for scope in self._scopes:
                scope.cancel()  # an agent may catch the error and ask again
            await asyncio.sleep(0)
            raise
        output = as_output(reply, model, self._arguments)
        if readings:
            self._readings[output.message.id or ""] = readings
        return output

    def _refuse_half_verdict(self, reply: Reply, config: GenerateConfig) -> None:
        """Refuse what a scorer's question was answered with if it was cut, unless the task itself keeps it so short."""
        if self._is_scored.is_set() and reply.finish_reason == "length" and config.max_tokens is None:
            message = "the grader's reply was cut at the limit of its length, and half a verdict is no score"
            raise EnvironmentFaultError(message, hint="raise calls.max_output_tokens")

    def _player(self, model: str) -> Asked:
        if model == JUDGE:
            judge: Asked | None = self.judge or getattr(self.target, "judge", None)
            if not self.asks_judge or judge is None:
                raise ConfigError("the task asks a judge, which env.roles does not name", hint=_ROLES_HINT)
            return judge
        if model == TARGET and self._is_scored.is_set():
            raise ConfigError("the scorer asks a model, and env.roles does not say which", hint=_ROLES_HINT)
        return self.target

    async def _skill_offer(self) -> tuple[Any, ...]:
        from inspect_ai.tool import ToolDef, ToolInfo  # noqa: PLC0415 - of the extra

        if self.skill_tool is None:
            return ()
        offer = ToolDef(self.skill_tool)
        return as_tools([ToolInfo(name=offer.name, description=offer.description, parameters=offer.parameters)])

    async def _read_skill(self, reply: Reply) -> list[Message]:
        """Let Inspect's tool lay the skill out in the sandbox; what else the reply asks for has to wait for that."""
        from inspect_ai.model import execute_tools  # noqa: PLC0415 - of the extra

        uses = tuple(use for use in reply.tool_calls if use.name == "skill")
        message = as_output(replace(reply, tool_calls=uses), TARGET, self._arguments).message
        results, _ = await execute_tools([message], [self.skill_tool])
        return as_messages([message, *results], self._arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverWork:
    """What the task's solver did."""

    turns: tuple[Turn, ...]
    answer: str


async def _run(call: Awaitable[Reply]) -> Reply:
    return await call


def _fault(message: str) -> EnvironmentFaultError:
    return EnvironmentFaultError(message, hint="try the task with `inspect eval`, if it lasts")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]


_ATTEMPTS: dict[int, SampleRun] = {}


def entered(attempt: SampleRun) -> None:
    """Let what runs in the sample find ``attempt`` until it is over."""
    _ATTEMPTS[attempt.number] = attempt
    attempt.over.add_done_callback(lambda _: _ATTEMPTS.pop(attempt.number, None))


def of_state(state: TaskState) -> SampleRun:
    """Return the attempt that a sample is, and have all that runs in it find it."""
    state.store.set(_KEY, state.epoch)
    return _ATTEMPTS[state.epoch]


def _of_sample() -> SampleRun:
    from inspect_ai.util import store  # noqa: PLC0415 - of the extra

    attempt = _ATTEMPTS.get(store().get(_KEY))
    if attempt is None:
        raise EnvironmentFaultError("a model was asked outside of a sample", hint="fix the task")
    return attempt


@cache
def register() -> None:
    """Make ``skillgit/…`` a model of Inspect, and refuse every other: it would be asked past the caps."""
    from inspect_ai.hooks import Hooks, hooks  # noqa: PLC0415 - of the extra
    from inspect_ai.model import ModelAPI, get_model, modelapi  # noqa: PLC0415 - of the extra
    from inspect_ai.util import LimitExceededError  # noqa: PLC0415 - of the extra

    _silence()

    class Model(ModelAPI):  # type: ignore[misc]
        async def generate(
            self,
            input: list[ChatMessage],  # noqa: A002 - Inspect's name
            tools: list[ToolInfo],
            tool_choice: ToolChoice,
            config: GenerateConfig,
        ) -> ModelOutput:
            return await _of_sample().answer(self.model_name, input, tools, tool_choice, config)

        async def count_text_tokens(self, text: str) -> int:
            return estimated_tokens(text)  # the default would download a vocabulary

        def max_connections(self) -> int:
            return 10_000

        def tool_result_images(self) -> bool:
            return True

    class NoOtherModel(Hooks):  # type: ignore[misc]
        async def on_before_model_generate(self, data: Any) -> None:  # noqa: ANN401 - of the extra
            if not data.model_name.startswith(f"{PROVIDER}/"):
                attempt = _of_sample()
                message = f"the task asks the model {data.model_name} by itself, past ledger and caps"
                attempt.failure = ConfigError(
                    message, hint="give it a model role, or arguments that name skillgit/judge"
                )
                raise LimitExceededError("custom", value=0, limit=0, message=message)

    modelapi(PROVIDER)(Model)
    get_model(f"{PROVIDER}/{TARGET}")  # Inspect prints which hooks it knows by now
    hooks(name=PROVIDER, description="keeps questions to models within skillgit")(NoOtherModel)


def _silence() -> None:
    """Have Inspect show nothing in this process, which it decides once."""
    from inspect_ai.util import display_type  # noqa: PLC0415 - of the extra

    before = os.environ.get(_DISPLAY)
    os.environ[_DISPLAY] = "none"
    display_type()
    os.environ.pop(_DISPLAY)
    if before is not None:
        os.environ[_DISPLAY] = before
