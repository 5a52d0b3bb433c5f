"""Serves every wire format on the loopback: one address for the process, one token for each call of an agent."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, Final

from aiohttp import web

from skillgit.domain.ids import short_digest
from skillgit.domain.trajectory import ToolUse, Turn
from skillgit.domain.untrusted.json_limits import MOST_BYTES, DocumentError, read_document
from skillgit.errors import SkillgitError, UnanswerableError
from skillgit.plugin.backend import Message, ModelAccess, Reply, estimated_tokens, flatten
from skillgit.wire import CHAT, FORMATS, MESSAGES, AgentQuestion, QuestionError, WireFormat
from skillgit.wire.wire_format import frame

if TYPE_CHECKING:
    Ask = Callable[[AgentQuestion, str, int], Awaitable[Reply]]

_COMMIT_S = 30.0
"""Seconds after which a stream begins without an answer: before that, a refusal can still have a status of its own."""
_KEEP_ALIVE_S = 3.0
_REFUSED = 400
"""The status that ends every agent that was tried, at once and with the message; others make some of them ask again."""
_NO_RETRY: Final = {"x-should-retry": "false"}
_OVER = "this rollout is over"


@dataclass(slots=True, kw_only=True, eq=False)
class Lease:
    """What one call of an agent may ask; ``refusal`` is why it is not answered any more."""

    access: ModelAccess
    ask: Ask
    context: Context  # in which its questions are asked, so that they are charged to what the call is part of
    questions: int = 0
    refusal: SkillgitError | None = None
    draws: Counter[str] = field(default_factory=Counter)  # how often each question was asked, and delivered
    undelivered: dict[str, asyncio.Task[Reply]] = field(default_factory=dict)
    streamed: set[str] = field(default_factory=set)  # questions whose last answer was delivered as a stream
    tasks: set[asyncio.Task[Reply]] = field(default_factory=set)
    exchanges: list[tuple[AgentQuestion, Reply]] = field(default_factory=list)  # in the order of the answers

    @property
    def _last(self) -> tuple[AgentQuestion, Reply] | None:
        """The last exchange of the longest conversation: each question of one repeats what was said before."""
        return max(self.exchanges, key=lambda exchange: len(exchange[0].messages), default=None)

    def turns(self) -> tuple[Turn, ...]:
        """Return the longest conversation: side questions of an agent, as for a title, are left out."""
        if self._last is None:
            return ()
        question, reply = self._last
        calls = tuple(ToolUse(name=call.name, arguments=call.arguments) for call in reply.tool_calls)
        last = Turn(role="assistant", content=reply.text, tool_calls=calls)
        return (*(message.turn() for message in _results_in_order(question.messages)), last)

    def answer(self, question: AgentQuestion, wire: WireFormat, *, is_repeated: bool) -> asyncio.Task[Reply]:
        """Ask ``question``; an answer that did not arrive, or that the client says it asks for again, is not bought."""
        identity = question.identity
        task = self.undelivered.get(identity)
        has_failed = task is not None and task.done() and (task.cancelled() or task.exception() is not None)
        if task is None or has_failed:
            draw = self.draws[identity]
            # some agents that lose a stream ask once more without one, and the socket may have looked sent
            is_fallback = not question.stream and identity in self.streamed
            if draw and (is_repeated or is_fallback):
                draw -= 1  # the ledger has it
            else:
                self.draws[identity] += 1
            self.questions += 1
            asking = self._answered(question, wire.provider, draw)
            task = asyncio.get_running_loop().create_task(asking, context=self.context.copy())
            self.undelivered[identity] = task
            self.tasks.add(task)
        return task

    def work(self) -> tuple[Turn, ...]:
        """Return the turns of :meth:`turns` from the agent's first one on, without its final words."""
        turns = self.turns()[:-1]
        first = next((number for number, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
        return turns[first:]

    def finished(self, reply: Reply) -> Reply:
        """Return the agent's ``reply`` with what it did, and with what was cut of the replies that it got.

        A program says that it is done also where the words that it ends with are those of a reply that was cut.
        """
        cuts = [inner for _, inner in self.exchanges if inner.finish_reason == "length"]
        last = self._last[1] if self._last is not None else None
        is_cut = last in cuts and last is not None and _ends_alike(reply.text.strip(), last.text.strip())
        finish_reason = "length" if is_cut else reply.finish_reason
        return replace(reply, turns=self.work(), finish_reason=finish_reason, cut_within=len(cuts) - is_cut)

    async def _answered(self, question: AgentQuestion, provider: str, draw: int) -> Reply:
        reply = await self.ask(question, provider, draw)
        self.exchanges.append((question, reply))
        return reply

    def delivered(self, question: AgentQuestion) -> None:
        identity = question.identity
        self.undelivered.pop(identity, None)
        if question.stream:
            self.streamed.add(identity)
        else:
            self.streamed.discard(identity)


def _results_in_order(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield ``messages`` with what tools brought in the order of the calls, since a turn does not say which it answers.

    Agents send the results of calls side by side as these end. One that is missing before another is empty.
    """
    calls, results = list[str](), dict[str, Message]()
    for message in (*messages, None):
        if message is not None and message.role == "tool" and message.tool_call_id in set(calls) - results.keys():
            results[message.tool_call_id] = message
            continue
        while results:
            yield results.pop(calls.pop(0), Message(role="tool", parts=()))
        if message is not None:
            calls = [call.id for call in message.tool_calls]
            yield message


def _ends_alike(text: str, cut_text: str) -> bool:
    return text.endswith(cut_text) if len(text) >= len(cut_text) else bool(text) and cut_text.endswith(text)


class MeteredEndpoint:
    """The server, which starts with the first lease and ends with ``aclose``."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._runner: web.AppRunner | None = None
        self._starting = asyncio.Lock()
        self._url = ""

    @asynccontextmanager
    async def lease(self, ask: Ask) -> AsyncIterator[Lease]:
        """Let an agent ask during the block; what it still asks at the end is answered and recorded before it ends.

        What refused the agent is raised in place of any error that this led to in the block.
        """
        url = await self._started()
        token = f"sg-{urlsafe_b64encode(urandom(24)).decode()}"
        lease = Lease(access=ModelAccess(url=url, token=token), ask=ask, context=copy_context())
        self._leases[token] = lease
        try:
            yield lease
        except Exception as error:
            if lease.refusal is not None:
                raise lease.refusal from error
            raise
        finally:
            del self._leases[token]
            if lease.tasks:  # it was paid for, or will be
                await asyncio.wait(lease.tasks)
            for task in lease.tasks:
                with suppress(BaseException):
                    task.exception()

    async def aclose(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _started(self) -> str:
        async with self._starting:
            if self._runner is None:
                app = web.Application(client_max_size=MOST_BYTES)
                for wire in FORMATS:
                    # Some agents add the version themselves, others take the address as it is.
                    for path in (wire.path, wire.path.removeprefix("/v1")):
                        app.router.add_post(path, partial(self._asked, wire))
                app.router.add_post("/v1/messages/count_tokens", self._counted)
                app.router.add_get("/v1/models", self._models)
                self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
                await self._runner.setup()
                site = web.TCPSite(self._runner, "127.0.0.1", 0)
                await site.start()
                self._url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
            return self._url

    def _lease_of(self, request: web.Request) -> Lease | None:
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        token = bearer if scheme.lower() == "bearer" else ""
        return self._leases.get(request.headers.get("x-api-key", "") or token.strip())

    async def _asked(self, wire: WireFormat, request: web.Request) -> web.StreamResponse:
        lease = self._lease_of(request)
        if lease is None:
            return _refused(wire, _OVER)
        try:
            question = wire.read_question(await _body(request))
        except QuestionError as error:
            return _refused(wire, str(error))
        if lease.refusal is not None:
            return _refused(wire, lease.refusal.message)
        is_repeated = request.headers.get("x-stainless-retry-count", "0") not in ("", "0")
        task = lease.answer(question, wire, is_repeated=is_repeated)
        name = short_digest([lease.access.token, question.identity, lease.questions])
        await asyncio.wait([task], timeout=_COMMIT_S if question.stream else None)
        response: web.StreamResponse
        if question.stream and not (task.done() and task.exception()):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
            await response.prepare(request)
            async for event in self._events(wire, lease, question, task, name):
                await response.write(event)
        else:
            try:
                response = web.json_response(wire.write_reply(question, task.result(), name))
            except SkillgitError as error:
                return _refused(wire, _noted(lease, error))
            await response.prepare(request)
        await response.write_eof()
        _arrived(request, lease, question)
        return response

    async def _events(
        self, wire: WireFormat, lease: Lease, question: AgentQuestion, task: asyncio.Task[Reply], name: str
    ) -> AsyncIterator[bytes]:
        while not task.done():
            yield wire.keep_alive
            await asyncio.wait([task], timeout=_KEEP_ALIVE_S)
        try:
            reply = task.result()
        except SkillgitError as error:
            yield frame(wire.write_error_event(_noted(lease, error)))
        else:
            for event in wire.write_stream(question, reply, name):
                yield event

    async def _counted(self, request: web.Request) -> web.Response:
        """Estimate the tokens of a prompt, which costs nothing."""
        if self._lease_of(request) is None:
            return _refused(MESSAGES, _OVER)
        try:
            question = MESSAGES.read_question(await _body(request))
        except QuestionError as error:
            return _refused(MESSAGES, str(error))
        return web.json_response({"input_tokens": estimated_tokens(flatten(question.messages))})

    async def _models(self, request: web.Request) -> web.Response:
        """List one model in the form of both providers; every other name is answered by the same."""
        if self._lease_of(request) is None:
            return _refused(CHAT, _OVER)
        both = {"id": "skillgit", "object": "model", "owned_by": "skillgit", "created": 0}
        anthropic = {"type": "model", "display_name": "skillgit", "created_at": "1970-01-01T00:00:00Z"}
        pages = {"object": "list", "has_more": False, "first_id": "skillgit", "last_id": "skillgit"}
        return web.json_response({**pages, "data": [{**both, **anthropic}]})


async def _body(request: web.Request) -> dict[str, object]:
    try:
        body = read_document(await request.read())
    except (DocumentError, web.HTTPRequestEntityTooLarge) as error:
        raise QuestionError(f"the body is not readable JSON: {error}") from error
    if not isinstance(body, dict):
        raise QuestionError("the body has to be an object")
    return body


def _noted(lease: Lease, error: SkillgitError) -> str:
    """Note why an agent gets no answer, unless another question may get one, and return what it gets."""
    if not isinstance(error, UnanswerableError):
        lease.refusal = lease.refusal or error
    return error.message


def _arrived(request: web.Request, lease: Lease, question: AgentQuestion) -> None:
    transport = request.transport
    if transport is not None and not transport.is_closing():
        lease.delivered(question)


def _refused(wire: WireFormat, message: str) -> web.Response:
    return web.json_response(wire.write_error(message), status=_REFUSED, headers=_NO_RETRY)
