"""The transport: HTTP/1.1 on the loopback, one answer after the other on a connection that stays open."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
import struct
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from skillgit.plugin.backend import Image
from wire import brain, scripted
from wire.batch_apis import BatchApis, BatchSettings, LostError, RawBody
from wire.dialects import Answer, HttpRequest, Question, WireError, find, model_list, openai_error
from wire.faults import ODD, REFUSALS, Faults, chance, spoilt
from wire.schemas import check_schema

if TYPE_CHECKING:
    from skillgit.plugin.backend import Reply
    from wire.dialects import Dialect
    from wire.scripted import Script

LINGER_NOT = struct.pack("ii", 1, 0)
SLOW_PIECE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the server behaves.

    Attributes:
        latency: Seconds before an answer.
        tail_share: Share of the questions that wait ``tail`` seconds instead, chosen by the question.
        tail: Seconds.
        answers: Questions that are answered; later ones wait as long as the client does. 0 for all.
        cap: Questions in flight above which the answer is 429; 0 for none.
        keep: Whether the log keeps headers and bodies.
        quote: Words that every error ends with, for providers that quote what they were sent.
        said: Patterns, and what stands in the models' texts in place of what they match.
        faults: What fails.
        scripted: Replies to questions that contain a word, instead of the model's own.
        blind: Which model refuses pictures; empty for none.
        listed: Models that the list of models has besides.
        batches: How batches fare.
        no_schema: With which words a schema for the reply is refused; empty takes strict ones, as OpenAI does.
    """

    latency: float = 0.0
    tail_share: float = 0.0
    tail: float = 0.0
    answers: int = 0
    cap: int = 0
    keep: bool = False
    quote: str = ""
    said: tuple[tuple[str, str], ...] = ()
    faults: Faults = field(default_factory=Faults)
    scripted: Script = ()
    batches: BatchSettings = field(default_factory=BatchSettings)
    no_schema: str = ""
    blind: str = ""
    listed: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Entry:
    """One request in the log.

    Attributes:
        number: Questions to models before it.
        path: With the query.
        dialect: Who read it; empty if there was none.
        model: That was asked.
        role: ``target`` or ``optimizer``, if the model is the reader or the analyst.
        digest: Of path and body: equal questions have equal digests.
        stream: Whether a stream was asked for.
        batched: Whether it was one of a batch.
        in_flight: Questions in flight on arrival, this one included.
        fault: What befell it.
        status: Of the answer; 0 if there was none.
        delivered: Whether a whole answer of the model, which a provider would charge and a client must not ask for
            again, went out to a client that was still there.
        tokens_in: Of the question.
        tokens_out: Of the answer.
        headers: If the log keeps them.
        document: The body, if the log keeps them.
    """

    number: int = 0
    path: str = ""
    dialect: str = ""
    model: str = ""
    role: str = ""
    digest: str = ""
    stream: bool = False
    batched: bool = False
    in_flight: int = 0
    fault: str = ""
    status: int = 0
    delivered: bool = False
    tokens_in: int = 0
    tokens_out: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)


