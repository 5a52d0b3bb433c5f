"""Who answers: models found by a word in the asked name, so that ``vendor/reader-2`` is the reader.

``reader``, ``agent`` and ``analyst`` are those of the offline backend. ``echo`` repeats the last user message and tells
of pictures, ``tooler`` calls the first tool on offer, then says what it returned. A name with ``thinking`` in it thinks
aloud unless it is told not to.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import Image, Reply, ToolCall, Usage, flatten
from skillgit_backends import offline
from skillgit_backends.offline import agent, reader
from wire.dialects import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.plugin.backend import Message
    from wire.dialects import Question

MODELS = ("reader", "agent", "analyst", "echo", "tooler")
ROLES = {"reader": "target", "agent": "target", "analyst": "optimizer"}
THOUGHT = "<think>\nLet me see </answer> {what} this is.\n</think>\n\n"


def find(name: str) -> str:
    """Return the model that ``name`` means, or an empty string."""
    return next((model for model in MODELS if model in name.lower()), "")


def answer(question: Question) -> Reply:
    """Answer ``question``: the same question always gets the same reply, with the token counts of the offline backend.

    Raises:
        WireError: There is no such model, or it does not understand the prompt.
    """
    model = find(question.model)
    if not model:
        raise WireError(404, "model_not_found", f"The model '{question.model}' does not exist")
    tokens_in = tokens(flatten(question.messages))
    if model == "tooler" and question.tools and question.messages[-1].role != "tool":
        arguments = json.dumps({"text": _asked(question.messages)})
        call = ToolCall(id="call_1", name=question.tools[0].name, arguments=arguments)
        usage = Usage(tokens_in=tokens_in, tokens_out=tokens(arguments))
        return Reply(text="", usage=usage, finish_reason="tool_calls", tool_calls=(call,))
    text = _text(model, question.messages)
    kept = text[: (question.max_output_tokens or 16384) * 4]
    thinks = question.thinking if question.thinking is not None else "thinking" in question.model
    thought = THOUGHT if thinks else ""
    usage = Usage(tokens_in=tokens_in, tokens_out=tokens(kept) + tokens(thought), reasoning=tokens(thought))
    return Reply(text=thought + kept, usage=usage, finish_reason="stop" if kept == text else "length")


def _text(model: str, messages: Sequence[Message]) -> str:
    if len(messages) == 1 and messages[0].text == "Reply with OK.":
        return "OK"  # the rules of reader and analyst know no such question
    try:
        if model == "reader":
            return reader.complete(messages)
        if model == "agent":
            return agent.complete(messages)
        if model == "analyst":
            return offline.complete(messages)
    except FatalBackendError as error:
        raise WireError(400, "invalid_request", error.message) from error
    if messages[-1].role == "tool":
        return f"the tool says: {messages[-1].text}"
    pictures = [part for message in messages for part in message.parts if isinstance(part, Image)]
    seen = "".join(f" [{picture.media_type} {len(picture.data)}]" for picture in pictures)
    return _asked(messages) + seen


def _asked(messages: Sequence[Message]) -> str:
    return next((message.text for message in reversed(messages) if message.role == "user"), "")


def tokens(text: str) -> int:
    """Count tokens as the offline backend does."""
    return -(-len(text) // 4)
