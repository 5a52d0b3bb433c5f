"""A server of OpenAI's protocol whose answers and whose words about its model a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
MODEL = "qwen"
OPENAI_LIST: Mapping[str, object] = {"data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "vllm"}]}


def llama_cpp(file: str, *, created: int, size: int = 986, build: str = "b6666-1234abc") -> dict[str, object]:
    """Return what llama.cpp's server says at its paths, as its build of October 2026 does."""
    meta = {"n_vocab": 151936, "n_ctx": 4096, "n_params": 1543, "size": size, "ftype": "Q4_K - Medium"}
    entry = {"id": file, "object": "model", "created": created, "owned_by": "llamacpp", "aliases": [file], "meta": meta}
    return {
        "/v1/models": {"object": "list", "data": [entry]},
        "/props": {"model_path": f"/models/{file}", "build_info": build, "chat_template": "{{ messages }}"},
    }


def ollama(digest: str, *, created: int) -> dict[str, object]:
    """Return what Ollama says at its paths."""
    name = f"{MODEL}:latest"
    details = {"parameter_size": "1.5B", "quantization_level": "Q4_K_M"}
    return {
        "/v1/models": {"data": [{"id": name, "object": "model", "created": created, "owned_by": "library"}]},
        "/api/tags": {"models": [{"name": name, "digest": digest, "size": 986, "details": details}]},
    }


class JsonHandler(BaseHTTPRequestHandler):
    """Answers in JSON, and writes no log."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def read_json(self) -> dict[str, Any]:
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def send_json(self, document: object, status: int = 200) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler], port: int = 0) -> Iterator[str]:
    """Serve while the block lasts, on a free port, or on the one that another server had; yield the address."""
    server = ThreadingHTTPServer((HOST, port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(slots=True, kw_only=True)
class Served:
    """What the server says; a test changes it between two commands, as a restart does."""

    answer: Callable[[str], str]  # from the whole text of a question
    says: Mapping[str, object] = field(default_factory=lambda: {"/v1/models": OPENAI_LIST})
    url: str = ""
    questions: list[str] = field(default_factory=list)  # to the model, without the one that asks whether it answers
    looks: list[str] = field(default_factory=list)  # paths that were looked at
    keys: set[str] = field(default_factory=set)  # the credentials that came with questions

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/v1").rpartition(":")[2])


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(JsonHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.looks.append(self.path)
            document = served.says.get(self.path.partition("?")[0])
            self.send_json(document or {"error": {"message": "Not Found"}}, 404 if document is None else 200)

        def do_POST(self) -> None:
            body = self.read_json()
            text = "\n".join(str(message["content"]) for message in body["messages"])
            served.keys.add(str(self.headers.get("authorization")))
            if text != "Reply with OK.":
                served.questions.append(text)
            message = {"role": "assistant", "content": served.answer(text)}
            usage = {"prompt_tokens": 10, "completion_tokens": 5}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            self.send_json({"id": "x", "model": body["model"], "choices": choices, "usage": usage})

    return Handler


@contextmanager
def model_server(answer: Callable[[str], str], *, port: int = 0, **settings: object) -> Iterator[Served]:
    """Serve while the block lasts, on a free port, or on the one that another server had."""
    served = Served(answer=answer, **settings)  # type: ignore[arg-type]
    with listening(_handler(served), port) as served.url:
        yield served
