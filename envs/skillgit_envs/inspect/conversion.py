"""Messages, tools and replies of Inspect as skillgit's, and the other way round."""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import Skill
from skillgit.errors import EnvironmentFaultError
from skillgit.files import read_plain
from skillgit.plugin.backend import Image, Message, Part, Reply, ReplyForm, Text, Tool, ToolCall, system
from skillgit.plugin.skill_marks import marked

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput
    from inspect_ai.tool import ToolChoice, ToolInfo

UNSUPPORTED = ("num_choices", "logprobs", "top_logprobs", "prompt_logprobs", "modalities")
"""What a task may want of generation that no reply here can hold; other wishes are the route's to decide."""


def check_config(config: GenerateConfig, where: str) -> None:
    """Refuse what no backend here can do, and what would silently change scores."""
    for name in UNSUPPORTED:
        value = getattr(config, name, None)
        if value and value != 1:
            message = f"{where} wants {name}={value} of the model, which no backend of skillgit gives"
            raise EnvironmentFaultError(message, hint="choose another task, or arguments under which it does not")


def asked_form(config: GenerateConfig, choice: ToolChoice) -> ReplyForm | None:
    """Return what a call asks of its reply; None where that is nothing, as for most."""
    check_config(config, "the task")
    schema = config.response_schema
    form = ReplyForm(
        max_output_tokens=config.max_tokens,
        stop=tuple(config.stop_seqs or ()),
        schema=None if schema is None else _closed(schema),
        tool_choice={"auto": "", "any": "required", "none": "none"}[choice] if isinstance(choice, str) else choice.name,
    )
    return None if form == ReplyForm() else form


def _closed(schema: Any) -> dict[str, object]:  # noqa: ANN401 - a class of the extra
    return {**schema.json_schema.model_dump(exclude_none=True, mode="json"), "title": schema.name}


def as_tools(tools: Sequence[ToolInfo]) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters.model_dump(exclude_none=True, mode="json"),
        )
        for tool in tools
    )


def as_messages(messages: Sequence[ChatMessage], arguments: Mapping[str, str]) -> list[Message]:
    """Return a conversation as a backend takes it; ``arguments`` are the texts that models wrote, by call."""
    return [_message(message, arguments) for message in messages]


def _message(message: Any, arguments: Mapping[str, str]) -> Message:  # noqa: ANN401 - a union of the extra
    parts = tuple(_parts(message))
    if message.role == "tool":
        # An error is all that the model may see of a call that failed.
        parts = (Text(text=f"Error: {message.error.message}"),) if message.error else parts
        return Message(role="tool", parts=parts, tool_call_id=message.tool_call_id or "")
    calls = tuple(
        ToolCall(id=call.id, name=call.function, arguments=arguments.get(call.id) or json.dumps(call.arguments))
        for call in getattr(message, "tool_calls", None) or ()
    )
    return Message(role=message.role, parts=parts, tool_calls=calls)


def _parts(message: Any) -> Iterator[Part]:  # noqa: ANN401 - as above
    if isinstance(message.content, str):
        yield Text(text=message.content)
        return
    for content in message.content:
        match content.type:
            case "text":
                yield Text(text=content.text)
            case "image":
                yield _picture(content.image, content.detail)
            case "reasoning" | "tool_use" | "data":
                continue  # what a model thought is its provider's, and none of ours hands it on
            case kind:
                message = f"the task shows the model {kind}, which no backend of skillgit takes"
                raise EnvironmentFaultError(message, hint="choose a task of texts and pictures")


def _picture(source: str, detail: str) -> Image:
    detail = "" if detail == "auto" else detail
    if source.startswith("data:"):
        head, _, data = source.partition(";base64,")
        return Image(media_type=head.removeprefix("data:"), data=data, detail=detail)
    if "://" in source:
        raise EnvironmentFaultError(f"the picture {source[:80]} is on the web", hint="bring it into the data set")
    try:
        content = read_plain(Path(source), follow=True)
    except OSError as error:
        raise EnvironmentFaultError(
            f"the picture {source} cannot be read: {error.strerror}", hint="check the data set"
        ) from error
    kind = mimetypes.guess_type(source)[0] or "image/png"
    return Image(media_type=kind, data=base64.b64encode(content).decode(), detail=detail)


_STOPS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "refusal": "content_filter"}


def as_output(reply: Reply, model: str, arguments: dict[str, str]) -> ModelOutput:
    """Return ``reply`` as a provider of Inspect gives it, and keep what the model wrote as ``arguments``."""
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, ModelUsage  # noqa: PLC0415

    arguments.update({call.id: call.arguments for call in reply.tool_calls})
    message = ChatMessageAssistant(
        content=reply.text,
        tool_calls=[_tool_call(call) for call in reply.tool_calls] or None,
        model=model,
        source="generate",
    )
    usage = reply.usage
    return ModelOutput(
        model=model,
        choices=[ChatCompletionChoice(message=message, stop_reason=_STOPS[reply.finish_reason])],
        usage=ModelUsage(
            input_tokens=usage.tokens_in - usage.cached - usage.cache_written,
            output_tokens=usage.tokens_out,
            total_tokens=usage.tokens_in + usage.tokens_out,
            input_tokens_cache_read=usage.cached or None,
            input_tokens_cache_write=usage.cache_written or None,
            reasoning_tokens=usage.reasoning or None,
        ),
    )


def _tool_call(call: ToolCall) -> Any:  # noqa: ANN401 - a class of the extra
    from inspect_ai.tool import ToolCall as InspectCall  # noqa: PLC0415

    fields: object
    fault = None
    try:
        fields = json.loads(call.arguments or "{}")
    except ValueError as error:
        fields, fault = {}, str(error)
    if not isinstance(fields, dict):
        fields, fault = {}, "arguments have to be an object"
    # Inspect hands the sentence on to the model in place of the tool's result.
    words = None if fault is None else f"Error parsing the arguments of {call.name}: {fault}: {call.arguments}"
    return InspectCall(id=call.id, function=call.name, arguments=fields, parse_error=words)


def section(skill: Skill) -> str:
    """Return the skill as the target reads it; empty where it says nothing."""
    text = skill.document[len(frontmatter(skill.document)) :].strip()
    return marked(skill.name, text) if text else ""


def with_section(messages: Sequence[Message], text: str) -> list[Message]:
    """Return ``messages`` with ``text`` at the end of the first system message, or in one of its own before all."""
    if not text:
        return list(messages)
    index = next((index for index, message in enumerate(messages) if message.role == "system"), None)
    if index is None:
        return [system(text), *messages]
    prompt = messages[index]
    extension = replace(prompt, parts=(Text(text=f"{prompt.text}\n\n{text}"),))
    return [*messages[:index], extension, *messages[index + 1 :]]
