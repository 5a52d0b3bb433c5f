"""Anthropic's Messages API, plain and streamed; as strict as the real one where a mistake in a request is easy."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from skillgit.plugin.backend import Image, Message, Text, Tool, ToolCall, flatten
from wire.dialect import Answer, Question, WireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.plugin.backend import Part, Reply
    from wire.dialect import HttpRequest

_ERRORS = {
    "authentication": "authentication_error",
    "permission": "permission_error",
    "model_not_found": "not_found_error",
    "rate_limit": "rate_limit_error",
    "server_error": "api_error",
    "overloaded": "overloaded_error",
}
_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "refusal": "refusal"}
_THOUGHT = re.compile(r"<think>\n(.*?)\n</think>\n\n", re.DOTALL)
_PIECE = re.compile(r"\s*\S+\s*|\s+")
_LEAST_BUDGET = 1024
_BREAKPOINTS = 4


class Messages:
    """POST /v1/messages.

    The system prompt counts as written to a cache; as read from one, for a model with ``cached`` in its name.
    """

    name = "messages"
    routes = (("POST", re.compile(r"(?:/[\w.-]+)*/v1/messages")),)

    def question(self, request: HttpRequest) -> Question:
        """Read a question."""
        headers, document = request.headers, request.document
        if not headers.get("authorization", headers.get("x-api-key")):
            raise WireError(401, "authentication", "x-api-key header is required")
        if "anthropic-version" not in headers:
            raise _invalid("anthropic-version: header is required")
        turns = document.get("messages")
        if not isinstance(turns, list) or not turns or turns[0]["role"] != "user":
            raise _invalid("messages: first message must use the user role")
        if not isinstance(document.get("max_tokens"), int) or document["max_tokens"] < 1:
            raise _invalid("max_tokens: Field required")
        _check_marks(document)
        _check_tools(turns)
        system = _list(document.get("system"))
        first = [Message(role="system", parts=tuple(Text(text=block["text"]) for block in system))] if system else []
        return Question(
            model=str(document.get("model", "")),
            messages=(*first, *(message for turn in turns for message in _messages(turn))),
            max_tokens=document["max_tokens"],
            stream=document.get("stream") is True,
            tools=tuple(
                Tool(name=tool["name"], description=tool.get("description", ""), parameters=tool["input_schema"])
                for tool in document.get("tools", ())
            ),
            thinking=_thinks(document),
        )

    def answer(self, question: Question, reply: Reply) -> Answer:
        """Write a reply."""
        document = _document(question, reply, _content(reply), _STOP[reply.finish_reason])
        return Answer(frames=list(_frames(document))) if question.stream else Answer(document=document)

    def error(self, error: WireError) -> object:
        """Write an error's body."""
        kind = _ERRORS.get(error.code, "invalid_request_error")
        said = "prompt is too long: 250000 tokens > 200000 maximum" if error.code == "context_length" else error.message
        return {"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_wire"}

    def odd(self, kind: str, question: Question, reply: Reply) -> Answer:
        """Write an answer that is not quite one."""
        if kind == "wrong_shape":
            return Answer(document={"object": "list", "data": "what"})
        if kind == "no_usage":
            document = _document(question, reply, _content(reply), _STOP[reply.finish_reason])
            del document["usage"]
            return Answer(document=document)
        if kind == "used_up":
            return Answer(document=_document(question, reply, [], "max_tokens"))
        if kind in ("refusal", "withheld"):
            details = {"type": "refusal", "category": "bio", "explanation": "This could enable harm."}
            return Answer(document=_document(question, reply, [], "refusal") | {"stop_details": details})
        content = [{"type": "text", "text": ""}] if kind == "empty_text" else []
        return Answer(document=_document(question, reply, content, "end_turn"))


MESSAGES = Messages()


def _invalid(message: str) -> WireError:
    return WireError(400, "invalid_request", message)


