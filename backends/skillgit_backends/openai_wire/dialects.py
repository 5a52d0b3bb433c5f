"""Owns the dialects of OpenAI's protocol, chat completions and Responses: how a request is put and an answer read.

An answer may have any shape of JSON. Tokens that a server does not count are estimated.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from skillgit.errors import ContentFilterError, NoAnswerError, RefusalError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import (
    OPENAI,
    Image,
    Message,
    Native,
    Part,
    Reply,
    Request,
    Text,
    ToolCall,
    Usage,
    estimated_tokens,
    flatten,
    token_count,
)
from skillgit_backends.provider_messages import mapping, quoted
from skillgit_backends.request_fields import refuse

if TYPE_CHECKING:
    Fields = Mapping[str, object]

_LOG = logging.getLogger(__name__)
_CHAT_COUNTS, _RESPONSES_COUNTS = ("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")
_CUT = ("length", "max_tokens")
LONGEST = 400  # characters of a provider's words that a message repeats
_POLICY = "look at the item: the provider's content policy does not allow it"
AZURE_VERSION = "2025-04-01-preview"  # the oldest version of Azure's API that is asked for Responses
_RESPONSES_ONLY = re.compile(r"codex|computer-use|deep-research|(?:\A|[/-])(?:o\d|gpt-\d+(?:\.\d+)?)-pro\b")


def wants_responses(model: str) -> bool:
    """Say whether ``model`` of OpenAI cannot be asked by chat completions."""
    return _RESPONSES_ONLY.search(model) is not None


def chat_parameters(request: Request, token_parameter: str) -> dict[str, Any]:
    """Return what to call chat completions with; ``token_parameter`` is the server's name for the limit of a reply."""
    payload = {
        "model": request.model,
        "messages": list(_chat_messages(request.messages)),
        token_parameter: request.max_output_tokens,
    }
    return payload | _without_none(
        temperature=request.temperature,
        top_p=request.top_p,
        seed=request.seed,
        stop=list(request.stop) or None,
        response_format=(schema := _schema(request)) and {"type": "json_schema", "json_schema": schema},
        reasoning_effort=request.reasoning_effort or None,
        tools=[{"type": "function", "function": tool.fields()} for tool in request.tools] or None,
        tool_choice=_choice(request, lambda name: {"type": "function", "function": {"name": name}}),
    )


def responses_parameters(request: Request) -> dict[str, Any]:
    """Return what to call Responses with, which stores nothing; a FatalBackendError for a parameter that it lacks."""
    refuse(request, "seed", "stop", answerer="the Responses API")
    messages = request.messages
    first = next((number for number, message in enumerate(messages) if message.role != "system"), len(messages))
    payload = {
        "model": request.model,
        "input": list(_responses_items(messages[first:])),
        "max_output_tokens": request.max_output_tokens,
        "store": False,
    }
    return payload | _without_none(
        instructions="\n\n".join(message.text for message in messages[:first]) if first else None,
        temperature=request.temperature,
        top_p=request.top_p,
        text=(schema := _schema(request)) and {"format": {"type": "json_schema", **schema}},
        reasoning={"effort": request.reasoning_effort} if request.reasoning_effort else None,
        tools=[{"type": "function", **tool.fields(), "strict": False} for tool in request.tools] or None,
        tool_choice=_choice(request, lambda name: {"type": "function", "name": name}),
        include=["reasoning.encrypted_content"] if request.native else None,
    )


def _choice(request: Request, named: Callable[[str], object]) -> object:
    if not (request.tools and request.tool_choice):
        return None
    return request.tool_choice if request.tool_choice in ("none", "required") else named(request.tool_choice)


def _without_none(**parameters: object) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _schema(request: Request) -> dict[str, Any] | None:
    schema = request.schema
    return None if schema is None else {"name": schema["title"], "schema": dict(schema), "strict": True}


