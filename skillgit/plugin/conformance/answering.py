"""Owns what a reply has to be: whole, counted, in the right letters and the right one of many."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from skillgit.errors import BackendError
from skillgit.plugin.backend import FinishReason, Image, Message, Reply, Text, Tool, ToolCall, Usage
from skillgit.plugin.conformance.promises import described

if TYPE_CHECKING:
    from skillgit.plugin.conformance.case import Case
    from skillgit.plugin.conformance.promises import Promises

MANY = 32
"""Calls in flight at once, all on one backend."""
_LETTERS = "Zürich, 東京, مرحبا, 🙂👩‍🚀, “quoted” \\ back"
_LONE_SURROGATE = "half a pair: \ud83d"
_TOOL = Tool(
    name="look_up",
    description="Looks a text up. Use it to answer.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
"""A picture of one dot."""


def check_reply(reply: object, promises: Promises) -> None:
    """Look at a reply to a plain question."""
    if not promises.hold(isinstance(reply, Reply), f"complete returns {type(reply).__name__}, not a Reply"):
        return
    assert isinstance(reply, Reply)  # noqa: S101 - for the type checker
    promises.hold(isinstance(reply.text, str) and reply.text.strip(), "a reply to a plain question has no text")
    known = reply.finish_reason in get_args(FinishReason)
    promises.hold(known, f"finish_reason is '{reply.finish_reason}', which the contract does not know")
    promises.hold(not reply.tool_calls, "a reply calls tools though none is on offer")
    _check_usage(reply.usage, promises)


def _check_usage(usage: Usage, promises: Promises) -> None:
    counts = (usage.tokens_in, usage.tokens_out, usage.cached, usage.reasoning)
    whole = all(isinstance(count, int) and count >= 0 for count in counts)
    if not promises.hold(whole, f"usage has a count that is no whole number from 0 on: {usage}"):
        return
    promises.hold(usage.tokens_in > 0, "usage.tokens_in is 0 for a prompt that is not empty")
    promises.hold(usage.tokens_out > 0, "usage.tokens_out is 0 for a reply that is not empty")
    promises.hold(usage.cached <= usage.tokens_in, "usage.cached is more than tokens_in, which includes it")
    promises.hold(usage.reasoning <= usage.tokens_out, "usage.reasoning is more than tokens_out, which includes it")


async def check_repetition(case: Case, promises: Promises) -> None:
    """Ask the same question twice on one backend, and once on another."""
    with promises.during("the same request again"):
        async with case.opened() as backend:
            for _ in range(2):
                check_reply(await case.ask(backend, case.request), promises)
        async with case.opened() as another:
            check_reply(await case.ask(another, case.request), promises)


async def check_letters(case: Case, promises: Promises) -> None:
    """Ask in letters of many alphabets, and in half a letter, which no encoding can hold."""
    with promises.during("a request in other letters than ASCII"):
        async with case.opened() as backend:
            reply = await case.ask(backend, case.saying(_LETTERS))
            same = not case.echoes or _LETTERS in reply.text
            promises.hold(same, f"letters change on their way: '{_LETTERS}' came back as '{reply.text}'")
    with promises.during("a request with a lone surrogate"):
        async with case.opened() as backend:
            try:
                await case.ask(backend, case.saying(_LONE_SURROGATE))
            except BackendError:
                return


async def check_many(case: Case, promises: Promises) -> None:
    """Ask many different questions at once."""
    words = [f"question-{number:03d}" for number in range(MANY)]
    with promises.during(f"{MANY} calls at once"):
        async with case.opened() as backend:
            asked = (case.ask(backend, case.saying(word)) for word in words)
            replies = await asyncio.gather(*asked, return_exceptions=True)
    failed = [reply for reply in replies if isinstance(reply, BaseException)]
    promises.hold(
        not failed, f"{len(failed)} of {MANY} calls at once fail, such as {described(failed[0]) if failed else ''}"
    )
    if case.echoes:
        pairs = zip(words, replies, strict=True)
        mixed = sum(isinstance(reply, Reply) and word not in reply.text for word, reply in pairs)
        promises.hold(not mixed, f"{mixed} of {MANY} calls at once get the answer to another question")


async def check_tools(case: Case, promises: Promises) -> None:
    """Offer a tool, see it called, and answer it."""
    if not case.tools:
        return
    with promises.during("a conversation with a tool"):
        async with case.opened() as backend:
            asked = replace(case.request, tools=(_TOOL,))
            reply = await case.ask(backend, asked)
            if not promises.hold(reply.tool_calls, "it does not call the tool that it is offered"):
                return
            promises.hold(
                reply.finish_reason == "tool_calls", f"a reply that calls a tool ends as '{reply.finish_reason}'"
            )
            for call in reply.tool_calls:
                _check_call(call, promises)
            said = (Text(text=reply.text),) if reply.text else ()
            answered = (
                *(*asked.messages, Message(role="assistant", parts=said, tool_calls=reply.tool_calls)),
                *(
                    Message(role="tool", parts=(Text(text="It is blue."),), tool_call_id=call.id)
                    for call in reply.tool_calls
                ),
            )
            after = await case.ask(backend, replace(asked, messages=answered))
            promises.hold(after.text or after.tool_calls, "a reply to the result of a tool is empty")


def _check_call(call: ToolCall, promises: Promises) -> None:
    promises.hold(call.name == _TOOL.name, f"it calls the tool '{call.name}', which is not on offer")
    promises.hold(call.id, "a tool call has no id, so that its result cannot name it")
    try:
        arguments = json.loads(call.arguments)
    except (TypeError, ValueError, RecursionError):
        arguments = None
    promises.hold(isinstance(arguments, dict), f"the arguments of a tool call are no JSON object: '{call.arguments}'")


async def check_images(case: Case, promises: Promises) -> None:
    """Show a picture."""
    if not case.images:
        return
    with promises.during("a request with a picture"):
        async with case.opened() as backend:
            *before, last = case.messages
            shown = replace(last, parts=(*last.parts, Image(media_type="image/png", data=_DOT)))
            check_reply(await case.ask(backend, replace(case.request, messages=(*before, shown))), promises)