def _list(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


def _check_marks(document: Mapping[str, Any]) -> None:
    marked = sum("cache_control" in block for block in _blocks(document))
    if marked > _BREAKPOINTS:
        raise _invalid(f"A maximum of {_BREAKPOINTS} blocks with cache_control may be provided. Found {marked}.")
    if any(block.get("type") == "text" and not block["text"] for block in _blocks(document)):
        raise _invalid("messages: text content blocks must be non-empty")


def _blocks(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from document.get("tools", ())
    yield from _list(document.get("system"))
    for turn in document["messages"]:
        yield from _list(turn["content"])


def _check_tools(turns: Sequence[Mapping[str, Any]]) -> None:
    """Every use of a tool is followed by its result, in the very next turn."""
    asked: set[str] = set()
    for turn in turns:
        blocks = _list(turn["content"])
        given = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if asked != given:
            raise _invalid("messages: `tool_use` ids were found without `tool_result` blocks immediately after")
        asked = {block["id"] for block in blocks if block["type"] == "tool_use"}


def _thinks(document: Mapping[str, Any]) -> bool:
    thinking = document.get("thinking") or {"type": "disabled"}
    if thinking["type"] == "disabled":
        return False
    if document.get("temperature") not in (None, 1):
        raise _invalid("`temperature` may only be set to 1 when thinking is enabled")
    if thinking["type"] == "enabled":
        if not _LEAST_BUDGET <= thinking["budget_tokens"] < document["max_tokens"]:
            raise _invalid("thinking.enabled.budget_tokens: must be 1024 or more and less than max_tokens")
        if document["messages"][-1]["role"] == "user" and _after_tools(document["messages"]):
            raise _invalid("messages: Expected `thinking` or `redacted_thinking`, but found `tool_use`")
    return True


def _after_tools(turns: Sequence[Mapping[str, Any]]) -> bool:
    return any(block["type"] == "tool_result" for block in _list(turns[-1]["content"]))


def _messages(turn: Mapping[str, Any]) -> Iterator[Message]:
    """Take a turn apart: each result of a tool is a message of its own."""
    blocks = _list(turn["content"])
    for block in blocks:
        if block["type"] == "tool_result":
            parts = tuple(_part(part) for part in _list(block.get("content")))
            yield Message(role="tool", parts=parts, tool_call_id=block["tool_use_id"])
    parts = tuple(_part(block) for block in blocks if block["type"] in ("text", "image"))
    calls = tuple(
        ToolCall(id=block["id"], name=block["name"], arguments=json.dumps(block["input"]))
        for block in blocks
        if block["type"] == "tool_use"
    )
    if parts or calls:
        yield Message(role=turn["role"], parts=parts, tool_calls=calls)


def _part(block: Mapping[str, Any]) -> Part:
    if block["type"] == "text":
        return Text(text=block["text"])
    source = block["source"]
    return Image(media_type=source["media_type"], data=source["data"])


def _content(reply: Reply) -> list[dict[str, Any]]:
    thought = _THOUGHT.match(reply.text)
    text = reply.text[thought.end() :] if thought else reply.text
    content: list[dict[str, Any]] = []
    if thought:
        content.append({"type": "thinking", "thinking": thought.group(1), "signature": "c2lnbmVk"})
    if text:
        content.append({"type": "text", "text": text})
    return content + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in reply.tool_calls
    ]


def _document(question: Question, reply: Reply, content: list[dict[str, Any]], stop: str) -> dict[str, Any]:
    return {
        "id": "msg_wire",
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(question, reply),
    }


def _usage(question: Question, reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    first = flatten(question.messages[:1]) if question.messages[0].role == "system" else ""
    kept = min(len(first) // 4, usage.tokens_in)
    read, written = (kept, 0) if "cached" in question.model else (0, kept)
    return {
        "input_tokens": usage.tokens_in - kept,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.tokens_out,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


def _frames(document: dict[str, Any]) -> Iterator[str]:
    usage = document["usage"]
    started = document | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield _frame("message_start", {"message": started})
    for index, block in enumerate(document["content"]):
        empty, deltas = _streamed(block)
        yield _frame("content_block_start", {"index": index, "content_block": empty})
        for delta in deltas:
            yield _frame("content_block_delta", {"index": index, "delta": delta})
        yield _frame("content_block_stop", {"index": index})
    end = {"stop_reason": document["stop_reason"], "stop_sequence": None}
    yield _frame("message_delta", {"delta": end, "usage": usage})
    yield _frame("message_stop", {})


def _streamed(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "tool_use":
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    if block["type"] == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
        return block | {"thinking": "", "signature": ""}, deltas
    return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in _PIECE.findall(block["text"])]


def _frame(kind: str, event: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **event})}\n\n"