def _chat_messages(messages: Iterable[Message]) -> Iterable[dict[str, Any]]:
    pictures: list[Part] = []
    for message in messages:
        if message.role != "tool" and pictures:
            yield {"role": "user", "content": _content(pictures, _chat_part)}
            pictures = []
        if message.role == "tool":
            # A tool's message holds only text; its pictures follow when all tools have answered.
            pictures += [part for part in message.parts if isinstance(part, Image)]
            yield {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
        elif message.tool_calls:
            calls = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
            yield {"role": "assistant", "content": message.text or None, "tool_calls": calls}
        else:
            yield {"role": message.role, "content": _content(message.parts, _chat_part)}
    if pictures:
        yield {"role": "user", "content": _content(pictures, _chat_part)}


def _responses_items(messages: Iterable[Message]) -> Iterable[dict[str, Any]]:
    for message in messages:
        if message.native is not None and message.native.provider == OPENAI:
            yield from (dict(item) for item in message.native.content)
            continue
        content = _content(message.parts, _responses_part)
        if message.role == "tool":
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": content}
        elif message.parts and (message.text or message.role != "assistant"):
            yield {"role": message.role, "content": content}
        for call in message.tool_calls:
            yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _content(parts: Sequence[Part], form: Callable[[Part], dict[str, Any]]) -> str | list[dict[str, Any]]:
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "".join(texts) if len(texts) == len(parts) else [form(part) for part in parts]


def _chat_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.media_type};base64,{part.data}"
    return {"type": "image_url", "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})}}


def _responses_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    url = f"data:{part.media_type};base64,{part.data}"
    return {"type": "input_image", "image_url": url, "detail": part.detail or "auto"}


def read_chat(document: Fields, request: Request, name: str) -> Reply:
    choices = mappings(document.get("choices"))
    if not choices:
        raise not_an_answer(name, "has no choices", billed(document))
    message, reason = choices[0].get("message"), text_of(choices[0].get("finish_reason"))
    if not isinstance(message, dict):
        raise not_an_answer(name, "has a choice without a message", billed(document))
    content = text_of(message.get("content"))
    separate = text_of(message.get("reasoning_content") or message.get("reasoning"))
    thinking, text = split_thought(content)
    # A server that parts thoughts from answers leaves none in the answer, except one that sends them in both places.
    if separate.strip() and thinking.strip() != separate.strip():
        thinking, text = separate, content
    calls = []
    for entry in mappings(message.get("tool_calls")):
        function = mapping(entry.get("function"))
        arguments = function.get("arguments")
        words = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
        calls.append(_tool_call(entry.get("id"), function.get("name"), words, document, name))
    usage = _usage(document, _CHAT_COUNTS, request, (thinking, _written(text, calls)), name)
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        raise _refused(message["refusal"], name, usage)
    if reason == "content_filter":
        raise withheld("its answer was withheld", name, usage)
    return _reply(document, _CHAT_COUNTS, (text, calls, usage), name, cut=reason in _CUT)


def read_responses(document: Fields, request: Request, name: str) -> Reply:
    status, output = document.get("status"), document.get("output")
    if status not in ("completed", "incomplete") or not isinstance(output, list):
        raise not_an_answer(name, "is not a finished response", billed(document))
    entries = mappings(output)
    parts = [part for entry in entries if entry.get("type") == "message" for part in mappings(entry.get("content"))]
    text = text_of(parts)
    refusals = [str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal"]
    calls = []
    for entry in (entry for entry in entries if entry.get("type") == "function_call"):
        arguments = entry.get("arguments")
        words = arguments if isinstance(arguments, str) else "{}"
        calls.append(_tool_call(entry.get("call_id"), entry.get("name"), words, document, name))
    usage = _usage(document, _RESPONSES_COUNTS, request, ("", _written(text, calls)), name)
    if mapping(document.get("incomplete_details")).get("reason") == "content_filter":
        raise withheld("its answer was withheld", name, usage)
    if refusals and not text:
        raise _refused(refusals[0], name, usage)
    reply = _reply(document, _RESPONSES_COUNTS, (text, calls, usage), name, cut=status == "incomplete")
    thinks = any(entry.get("type") == "reasoning" and entry.get("encrypted_content") for entry in entries)
    if not (request.native and thinks):
        return reply
    content = ({key: value for key, value in entry.items() if key not in ("id", "status")} for entry in entries)
    return replace(reply, native=Native(provider=OPENAI, content=tuple(content)))


def _reply(
    document: Fields, counts: tuple[str, str], answer: tuple[str, Sequence[ToolCall], Usage], name: str, *, cut: bool
) -> Reply:
    text, calls, usage = answer
    if not text and not calls:
        raise _nothing_said(name, usage, cut=cut)
    usage_fields = mapping(document.get("usage"))
    return Reply(
        text=text,
        usage=usage,
        finish_reason="length" if cut else "tool_calls" if calls else "stop",
        tool_calls=tuple(calls),
        model=text_of(document.get("model")),
        counted=all(token_count(usage_fields.get(count)) for count in counts),  # no question and no answer has none
    )


def _tool_call(call: object, tool: object, arguments: str, document: Fields, name: str) -> ToolCall:
    if not isinstance(tool, str) or not tool:
        raise not_an_answer(name, "has a tool call without a name", billed(document))
    return ToolCall(id=str(call or ""), name=tool, arguments=arguments)


def _written(text: str, calls: Sequence[ToolCall]) -> str:
    return text + "".join(call.name + call.arguments for call in calls)


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


def mappings(value: object) -> Sequence[Fields]:
    """Return the objects of JSON in ``value``, if it is a list."""
    return [mapping(entry) for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return ``value`` if it is text, or the text parts in it if it is a list of parts."""
    if isinstance(value, str):
        return value
    parts = [part.get("text") for part in mappings(value) if part.get("type") in ("text", "output_text")]
    return "".join(part for part in parts if isinstance(part, str))


def billed(document: Fields) -> Usage | None:
    """Return the tokens that an answer counts, even a faulty one; None if it counts none."""
    counts = mapping(document.get("usage"))
    for input_key, output_key in (_CHAT_COUNTS, _RESPONSES_COUNTS):
        tokens_in, tokens_out = token_count(counts.get(input_key)), token_count(counts.get(output_key))
        if tokens_in is not None and tokens_out is not None:
            return Usage(tokens_in=tokens_in, tokens_out=tokens_out)
    return None


def _usage(document: Fields, names: tuple[str, str], request: Request, texts: tuple[str, str], name: str) -> Usage:
    """Return what a call used; what the server does not count, or counts as nothing, is estimated from ``texts``."""
    counts, (thinking, answer) = mapping(document.get("usage")), texts
    tokens_in, tokens_out = (token_count(counts.get(key)) for key in names)
    if not tokens_in or tokens_out is None or (thinking + answer and not tokens_out):
        _say_estimated(name, request.model)
        tokens_in = tokens_in or estimated_tokens(flatten(request.messages))
        tokens_out = tokens_out or estimated_tokens(thinking + answer)
    input_details, output_details = (mapping(counts.get(f"{key}_details")) for key in names)
    cache_reads = min(token_count(input_details.get("cached_tokens")) or 0, tokens_in)
    cache_writes = token_count(input_details.get("cache_write_tokens")) or 0
    reasoning = token_count(output_details.get("reasoning_tokens")) or estimated_tokens(thinking)
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cached=cache_reads,
        cache_written=min(cache_writes, tokens_in - cache_reads),
        reasoning=min(reasoning, tokens_out),
    )


@cache
def _say_estimated(name: str, model: str) -> None:
    _LOG.warning("%s/%s does not count tokens: they are estimated at four characters each", name, model)


def not_an_answer(name: str, fault: str, usage: Usage | None = None) -> RetryableBackendError:
    """Return the error of an answer that has not the shape of one; ``usage`` is billed for it."""
    kind = RetryableBackendError if usage is None else UnusableAnswerError
    hint = f"if this lasts, check that model.{name}_base_url is the address of an OpenAI-compatible API"
    return kind(f"{name}: the server's answer {fault}", hint=hint, usage=usage)


def _nothing_said(name: str, usage: Usage, *, cut: bool) -> UnusableAnswerError | NoAnswerError:
    if cut:
        return NoAnswerError(
            f"{name}: the model reached the limit of its length before it said anything",
            hint="raise calls.max_output_tokens, which counts thinking too, or lower model.reasoning_effort",
            usage=usage,
        )
    return UnusableAnswerError(
        f"{name}: the model's answer is empty", hint="if this lasts, look at the prompt", usage=usage
    )


def withheld(reason: str, name: str, usage: Usage | None = None) -> ContentFilterError:
    """Return the error of a question or an answer that the provider's filter keeps back; ``usage`` is billed for it."""
    sentence = f"{name}: the provider's content filter withholds it{f': {reason}' if reason else ''}"
    return ContentFilterError(sentence, hint=_POLICY, usage=usage)


def _refused(reason: str, name: str, usage: Usage) -> RefusalError:
    words = quoted(reason, longest=LONGEST)
    sentence = f"{name}: the model refuses by policy{f': {words}' if words else ''}"
    return RefusalError(sentence, hint=_POLICY, usage=usage)
