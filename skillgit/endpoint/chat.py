"""The dialect of OpenAI's chat completions, which OpenCode, Copilot, and most other agents and libraries speak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from skillgit.endpoint.question import (
    AgentQuestion,
    Fields,
    QuestionError,
    WireDialect,
    event,
    mappings,
    number_at,
    picture,
    spoken,
    text_at,
)
from skillgit.plugin.backend import Message, Part, Reply, Text, Tool, ToolCall

_FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "content_filter"}
ROLES = {"developer": "system", "system": "system", "user": "user"}


class OpenAIDialect(WireDialect):
    """What both of OpenAI's dialects do alike."""

    keep_alive: ClassVar = b": working\n\n"

    def failure(self, message: str) -> Fields:
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "invalid_prompt"}}


class Chat(OpenAIDialect):
    path: ClassVar = "/v1/chat/completions"
    provider: ClassVar = ""  # it has no form of its own for thoughts

    def read(self, body: Fields) -> AgentQuestion:
        if body.get("n") not in (None, 1):
            raise QuestionError("n has to be 1: ask again for another answer")
        options = body.get("stream_options")
        return AgentQuestion(
            messages=tuple(message for turn in mappings(body.get("messages"), "messages") for message in _turn(turn)),
            tools=tuple(tools(body, nested="function")),
            schema=schema_of(body.get("response_format"), nested="json_schema"),
            tool_choice=choice_of(body.get("tool_choice"), nested="function"),
            max_output_tokens=number_at(body, "max_completion_tokens", "max_tokens"),
            model=text_at(body, "model"),
            stream=body.get("stream") is True,
            with_usage=isinstance(options, dict) and options.get("include_usage") is True,
        )

    def document(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        message: Fields = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.tool_calls:
            message["tool_calls"] = _calls(reply, name)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[reply.finish_reason]}
        head = _head(question, name, "chat.completion")
        return {**head, "choices": [choice], "usage": _usage(reply)}

    def events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[bytes]:
        head = _head(question, name, "chat.completion.chunk")

        def chunk(delta: Fields, finish: str | None = None) -> bytes:
            return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        if reply.text:
            yield chunk({"content": reply.text})
        for index, call in enumerate(_calls(reply, name)):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, _FINISH[reply.finish_reason])
        if question.with_usage:
            yield event({**head, "choices": [], "usage": _usage(reply)})
        yield b"data: [DONE]\n\n"

    def failed(self, message: str) -> bytes:
        return event(self.failure(message))


def _head(question: AgentQuestion, name: str, kind: str) -> Fields:
    return {"id": f"chatcmpl-{name}", "object": kind, "created": 0, "model": question.model}


def _usage(reply: Reply) -> Fields:
    usage = reply.usage
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _calls(reply: Reply, name: str) -> list[Fields]:
    return [
        {
            "id": call.id or f"call_{name}{number}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(reply.tool_calls)
    ]


def _turn(turn: Fields) -> list[Message]:
    role, parts = text_at(turn, "role"), list(_parts(turn.get("content")))
    match role:
        case "tool":
            return [Message(role="tool", parts=tuple(parts), tool_call_id=text_at(turn, "tool_call_id"))]
        case "assistant":
            calls = tuple(_call(entry) for entry in mappings(turn.get("tool_calls"), "tool_calls"))
            return [Message(role="assistant", parts=tuple(parts), tool_calls=calls)] if parts or calls else []
        case _ if role in ROLES:
            return spoken(ROLES[role], parts)
        case _:
            raise QuestionError(f"there is no role {role!r}")


def _call(entry: Fields) -> ToolCall:
    function = entry.get("function")
    fields = function if isinstance(function, dict) else {}
    return ToolCall(id=text_at(entry, "id"), name=text_at(fields, "name"), arguments=text_at(fields, "arguments"))


def _parts(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        yield from [Text(text=content)] if content else []
        return
    for part in mappings(content, "content"):
        match part.get("type"):
            case "text" | "refusal":
                yield Text(text=text_at(part, "text") or text_at(part, "refusal"))
            case "image_url" if isinstance(part.get("image_url"), dict):
                yield picture(part["image_url"].get("url"), part["image_url"].get("detail"))
            case kind:
                raise QuestionError(f"a part of type {kind} cannot be passed on")


def tools(body: Fields, *, nested: str) -> Iterator[Tool]:
    """Yield the functions that the agent offers, in ``nested`` of each entry, or at its top where that is empty.

    Those of the provider's own servers are left out; tools in a namespace are offered by their own names.
    """
    for entry in mappings(body.get("tools"), "tools"):
        if entry.get("type") == "namespace":
            yield from tools(entry, nested=nested)
        elif entry.get("type") == "function":
            function: Any = entry.get(nested) if nested else entry
            if not isinstance(function, dict) or not text_at(function, "name"):
                raise QuestionError("a tool has to have a name")
            parameters = function.get("parameters")
            yield Tool(
                name=text_at(function, "name"),
                description=text_at(function, "description"),
                parameters=parameters if isinstance(parameters, dict) else {"type": "object", "properties": {}},
            )


def schema_of(form: object, *, nested: str) -> Fields | None:
    """Return the schema that the answer has to fit, with its name as its title; None if any text will do."""
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return None
    inner = form.get(nested) if nested else form
    if not isinstance(inner, dict) or not isinstance(inner.get("schema"), dict):
        return None
    return {"title": text_at(inner, "name") or "answer", **inner["schema"]}


def choice_of(choice: object, *, nested: str) -> str:
    """Return which tool has to be used, as ``AgentQuestion`` has it."""
    if isinstance(choice, str):
        return choice if choice in ("none", "required") else ""
    if not isinstance(choice, dict) or choice.get("type") != "function":
        return ""
    inner = choice.get(nested) if nested else choice
    return text_at(inner, "name") if isinstance(inner, dict) else ""
