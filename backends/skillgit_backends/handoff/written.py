"""Owns the form of a prompt for people and agents, and of the answer that they write."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.documents import DocumentError, read_document
from skillgit.errors import HandoffError
from skillgit.plugin.backend import Reply, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillgit.plugin.backend import Image, Message, Request, Usage

FENCE = "tool_calls"
_CALLS = re.compile(rf"^```{FENCE}[ \t]*\n(?P<calls>.*?)\n```[ \t]*\Z", re.MULTILINE | re.DOTALL)
_TO_CALL = f"""\
To use tools instead of answering, end the answer with a block of this form, and stop there:

```{FENCE}
[{{"name": "the tool", "arguments": {{"of": "its schema"}}}}]
```
"""


def prompt_text(request: Request, images: list[str], answer: str) -> str:
    """Return a request as a document.

    Args:
        request: What is asked.
        images: The names of the files with its pictures, in their order.
        answer: The name of the file that the answer belongs in.
    """
    names = iter(images)
    parts = [
        f"<!-- To be answered as {request.model}: write the answer, and nothing else, to {answer} -->",
        *(_message(message, names) for message in request.messages),
    ]
    if request.tools:
        tools = [
            f"- `{tool.name}`: {tool.description}\n  `{json.dumps(dict(tool.parameters), ensure_ascii=False)}`"
            for tool in request.tools
        ]
        parts.append("\n".join(["# tools", "", *tools, "", _TO_CALL]))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def images_of(request: Request) -> list[Image]:
    """Return the pictures of a request."""
    return [part for message in request.messages for part in message.parts if not isinstance(part, Text)]


def read_answer(text: str, request: Request, usage: Usage, path: Path) -> Reply:
    """Return the reply that stands in an answer.

    Raises:
        HandoffError: It ends with calls of tools that cannot be read.
    """
    match = _CALLS.search(text) if request.tools else None
    if match is None:
        return Reply(text=text, usage=usage)
    try:
        calls = tuple(_tool_calls(read_document(match["calls"]), path.name))
    except ValueError as error:
        why = f"the block {error}" if isinstance(error, DocumentError) else error
        raise HandoffError(
            f"the calls of tools in {path} cannot be read: {why}", hint="write them as its prompt says"
        ) from error
    return Reply(text=text[: match.start()].rstrip(), usage=usage, finish_reason="tool_calls", tool_calls=calls)


def _message(message: Message, images: Iterator[str]) -> str:
    head = f"# {message.role}" + (f" (result of {message.tool_call_id})" if message.tool_call_id else "")
    parts = [part.text if isinstance(part, Text) else f"![picture]({next(images)})" for part in message.parts]
    calls = [f"called {call.id}: `{call.name}` with `{call.arguments}`" for call in message.tool_calls]
    return "\n\n".join([head, "".join(parts), *calls])


def _tool_calls(value: object, name: str) -> Iterator[ToolCall]:
    if not isinstance(value, list) or not value:
        raise ValueError("they are not a list")
    for number, call in enumerate(value, 1):
        match call:
            case {"name": str(tool), "arguments": dict(arguments)}:
                text = json.dumps(arguments, ensure_ascii=False)
                yield ToolCall(id=f"{name.partition('.')[0]}-{number}", name=tool, arguments=text)
            case _:
                raise ValueError(f"call {number} has no name, or its arguments are no object")
