"""OpenAI's chat completions, plain and streamed, at OpenAI's paths and at Azure's, and the list of models."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from skillgit.plugin.backend import Image, Message, Text, Tool, ToolCall
from wire.brain import MODELS as KNOWN
from wire.dialect import Answer, Endpoint, Question, WireError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Reply
    from wire.dialect import HttpRequest

_AZURE = re.compile(r"/openai/deployments/(?P<deployment>[^/]+)/")
_DATA_URL = re.compile(r"data:(?P<type>[\w/+.-]+);base64,(?P<data>.*)", re.DOTALL)
_KINDS = {
    "authentication": ("invalid_request_error", "invalid_api_key"),
    "permission": ("invalid_request_error", "permission_denied"),
    "model_not_found": ("invalid_request_error", "model_not_found"),
    "context_length": ("invalid_request_error", "context_length_exceeded"),
    "content_filter": ("invalid_request_error", "content_filter"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "server_error": ("server_error", None),
    "overloaded": ("server_error", "overloaded"),
}
_FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "content_filter"}
CONTEXT = 131072
"""What the server says that its models take, as vLLM does."""
WORD = re.compile(r"\s*\S+\s*|\s+")


class ChatCompletions:
    """POST /v1/chat/completions, and under every other base path that ends the same."""

    name = "chat"
    routes = (("POST", re.compile(r"(?:/[\w.-]+)*/chat/completions")),)

    def question(self, request: HttpRequest) -> Question:
        """Read a question."""
        document = request.document
        deployment = _AZURE.match(request.path)
        if deployment and "api-version=" not in request.query:
            raise WireError(404, "invalid_request", "Resource not found")
        model = deployment.group("deployment") if deployment else str(document.get("model", ""))
        if not isinstance(document.get("messages"), list) or not document["messages"]:
            raise WireError(400, "invalid_request", "'messages' is a required property")
        if "max_tokens" in document and re.match(r"o\d|gpt-5", model):
            raise WireError(
                400, "invalid_request", "Unsupported parameter: 'max_tokens' is not supported with this model."
            )
        return Question(
            model=model,
            messages=tuple(_message(entry) for entry in document["messages"]),
            max_tokens=document.get("max_completion_tokens") or document.get("max_tokens") or 16384,
            stream=document.get("stream") is True,
            tools=tuple(_tool(entry["function"]) for entry in document.get("tools") or ()),
            thinking=_thinking(document),
        )

    def answer(self, question: Question, reply: Reply) -> Answer:
        """Write a reply."""
        if question.stream:
            return Answer(frames=_frames(question, reply))
        choice = {"index": 0, "message": _written(reply), "finish_reason": _FINISH[reply.finish_reason]}
        return Answer(document=_document(question, [choice], _usage(reply)))

    def error(self, error: WireError) -> object:
        """Write an error's body."""
        return openai_error(error)

    def odd(self, kind: str, question: Question, reply: Reply) -> Answer:
        """Write an answer that is not quite one."""
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if kind == "wrong_shape":
            return Answer(document={"object": "list", "data": "what"})
        if kind == "empty_choices":
            return Answer(document=_document(question, [], _usage(reply)))
        if kind == "refusal":
            message |= {"content": None, "refusal": "I can't help with that."}
        if kind == "no_usage":
            message = _written(reply)
        reason = {"withheld": "content_filter", "used_up": "length"}.get(kind, "stop")
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return Answer(document=_document(question, [choice], None if kind == "no_usage" else _usage(reply)))


class Models(Endpoint):
    """GET /v1/models."""

    name = "models"
    routes = (("GET", re.compile(r"(?:/[\w.-]+)*/models")),)

    def answer_at_once(self, request: HttpRequest) -> Answer:
        """List the models."""
        del request
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "wire", "max_model_len": CONTEXT}
            for name in KNOWN
        ]
        return Answer(document={"object": "list", "data": data})


CHAT = ChatCompletions()
MODELS = Models()


def openai_error(error: WireError) -> object:
    kind, code = _KINDS.get(error.code, ("invalid_request_error", None))
    return {"error": {"message": error.message, "type": kind, "param": None, "code": code}}


def image(url: str, detail: str) -> Image:
    match = _DATA_URL.fullmatch(url)
    if match is None:
        raise WireError(400, "invalid_request", f"Invalid image URL '{url[:40]}'")
    return Image(media_type=match.group("type"), data=match.group("data"), detail=detail)


def chunks(text: str) -> list[str]:
    return WORD.findall(text)


def _message(entry: Mapping[str, Any]) -> Message:
    content = entry.get("content")
    parts: list[Text | Image] = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if part["type"] == "text":
            parts.append(Text(text=part["text"]))
        elif part["type"] == "image_url":
            parts.append(image(part["image_url"]["url"], part["image_url"].get("detail", "")))
        else:
            raise WireError(400, "invalid_request", f"Invalid content type '{part['type']}'")
    return Message(
        role="system" if entry["role"] == "developer" else entry["role"],
        parts=tuple(parts),
        tool_calls=tuple(
            ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
            for call in entry.get("tool_calls") or ()
        ),
        tool_call_id=entry.get("tool_call_id", ""),
    )


def _tool(entry: Mapping[str, Any]) -> Tool:
    return Tool(name=entry["name"], description=entry.get("description", ""), parameters=entry.get("parameters", {}))


def _thinking(document: Mapping[str, Any]) -> bool | None:
    template = document.get("chat_template_kwargs")
    if isinstance(template, dict) and "enable_thinking" in template:
        return bool(template["enable_thinking"])
    thinking = document.get("thinking")
    if isinstance(thinking, dict):
        return thinking.get("type") in ("adaptive", "enabled")
    return None


def _written(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.tool_calls
        ]
    return message


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_in + usage.tokens_out,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _document(question: Question, choices: list[Any], usage: dict[str, Any] | None) -> dict[str, Any]:
    document = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": question.model}
    return document | {"choices": choices} | ({"usage": usage} if usage else {})


def _frames(question: Question, reply: Reply) -> list[str]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in chunks(reply.text)]
    calls = _written(reply).get("tool_calls", [])
    deltas += [{"tool_calls": [call | {"index": number}]} for number, call in enumerate(calls)]
    first = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": question.model}
    rows = [first | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    rows.append(first | {"choices": [{"index": 0, "delta": {}, "finish_reason": _FINISH[reply.finish_reason]}]})
    rows.append(first | {"choices": [], "usage": _usage(reply)})
    return [*(f"data: {json.dumps(row)}\n\n" for row in rows), "data: [DONE]\n\n"]
