"""A model on the loopback for agents that people drive: it answers a prompt by the words in it, in three APIs.

The script maps words of a prompt to the steps that follow it: a text, or a call of a tool. How far a turn has come
follows from the request, so that requests for titles and summaries do no harm.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Call = tuple[str, dict[str, Any]]
Script = dict[str, list["str | Call"]]
IDS = count(1)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _events(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the request's history as pairs of ``prompt`` or ``result`` and a text."""
    for entry in body.get("messages") or body.get("input") or []:
        content = entry.get("content")
        results = [part for part in content if part.get("type") == "tool_result"] if isinstance(content, list) else []
        if entry.get("role") == "tool" or str(entry.get("type", "")).endswith("call_output"):
            yield "result", ""
        yield from (("result", "") for _ in results)
        if entry.get("role") == "user":
            yield "prompt", _text(content)


def step_of(script: Script, body: Mapping[str, Any]) -> str | Call:
    steps: Sequence[str | Call] = ()
    at = 0
    for kind, text in _events(body):
        key = max((key for key in script if key in text), key=len, default="") if kind == "prompt" else ""
        if key:
            steps, at = script[key], 0
        elif kind == "result":
            at += 1
    if not body.get("tools"):
        return "A title"
    return steps[at] if at < len(steps) else "All done."


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def talking(script: Script) -> Iterator[Model]:
    with Model(script) as model:
        thread = threading.Thread(target=model.serve_forever, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


def _messages(step: str | Call) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    head = {"id": f"msg_{next(IDS)}", "type": "message", "role": "assistant", "model": "m", "content": []}
    yield "message_start", {"message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    if isinstance(step, str):
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step}
    else:
        block = {"type": "tool_use", "id": f"toolu_{next(IDS)}", "name": step[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step[1])}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    reason = "end_turn" if isinstance(step, str) else "tool_use"
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 5}}
    yield "message_stop", {}


def _responses(step: str | Call) -> Iterator[tuple[str, dict[str, Any]]]:
    identity = f"resp_{next(IDS)}"
    item: dict[str, Any] = {"id": f"i_{next(IDS)}"}
    if isinstance(step, str):
        item |= {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": step}]}
    elif "input" in step[1] and len(step[1]) == 1:
        item |= {"type": "custom_tool_call", "call_id": f"c_{next(IDS)}", "name": step[0], "input": step[1]["input"]}
    else:
        item |= {"type": "function_call", "call_id": f"c_{next(IDS)}", "name": step[0]}
        item["arguments"] = json.dumps(step[1])
    yield "response.created", {"response": {"id": identity}}
    yield "response.output_item.done", {"item": item, "output_index": 0}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield "response.completed", {"response": {"id": identity, "usage": usage}}


def _chat(step: str | Call) -> Iterator[dict[str, Any]]:
    head = {"id": f"c_{next(IDS)}", "object": "chat.completion.chunk", "model": "m", "created": 1}
    if isinstance(step, str):
        delta: dict[str, Any] = {"role": "assistant", "content": step}
    else:
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        call = {"index": 0, "id": f"call_{next(IDS)}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [call]}
    yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "stop" if isinstance(step, str) else "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}


class Handler(BaseHTTPRequestHandler):
    server: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._send(b'{"data": [{"id": "m", "object": "model"}]}', "application/json")

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self.server.bodies.append(body)
        if "count_tokens" in self.path:
            return self._send(b'{"input_tokens": 10}', "application/json")
        step = step_of(self.server.script, body)
        if "chat/completions" in self.path:
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in _chat(step)] + ["data: [DONE]\n\n"]
        else:
            form = _responses if "responses" in self.path else _messages
            lines = [f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n" for kind, data in form(step)]
        return self._send("".join(lines).encode(), "text/event-stream")

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
