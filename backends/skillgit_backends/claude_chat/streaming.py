"""Owns how the events of a stream add up to the message that the API would have given whole."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillgit.domain.untrusted.json_limits import MOST_VALUES, DocumentError, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator

_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""The deltas that continue a text, and where they and the block have it."""


@dataclass(slots=True, kw_only=True)
class StreamError(Exception):
    """The API answered with an error under the status 200; ``kind`` and ``said`` are its own words."""

    kind: str
    said: str


def read_message(body: bytes, *, is_stream: bool) -> object:
    """Return the message in ``body``; a server may answer with one document where a stream was asked for.

    Raises:
        DocumentError: It is not JSON, or beyond a limit.
        StreamError: It is an error, though its status was 200.
    """
    if is_stream and not body.lstrip().startswith(b"{"):
        return read_stream(body)
    message = read_document(body)
    if isinstance(message, dict) and message.get("type") == "error":
        raise _told(message)
    return message


def _told(event: dict[str, Any]) -> StreamError:
    error = event.get("error")
    fields = error if isinstance(error, dict) else {}
    return StreamError(kind=str(fields.get("type")), said=str(fields.get("message") or ""))


def read_stream(body: bytes) -> dict[str, Any]:
    """Return the message that the events in ``body`` add up to; one that broke off has no ``stop_reason``.

    A tool's input is in ``partial_json``, as the model wrote it.

    Raises:
        DocumentError: An event is not JSON, or there are too many.
        StreamError: One of them is an error.
    """
    if body.count(b"\n") > MOST_VALUES:
        raise DocumentError(f"holds more than {MOST_VALUES:,} lines")
    message, blocks = dict[str, Any](), dict[int, _Block]()
    for event in _events(body):
        match event:
            case {"type": "message_start", "message": dict(start)}:
                message |= start
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = _Block(start=block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)} if index in blocks:
                blocks[index].take(delta)
            case {"type": "message_delta"}:
                _end(message, event)
            case {"type": "error"}:
                raise _told(event)
    return message | {"content": [block.whole() for _, block in sorted(blocks.items())]} if message else {}


@dataclass(slots=True, kw_only=True)
class _Block:
    """A block of content in progress; its texts come in pieces that are joined once."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

    def take(self, delta: dict[str, Any]) -> None:
        name = _GROWS.get(str(delta.get("type")), "")
        piece = delta.get(name)
        if isinstance(piece, str):
            self.pieces.setdefault(name, []).append(piece)

    def whole(self) -> dict[str, Any]:
        grown = {name: "".join([_text(self.start.get(name)), *pieces]) for name, pieces in self.pieces.items()}
        return self.start | grown


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _end(message: dict[str, Any], event: dict[str, Any]) -> None:
    """Take in how a message ends; its counts are totals, and those that are left out stay as they were."""
    delta, usage, before = event.get("delta"), event.get("usage"), message.get("usage")
    if isinstance(delta, dict):
        message |= delta
    if isinstance(usage, dict):
        counts = {name: count for name, count in usage.items() if count is not None}
        message["usage"] = (before if isinstance(before, dict) else {}) | counts


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield what the events of a stream hold; one that is not ended by an empty line was cut."""
    data: list[bytes] = []
    for line in io.BytesIO(body):
        content = line.rstrip(b"\r\n")
        if content.startswith(b"data:"):
            data.append(content.removeprefix(b"data:"))
        elif not content and data:
            event = read_document(b"\n".join(data))
            data.clear()
            if isinstance(event, dict):
                yield event
