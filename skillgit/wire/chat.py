"""OpenAI's chat completions, which most servers, agents and libraries speak."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from skillgit.plugin.backend import (
    FinishReason,
    Image,
    Message,
    MessageRole,
    Part,
    Reply,
    Request,
    Text,
    Tool,
    ToolCall,
)
from skillgit.wire.json_values import Fields, count_at, entries_at, fields_at, spoken_at, text_at
from skillgit.wire.wire_format import (
    AgentQuestion,
    Counts,
    ModelAnswer,
    QuestionError,
    WireFormat,
    limit_at,
    message_of,
    read_picture,
    require_entries,
    without_none,
)

_FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "refusal": "content_filter"}
ROLES: Mapping[str, MessageRole] = {"developer": "system", "system": "system", "user": "user"}


class OpenAIFormat(WireFormat):
    """What both of OpenAI's formats do alike."""

    api: ClassVar = "an OpenAI-compatible API"
    keep_alive: ClassVar = b": working\n\n"
    tokens_in: ClassVar[str]  # the names of the two counts
    tokens_out: ClassVar[str]

    def read_counts(self, document: Fields) -> Counts:
        usage = fields_at(document, "usage")
        return Counts(
            tokens_in=count_at(usage, self.tokens_in),
            tokens_out=count_at(usage, self.tokens_out),
            cached=count_at(usage, f"{self.tokens_in}_details", "cached_tokens") or 0,
            cache_written=count_at(usage, f"{self.tokens_in}_details", "cache_write_tokens") or 0,
            reasoning=count_at(usage, f"{self.tokens_out}_details", "reasoning_tokens") or 0,
        )

    def write_usage(self, reply: Reply) -> Fields:
        usage = reply.usage
        return {
            self.tokens_in: usage.tokens_in,
            self.tokens_out: usage.tokens_out,
            "total_tokens": usage.tokens_in + usage.tokens_out,
            f"{self.tokens_in}_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
            f"{self.tokens_out}_details": {"reasoning_tokens": usage.reasoning},
        }

    def write_error(self, message: str) -> Fields:
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "invalid_prompt"}}


class Chat(OpenAIFormat):
    path: ClassVar = "/v1/chat/completions"
    provider: ClassVar = ""  # it has no form of its own for thoughts
    tokens_in, tokens_out = "prompt_tokens", "completion_tokens"
    last_frame: ClassVar = b"data: [DONE]\n\n"

    def write_question(self, request: Request, limit_name: str = "max_completion_tokens") -> Fields:
        """Return the body that asks ``request``; ``limit_name`` is the server's name for the limit of a reply."""
        body = {
            "model": request.model,
            "messages": list(_write_messages(request.messages)),
            limit_name: request.max_output_tokens,
        }
        return body | without_none(
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            stop=list(request.stop) or None,
            response_format=(schema := write_schema(request)) and {"type": "json_schema", "json_schema": schema},
            reasoning_effort=request.reasoning_effort or None,
            tools=[{"type": "function", "function": tool.fields()} for tool in request.tools] or None,
            tool_choice=write_choice(request, lambda name: {"type": "function", "function": {"name": name}}),
        )

    def read_question(self, body: Fields) -> AgentQuestion:
        if body.get("n") not in (None, 1):
            raise QuestionError("n has to be 1: ask again for another answer")
        messages = require_entries(body.get("messages"), "messages")
        return AgentQuestion(
            messages=tuple(message for entry in messages for message in _read_message(entry)),
            tools=tuple(read_tools(body, nested="function")),
            schema=read_schema(body.get("response_format"), nested="json_schema"),
            tool_choice=read_choice(body.get("tool_choice"), nested="function"),
            max_output_tokens=limit_at(body, "max_completion_tokens", "max_tokens"),
            model=text_at(body, "model"),
            stream=body.get("stream") is True,
            with_usage=fields_at(body, "stream_options").get("include_usage") is True,
        )

    def write_reply(self, question: AgentQuestion, reply: Reply, name: str) -> Fields:
        message: Fields = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.tool_calls:
            message["tool_calls"] = _write_calls(reply.tool_calls, name)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[reply.finish_reason]}
        return {**_head(question, name, "chat.completion"), "choices": [choice], "usage": self.write_usage(reply)}

    def write_events(self, question: AgentQuestion, reply: Reply, name: str) -> Iterator[Fields]:
        head = _head(question, name, "chat.completion.chunk")

        def chunk(delta: Fields, finish: str | None = None) -> Fields:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant", "content": ""})
        if reply.text:
            yield chunk({"content": reply.text})
        for index, call in enumerate(_write_calls(reply.tool_calls, name)):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, _FINISH[reply.finish_reason])
        if question.with_usage:
            yield {**head, "choices": [], "usage": self.write_usage(reply)}

    def read_answer(self, document: Fields) -> ModelAnswer | str:
        choices = entries_at(document, "choices")
        if not choices:
            return "has no choices"
        message, reason = choices[0].get("message"), text_at(choices[0], "finish_reason")
        if not isinstance(message, dict):
            return "has a choice without a message"
        content = spoken_at(message, "content")
        separate = spoken_at(message, "reasoning_content") or spoken_at(message, "reasoning")
        thinking, text = split_thought(content)
        # A server that parts thoughts from answers leaves none in the answer, unless it sends them in both places.
        if separate.strip() and thinking.strip() != separate.strip():
            thinking, text = separate, content
        calls = [_read_reply_call(entry) for entry in entries_at(message, "tool_calls")]
        finish: FinishReason = "tool_calls" if calls else "stop"
        return ModelAnswer(
            text=text,
            calls=calls,
            finish_reason="length" if reason in ("length", "max_tokens") else finish,
            thinking=thinking,
            refusal=text_at(message, "refusal") or None,
            withheld=reason == "content_filter",
        )


