"""The test kit for backends: whether one keeps the promises of its contract."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import get_args

from skillgit.errors import BackendError, SkillgitError
from skillgit.plugin.backend import (
    Backend,
    BackendInfo,
    FinishReason,
    Image,
    Message,
    Reply,
    Text,
    Tool,
    ToolCall,
    Usage,
    system,
    user,
)
from skillgit.testing.case import Case, Promises, check_failures, described

_PLAIN = (system("You are brief."), user("Say hello."))
_LINGERS_S = 5.0


def check_backend(
    cls: type[Backend],
    settings: Mapping[str, object] | None = None,
    *,
    model: str,
    messages: Sequence[Message] = _PLAIN,
    echoes: bool = False,
    tools: bool = False,
    images: bool = False,
    misbehaving: Callable[[str], Mapping[str, object]] | None = None,
    timeout_s: float = 60.0,
) -> None:
    """Examine a backend, with about 40 small calls of its model; call it where no event loop runs.

    What it breaks of the contract is a ConformanceError.

    Args:
        messages: A conversation that the model can answer; the last message is the user's.
        echoes: Whether the model's reply repeats the last user message. Only then mixed-up answers can be detected.
        tools: Whether the model calls a tool when it is offered one.
        misbehaving: Returns the settings with which the backend asks the server at an address. The kit runs servers
            that refuse, break off and never answer there. Without it, these failures are not examined.
        timeout_s: Seconds that one reply may take.
    """
    promises = Promises(cls.__name__)
    case = Case(
        cls=cls,
        settings=dict(settings or {}),
        model=model,
        messages=tuple(messages),
        echoes=echoes,
        tools=tools,
        images=images,
        misbehaving=misbehaving,
        timeout_s=timeout_s,
    )
    _check_info(case, promises)
    if _check_making(case, promises):
        asyncio.run(_check_calls(case, promises))
    promises.settle()


async def _check_calls(case: Case, promises: Promises) -> None:
    checks: list[tuple[str, Callable[[Case, Backend, Promises], Awaitable[None]]]] = [
        ("the same request again", _ask_twice),
        ("the same request again", _ask),
        ("a request in other letters than ASCII", _ask_in_letters),
        ("a request with a lone surrogate", _ask_in_half_a_letter),
        (f"{MANY} calls at once", _ask_much),
        *([("a conversation with a tool", _offer_tool)] if case.tools else []),
        *([("a request with a picture", _show_picture)] if case.images else []),
    ]
    with promises.during("a plain request"):
        async with case.opened() as backend:
            await _ask(case, backend, promises)
        for activity, check in checks:
            with promises.during(activity):
                async with case.opened() as backend:
                    await check(case, backend, promises)
    with promises.during("a call that is cancelled"):
        async with case.opened() as backend:
            await _cancel(case, backend, promises)
    with promises.during("aclose before the first call"):
        await case.cls(dict(case.settings)).aclose()
    with promises.during("a second aclose"):
        backend = case.cls(dict(case.settings))
        await backend.aclose()
        await backend.aclose()
    await check_failures(case, promises)


def _check_info(case: Case, promises: Promises) -> None:
    info = getattr(case.cls, "info", None)
    if not promises.hold(isinstance(info, BackendInfo), "its class has no info, which is a BackendInfo"):
        return
    assert isinstance(info, BackendInfo)  # noqa: S101 - for the type checker
    promises.hold(info.name.isidentifier(), f"info.name is '{info.name}', which no configuration key can begin with")
    promises.hold(info.summary.strip(), "info.summary is empty")
    promises.hold("\n" not in info.summary, "info.summary is longer than one line")
    is_known = not info.models or any(case.model == name or name in case.model for name in info.models)
    promises.hold(is_known, f"info.models lists the models that it knows, but not '{case.model}'")
    has_prices = all(price.usd_in >= 0 and price.usd_out >= 0 for price in info.prices.values())
    promises.hold(has_prices, "info.prices has a price below zero")


def _check_making(case: Case, promises: Promises) -> bool:
    """Say whether a backend can be made, so that there is something to ask."""
    with connections() as attempts:
        try:
            backend = case.cls(dict(case.settings))
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
            promises.note(f"it cannot be made with its settings: {described(error)}")
            return False
    promises.hold(not attempts, "it uses the network while it is made; that is for the first call")
    promises.hold(isinstance(backend, Backend), "it lacks a method of the contract: complete, aclose")
    try:
        case.cls({**case.settings, "a_setting_that_no_backend_has": 1})
    except SkillgitError:
        pass
    except Exception as error:  # noqa: BLE001 - see above
        promises.note(f"a setting that it does not know raises {described(error)}, not ConfigError")
    else:
        promises.note("it silently ignores a setting that it does not know")
    return True


@contextmanager
def connections() -> Iterator[list[object]]:
    """Note every connection that is tried while the block lasts."""
    attempts: list[object] = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def noted_connect(self: socket.socket, address: object) -> None:
        attempts.append(address)
        connect(self, address)  # type: ignore[arg-type]

    def noted_look_up(*arguments: object, **more: object) -> object:
        attempts.append(arguments)
        return look_up(*arguments, **more)  # type: ignore[arg-type]

    socket.socket.connect = noted_connect  # type: ignore[method-assign,assignment]
    socket.getaddrinfo = noted_look_up  # type: ignore[assignment]
    try:
        yield attempts
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]
        socket.getaddrinfo = look_up


async def _cancel(case: Case, backend: Backend, promises: Promises) -> None:
    """Cancel a call that has just begun: a run that is stopped must not wait for an answer that is no longer wanted."""
    task = asyncio.ensure_future(backend.complete(case.request))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    tasks, _ = await asyncio.wait({task}, timeout=_LINGERS_S)
    promises.hold(tasks, f"a call that is cancelled does not end within {_LINGERS_S:g} s")
    if tasks and not task.cancelled() and (error := task.exception()):
        promises.note(f"a call that is cancelled raises {described(error)}")


MANY = 32  # calls in flight at once, all on one backend
_LETTERS = "Zürich, 東京, مرحبا, 🙂👩‍🚀, “quoted” \\ back"
_TOOL = Tool(
    name="look_up",
    description="Looks a text up. Use it to answer.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
"""A picture of one dot."""


def check_reply(reply: object, promises: Promises) -> None:
    if not promises.hold(isinstance(reply, Reply), f"complete returns {type(reply).__name__}, not a Reply"):
        return
    assert isinstance(reply, Reply)  # noqa: S101 - for the type checker
    promises.hold(isinstance(reply.text, str) and reply.text.strip(), "a reply to a plain question has no text")
    is_known = reply.finish_reason in get_args(FinishReason)
    promises.hold(is_known, f"finish_reason is '{reply.finish_reason}', which the contract does not know")
    promises.hold(not reply.tool_calls, "a reply calls tools though none is on offer")
    _check_usage(reply.usage, promises)


def _check_usage(usage: Usage, promises: Promises) -> None:
    counts = (usage.tokens_in, usage.tokens_out, usage.cached, usage.reasoning)
    whole = all(isinstance(count, int) and count >= 0 for count in counts)
    if not promises.hold(whole, f"usage has a count that is not a whole number from 0 on: {usage}"):
        return
    promises.hold(usage.tokens_in > 0, "usage.tokens_in is 0 for a prompt that is not empty")
    promises.hold(usage.tokens_out > 0, "usage.tokens_out is 0 for a reply that is not empty")
    promises.hold(usage.cached <= usage.tokens_in, "usage.cached is more than tokens_in, which includes it")
    promises.hold(usage.reasoning <= usage.tokens_out, "usage.reasoning is more than tokens_out, which includes it")


async def _ask(case: Case, backend: Backend, promises: Promises) -> None:
    check_reply(await case.ask(backend, case.request), promises)


async def _ask_twice(case: Case, backend: Backend, promises: Promises) -> None:
    for _ in range(2):
        await _ask(case, backend, promises)


async def _ask_in_letters(case: Case, backend: Backend, promises: Promises) -> None:
    reply = await case.ask(backend, case.saying(_LETTERS))
    same = not case.echoes or _LETTERS in reply.text
    promises.hold(same, f"letters change on their way: '{_LETTERS}' came back as '{reply.text}'")


async def _ask_in_half_a_letter(case: Case, backend: Backend, _: Promises) -> None:
    """Ask in what no encoding can hold."""
    with suppress(BackendError):
        await case.ask(backend, case.saying("half a pair: \ud83d"))


async def _ask_much(case: Case, backend: Backend, promises: Promises) -> None:
    words = [f"question-{number:03d}" for number in range(MANY)]
    calls = (case.ask(backend, case.saying(word)) for word in words)
    replies = await asyncio.gather(*calls, return_exceptions=True)
    if errors := [reply for reply in replies if isinstance(reply, BaseException)]:
        promises.note(f"{len(errors)} of {MANY} calls at once fail, such as {described(errors[0])}")
    if case.echoes:
        pairs = zip(words, replies, strict=True)
        mismatches = sum(isinstance(reply, Reply) and word not in reply.text for word, reply in pairs)
        promises.hold(not mismatches, f"{mismatches} of {MANY} calls at once get the answer to another question")


async def _offer_tool(case: Case, backend: Backend, promises: Promises) -> None:
    """Offer a tool, see it called, and answer it."""
    request = replace(case.request, tools=(_TOOL,))
    reply = await case.ask(backend, request)
    if not promises.hold(reply.tool_calls, "it does not call the tool that it is offered"):
        return
    is_right = reply.finish_reason == "tool_calls"
    promises.hold(is_right, f"a reply that calls a tool ends as '{reply.finish_reason}'")
    for call in reply.tool_calls:
        _check_call(call, promises)
    parts = (Text(text=reply.text),) if reply.text else ()
    question = Message(role="assistant", parts=parts, tool_calls=reply.tool_calls)
    answer = (Text(text="It is blue."),)
    answers = (Message(role="tool", parts=answer, tool_call_id=call.id) for call in reply.tool_calls)
    after = await case.ask(backend, replace(request, messages=(*request.messages, question, *answers)))
    promises.hold(after.text or after.tool_calls, "a reply to the result of a tool is empty")


def _check_call(call: ToolCall, promises: Promises) -> None:
    promises.hold(call.name == _TOOL.name, f"it calls the tool '{call.name}', which is not on offer")
    promises.hold(call.id, "a tool call has no id, so that its result cannot name it")
    try:
        arguments = json.loads(call.arguments)
    except (TypeError, ValueError, RecursionError):
        arguments = None
    promises.hold(
        isinstance(arguments, dict), f"the arguments of a tool call are not a JSON object: '{call.arguments}'"
    )


async def _show_picture(case: Case, backend: Backend, promises: Promises) -> None:
    *before, last = case.messages
    message = replace(last, parts=(*last.parts, Image(media_type="image/png", data=_DOT)))
    check_reply(await case.ask(backend, replace(case.request, messages=(*before, message))), promises)