class Server:
    """Everything that outlives a connection."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.log: list[Entry] = []
        self.asked = 0
        self.in_flight = 0
        self._seen: dict[str, int] = {}
        self._known: dict[str, Reply] = {}
        self._batches = BatchApis(self._ask_in_batch)
        self._waiting: list[tuple[int, asyncio.Event]] = []

    def clear(self) -> None:
        """Forget all requests; what is in flight stays in flight."""
        self.log.clear()
        self._seen.clear()
        self.asked = 0

    async def serve(self, request: HttpRequest, connection: Connection) -> None:
        """Answer one request."""
        if request.path == "/wire/wait":
            await self._wait(request)
        if request.path.startswith("/wire/"):
            connection.send(self._control(request))
            return
        self._batches.settings = self.settings.batches
        if await self._about_batches(request, connection):
            return
        served = find(request.method, request.path)
        entry = Entry(path=f"{request.path}?{request.query}" if request.query else request.path)
        if self.settings.keep:
            entry.headers, entry.document = dict(request.headers), dict(request.document)
        self.log.append(entry)
        self.in_flight += 1
        entry.in_flight = self.in_flight
        try:
            if request.method == "GET" and request.path.endswith("/models"):
                entry.dialect = "models"
                connection.note(entry, Answer(document=model_list((*brain.MODELS, *self.settings.listed))))
            elif served is None:
                connection.note(entry, Answer(document={"detail": "Not Found"}, status=404))
            else:
                entry.dialect = served.name
                await self._speak(served, request, entry, connection)
        finally:
            self.in_flight -= 1

    async def _about_batches(self, request: HttpRequest, connection: Connection) -> bool:
        try:
            answer = self._batches.answer(request)
        except WireError as error:
            answer = Answer(document=openai_error(error), status=error.status)
        except LostError:
            connection.reset()
            return True
        if answer is not None:
            connection.send(answer)
        return answer is not None

    def _ask_in_batch(self, dialect: Dialect, request: HttpRequest) -> Answer:
        entry = Entry(path=request.path, dialect=dialect.name, batched=True, status=200, delivered=True)
        self.log.append(entry)
        question = dialect.question(request)
        self._enter(entry, question, request)
        reply = self._reply(entry, question)
        entry.tokens_in, entry.tokens_out = reply.usage.tokens_in, reply.usage.tokens_out
        if entry.fault in ODD:
            return dialect.odd(entry.fault, question, reply)
        return dialect.answer(question, reply)

    async def _wait(self, request: HttpRequest) -> None:
        """Return when so many questions have arrived, or it has taken too long."""
        arrived = asyncio.Event()
        waiter = (cast("int", request.document["count"]), arrived)
        self._waiting.append(waiter)
        self._wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(cast("float", request.document["timeout"])):
                await arrived.wait()
        self._waiting.remove(waiter)

    def _wake(self) -> None:
        for count, arrived in self._waiting:
            if self.asked >= count:
                arrived.set()

    async def _speak(self, dialect: Dialect, request: HttpRequest, entry: Entry, connection: Connection) -> None:
        try:
            question = dialect.question(request)
            self._enter(entry, question, request)
            self._check_cap(entry)
            check_schema(question.schema, self.settings.no_schema)
            self._check_eyes(question)
            await asyncio.sleep(self._latency(entry.digest))
            if self.settings.answers and entry.number >= self.settings.answers:
                await asyncio.Event().wait()
            await self._answer(dialect, question, entry, connection)
        except WireError as error:
            after = self.settings.faults.retry_after
            headers = {"retry-after": f"{after:g}"} if entry.fault == "rate_limit_after" else {}
            told = WireError(error.status, error.code, f"{error.message}{self.settings.quote}")
            connection.note(entry, Answer(document=dialect.error(told), status=error.status, headers=headers))

    def _enter(self, entry: Entry, question: Question, request: HttpRequest) -> None:
        body = json.dumps([request.path, request.document], sort_keys=True).encode()
        entry.digest = hashlib.sha256(body).hexdigest()[:16]
        entry.model, entry.stream = question.model, question.stream
        entry.role = brain.ROLES.get(brain.find(question.model), "")
        entry.number = self.asked
        seen = self._seen.get(entry.digest, 0)
        self._seen[entry.digest] = seen + 1
        self.asked += 1
        self._wake()
        entry.fault = self.settings.faults.choose(entry.digest, entry.model, number=entry.number, seen=seen)

    def _check_cap(self, entry: Entry) -> None:
        cap = self.settings.cap
        if cap and entry.in_flight > cap:
            raise WireError(429, "rate_limit", f"More than {cap} requests in flight")

    def _check_eyes(self, question: Question) -> None:
        pictures = [part for message in question.messages for part in message.parts if isinstance(part, Image)]
        if pictures and self.settings.blind and self.settings.blind in question.model:
            raise WireError(404, "invalid_request", "No endpoints found that support image input")

    def _latency(self, digest: str) -> float:
        in_tail = self.settings.tail_share and chance("tail", digest) < self.settings.tail_share
        return self.settings.tail if in_tail else self.settings.latency

    async def _answer(self, dialect: Dialect, question: Question, entry: Entry, connection: Connection) -> None:
        if entry.fault in REFUSALS:
            raise WireError(*REFUSALS[entry.fault])
        if entry.fault == "reset":
            connection.reset()
            return
        if entry.fault == "hang":
            await asyncio.Event().wait()
        reply = self._reply(entry, question)
        entry.tokens_in, entry.tokens_out = reply.usage.tokens_in, reply.usage.tokens_out
        if entry.fault in ODD:
            connection.note(entry, dialect.odd(entry.fault, question, reply))
            entry.delivered = entry.fault == "no_usage"
            return
        if entry.fault == "malformed_text":
            reply = replace(reply, text=spoilt(reply.text))
        await connection.deliver(entry, dialect.answer(question, reply), self.settings.faults.pause)

    def _reply(self, entry: Entry, question: Question) -> Reply:
        if entry.digest not in self._known:
            reply = scripted.reply(question, self.settings.scripted) or brain.answer(question)
            for pattern, replacement in self.settings.said:
                reply = replace(reply, text=re.sub(pattern, replacement, reply.text))
            self._known[entry.digest] = reply
        return self._known[entry.digest]

    def _control(self, request: HttpRequest) -> Answer:
        if request.path == "/wire/log":
            return Answer(document=[asdict(entry) for entry in self.log])
        if request.path == "/wire/wait":
            return Answer(document={"asked": self.asked, "in_flight": self.in_flight})
        if request.path == "/wire/clear":
            self.clear()
        if request.path == "/wire/settings":
            self.settings = settings_of(request.document)
        return Answer(document={})


def settings_of(document: Any) -> Settings:
    """Read settings as ``dataclasses.asdict`` writes them; JSON has made lists of the tuples."""
    given = document["faults"]
    faults = Faults(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    said = tuple((pattern, replacement) for pattern, replacement in document["said"])
    batches = BatchSettings(**document["batches"])
    return Settings(**{**document, "said": said, "faults": faults, "batches": batches})


class Connection(asyncio.Protocol):
    """One connection: takes requests apart and writes answers; a client that goes away cancels what it asked for."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def connection_lost(self, _error: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()

    def note(self, entry: Entry, answer: Answer) -> None:
        """Write an answer at once and log its status."""
        entry.status = answer.status
        self.send(answer)

    def send(self, answer: Answer) -> None:
        """Write an answer at once."""
        for piece in _pieces(answer):
            self._transport.write(piece)

    def close(self) -> None:
        """End the connection and what was asked on it."""
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Break the connection off, so that the client sees a reset and not an end."""
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self._transport.abort()

    async def deliver(self, entry: Entry, answer: Answer, pause: float) -> None:
        """Write a good answer, or spoil it on its way as ``entry.fault`` says."""
        entry.status = answer.status
        pieces = _pieces(answer)
        whole = b"".join(pieces)
        if entry.fault == "malformed":
            answer = (
                Answer(document=RawBody(b'{"id": "x", "choices": [{"message": oops')) if not answer.frames else answer
            )
            answer = replace(answer, frames=[b"data: {oops\n\n", *answer.frames]) if answer.frames else answer
            self.send(answer)
            return
        if entry.fault == "truncated":
            head = whole.index(b"\r\n\r\n") + 4
            self._transport.write(whole[: (head + len(whole)) // 2])
            self._transport.close()
            return
        if entry.fault == "slow_stream":
            for start in range(0, len(whole), SLOW_PIECE):
                self._transport.write(whole[start : start + SLOW_PIECE])
                await asyncio.sleep(pause)
        else:
            self._transport.writelines(pieces)
        entry.delivered = not self._transport.is_closing()

    def _next(self) -> None:
        if self._task is not None:
            return
        request = _take(self._buffer)
        if request is not None:
            self._task = asyncio.get_running_loop().create_task(self._server.serve(request, self))
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()):
            body = Answer(document={"error": {"message": f"bug of the wire server: {error!r}"}}, status=599)
            self.send(body)
        if not self._transport.is_closing():
            self._next()


def _take(buffer: bytearray) -> HttpRequest | None:
    """Take one whole request off the front of ``buffer``."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    if len(buffer) < end + 4 + length:
        return None
    body = bytes(buffer[end + 4 : end + 4 + length])
    del buffer[: end + 4 + length]
    method, target, _ = first.split(" ", 2)
    path, _, query = target.partition("?")
    is_json = "multipart" not in headers.get("content-type", "")
    document = ({"body": body.decode()} if not is_json else json.loads(body)) if body else {}
    return HttpRequest(method=method, path=path, query=query, headers=headers, document=document)


def _pieces(answer: Answer) -> list[bytes]:
    streamed = bool(answer.frames)
    body = b"" if streamed else answer.document if isinstance(answer.document, RawBody) else json.dumps(answer.document)
    body = body.encode() if isinstance(body, str) else bytes(body)
    phrase = HTTPStatus(answer.status).phrase if answer.status in HTTPStatus._value2member_map_ else "Unknown"
    kind = "text/event-stream" if streamed else "application/json"
    size = {"transfer-encoding": "chunked"} if streamed else {"content-length": str(len(body))}
    headers = {"content-type": kind, "x-request-id": "req_wire", **size, **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    head = "\r\n".join([*lines, "", ""]).encode()
    if not streamed:
        return [head + body]
    return [head, *(b"%x\r\n%s\r\n" % (len(frame), frame) for frame in answer.frames), b"0\r\n\r\n"]