def _head(question: AgentQuestion, name: str, kind: str) -> Fields:
    return {"id": f"chatcmpl-{name}", "object": kind, "created": 0, "model": question.model}


def _write_calls(calls: Sequence[ToolCall], name: str = "") -> list[Fields]:
    return [
        {
            "id": call.id or (f"call_{name}{number}" if name else ""),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(calls)
    ]


def _read_reply_call(entry: Fields) -> ToolCall:
    function = fields_at(entry, "function")
    arguments = function.get("arguments")
    words = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return ToolCall(id=str(entry.get("id") or ""), name=text_at(function, "name"), arguments=words)


def _write_messages(messages: Iterable[Message]) -> Iterator[Fields]:
    pictures: list[Part] = []
    for message in messages:
        if message.role != "tool" and pictures:
            yield {"role": "user", "content": write_parts(pictures, _write_part)}
            pictures = []
        if message.role == "tool":
            # A tool's message holds only text; its pictures follow when all tools have answered.
            pictures += [part for part in message.parts if isinstance(part, Image)]
            yield {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
        elif message.tool_calls:
            calls = _write_calls(message.tool_calls)
            yield {"role": "assistant", "content": message.text or None, "tool_calls": calls}
        else:
            yield {"role": message.role, "content": write_parts(message.parts, _write_part)}
    if pictures:
        yield {"role": "user", "content": write_parts(pictures, _write_part)}


def _read_message(entry: Fields) -> list[Message]:
    role, parts = text_at(entry, "role"), list(_read_parts(entry.get("content")))
    match role:
        case "tool":
            return [Message(role="tool", parts=tuple(parts), tool_call_id=text_at(entry, "tool_call_id"))]
        case "assistant":
            calls = tuple(
                ToolCall(
                    id=text_at(call, "id"),
                    name=text_at(call, "function", "name"),
                    arguments=text_at(call, "function", "arguments"),
                )
                for call in require_entries(entry.get("tool_calls"), "tool_calls")
            )
            return [Message(role="assistant", parts=tuple(parts), tool_calls=calls)] if parts or calls else []
        case _ if role in ROLES:
            return message_of(ROLES[role], parts)
        case _:
            raise QuestionError(f"there is no role {role!r}")


def write_parts(parts: Sequence[Part], write_part: Callable[[Part], Fields]) -> str | list[Fields]:
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "".join(texts) if len(texts) == len(parts) else [write_part(part) for part in parts]


def data_url(picture: Image) -> str:
    return f"data:{picture.media_type};base64,{picture.data}"


def _write_part(part: Part) -> Fields:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {
        "type": "image_url",
        "image_url": {"url": data_url(part), **({"detail": part.detail} if part.detail else {})},
    }


def _read_parts(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        yield from [Text(text=content)] if content else []
        return
    for part in require_entries(content, "content"):
        match part.get("type"):
            case "text" | "refusal":
                yield Text(text=text_at(part, "text") or text_at(part, "refusal"))
            case "image_url" if isinstance(part.get("image_url"), dict):
                yield read_picture(part["image_url"].get("url"), part["image_url"].get("detail"))
            case kind:
                raise QuestionError(f"a part of type {kind} cannot be passed on")


def write_schema(request: Request) -> Fields | None:
    schema = request.schema
    return None if schema is None else {"name": schema["title"], "schema": dict(schema), "strict": True}


def read_schema(form: object, *, nested: str) -> Fields | None:
    """Return the schema that the answer has to fit, with its name as its title; None if any text will do."""
    inner = fields_at(form, *filter(None, [nested]))
    if text_at(form, "type") != "json_schema" or not isinstance(inner.get("schema"), dict):
        return None
    return {"title": text_at(inner, "name") or "answer", **inner["schema"]}


def write_choice(request: Request, write_name: Callable[[str], object]) -> object:
    if not (request.tools and request.tool_choice):
        return None
    return request.tool_choice if request.tool_choice in ("none", "required") else write_name(request.tool_choice)


def read_choice(choice: object, *, nested: str) -> str:
    """Return which tool has to be used, as ``AgentQuestion`` has it."""
    if isinstance(choice, str):
        return choice if choice in ("none", "required") else ""
    return text_at(choice, *filter(None, [nested]), "name") if text_at(choice, "type") == "function" else ""


def read_tools(body: Fields, *, nested: str) -> Iterator[Tool]:
    """Yield the functions that the agent offers, in ``nested`` of each entry, or at its top where that is empty.

    Those of the provider's own servers are left out; tools in a namespace are offered by their own names.
    """
    for entry in require_entries(body.get("tools"), "tools"):
        if entry.get("type") == "namespace":
            yield from read_tools(entry, nested=nested)
        elif entry.get("type") == "function":
            function: Any = entry.get(nested) if nested else entry
            if not text_at(function, "name"):
                raise QuestionError("a tool has to have a name")
            parameters = function.get("parameters")
            yield Tool(
                name=text_at(function, "name"),
                description=text_at(function, "description"),
                parameters=parameters if isinstance(parameters, dict) else {"type": "object", "properties": {}},
            )


_OPEN, _CLOSE = "<think>", "</think>"
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\"</think>\"|'</think>'|“</think>”", re.DOTALL | re.MULTILINE)
_ANSWER = re.compile(
    r"<(?P<tag>answer|final_answer|output|result)>(?:(?!</?(?P=tag)>).)*</(?P=tag)>", re.DOTALL | re.IGNORECASE
)
_IN_SENTENCE = re.compile(r"[^\S\n]</think>(?:[^\S\n]|[.,;:!?)]|$)")


def split_thought(text: str) -> tuple[str, str]:
    """Return the thought that ``text`` begins with, and the rest.

    Some servers put the opening mark into the prompt, so that only the closing one comes back. A thought that was cut
    off has no closing one. A mark that is quoted, in code, in an answer tag or a word of a sentence is content, and so
    are marks after the thought.

    >>> split_thought("They ask for a year.</think>1871")
    ('They ask for a year.', '1871')
    >>> split_thought("Close it with </think>.")
    ('', 'Close it with </think>.')
    """
    body = text.lstrip()
    if body.startswith(_OPEN):
        closings = _marks(body)
        end = closings[0] if closings else body.find(_CLOSE)
        if end < 0:
            return body[len(_OPEN) :], ""
        return body[len(_OPEN) : end], body[end + len(_CLOSE) :].lstrip()
    closings = _marks(text)
    if len(closings) == 1 and _OPEN not in text and not _IN_SENTENCE.match(text, max(closings[0] - 1, 0)):
        rest = text[closings[0] + len(_CLOSE) :].lstrip()
        if rest:
            return text[: closings[0]], rest
    return "", text


def _marks(text: str) -> list[int]:
    """Return the places of closing marks that are not quoted."""
    if _CLOSE not in text:
        return []
    quotations = [match.span() for pattern in (_CODE, _ANSWER) for match in pattern.finditer(text)]
    places = [match.start() for match in re.finditer(re.escape(_CLOSE), text)]
    return [place for place in places if not any(start <= place < end for start, end in quotations)]
