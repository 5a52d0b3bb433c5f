"""A model on the loopback that speaks the streams of the Responses API and of the Messages API, as a script says."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Event = dict[str, Any]


class LoopbackModel:
    """Answers each request with the next step of a script, a stream of events or a status with a body."""

    def __init__(self, script: list[list[Event] | tuple[int, Event]]) -> None:
        self.script = list(script)
        self.requests: list[tuple[dict[str, str], Event]] = []
        self.url = ""

    @property
    def bodies(self) -> list[str]:
        return [json.dumps(body, ensure_ascii=False) for _, body in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                method = line.split()[0]
                headers: dict[str, str] = {}
                while field := (await reader.readline()).decode().strip():
                    name, _, value = field.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                writer.write(
                    self.answer(headers, json.loads(body)) if method == b"POST" else http(404, b"", "text/plain")
                )
                await writer.drain()
        except (ConnectionResetError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def answer(self, headers: dict[str, str], body: Event) -> bytes:
        self.requests.append((headers, body))
        step = self.script[min(len(self.requests), len(self.script)) - 1]
        if isinstance(step, tuple):
            return http(step[0], json.dumps(step[1]).encode(), "application/json")
        if body.get("stream") is not True:
            return http(200, json.dumps(whole(step)).encode(), "application/json")
        return http(
            200,
            "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in step).encode(),
            "text/event-stream",
        )


def whole(events: list[Event]) -> Event:
    """Return as one document what ``events`` bring piece by piece."""
    if events[0]["type"] == "response.created":
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        answer = events[-1]["response"]
        return {**answer, "object": "response", "status": "completed", "model": "x", "output": items}
    [block] = (event["content_block"] for event in events if event["type"] == "content_block_start")
    [delta] = (event["delta"] for event in events if event["type"] == "content_block_delta")
    [end] = (event for event in events if event["type"] == "message_delta")
    texts = {"text": delta["text"]} if "text" in delta else {"input": json.loads(delta["partial_json"])}
    head = events[0]["message"]
    usage = {**head["usage"], **end["usage"]}
    return {**head, **end["delta"], "content": [{**block, **texts}], "usage": usage}


def http(status: int, body: bytes, kind: str) -> bytes:
    return f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def loopback(*script: list[Event] | tuple[int, Event]) -> AsyncIterator[LoopbackModel]:
    """Serve a script."""
    model = LoopbackModel(list(script))
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield model
    finally:
        server.close()


def response(item: Event, tokens_in: int, tokens_out: int) -> list[Event]:
    """Return the stream of one answer of the Responses API."""
    usage = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]


def said(text: str) -> Event:
    """Return a message as an item of the Responses API."""
    return {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]}


def call(name: str, **arguments: Any) -> Event:
    """Return a call of a tool as an item of the Responses API."""
    return {"type": "function_call", "id": "f", "call_id": "c", "name": name, "arguments": json.dumps(arguments)}


def message(block: Event, delta: Event, reason: str) -> list[Event]:
    """Return the stream of one answer of the Messages API: 170 tokens in, 20 of them cached, 7 out."""
    usage = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 20,
        "output_tokens": 1,
    }
    head = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "stop_reason": None}
    return [
        {"type": "message_start", "message": {**head, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]


def words(text: str) -> list[Event]:
    """Return a text of the Messages API."""
    return message({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")


def tool_use(name: str, **given: Any) -> list[Event]:
    """Return a use of a tool of the Messages API."""
    block = {"type": "tool_use", "id": "t", "name": name, "input": {}}
    return message(block, {"type": "input_json_delta", "partial_json": json.dumps(given)}, "tool_use")
