"""The one address that a program under comparison asks: its target, and an optimizer that answers by hand.

``/v1`` and ``/target/v1`` pass a request on to the server of the target, at temperature 0; ``/optimizer/v1``, and any
request for the model ``optimizer``, becomes a file ``NAME.prompt.md`` and waits for ``NAME.answer.md``. Every reply is
kept by the digest of its request, so that a program that starts over after a stop gets the same replies at once, and
programs that show the same text to the target get the same answer. What is counted is what the program asked since the
door opened: its last run, from start to end.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from served import JsonHandler, listening

TARGET, OPTIMIZER, HELD_OUT = "target", "optimizer", "held-out"
"""Of whom a request is: of the target for a test item, it is counted apart, for not every program measures these."""
LOOK_S = 0.2
MOST_TOKENS = 500
"""Of a reply of the target: programs that set no bound, or a higher one, are bound alike."""
NOT_ASKED = {"stream", "stream_options", "user", "n", "seed", "max_tokens", "max_completion_tokens"}
"""Fields of a request that change no answer here."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What a program has used: calls, and tokens as the server of the target counts them."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0  # of tokens_in, those that the server took from its prefix cache when it was asked

    def add(self, usage: Mapping[str, Any]) -> None:
        self.calls += 1
        self.tokens_in += int(usage.get("prompt_tokens") or 0)
        self.tokens_out += int(usage.get("completion_tokens") or 0)
        self.cached += int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)


@dataclass(slots=True, kw_only=True)
class Door:
    target: str  # address of the target's server, with its /v1
    replies: Path  # SQLite file of the target's replies, which several doors may share
    prompts: Path  # folder of the questions to the optimizer
    at_once: int = 4  # requests to the target; 1 where several programs run, so that each keeps its prefix in a slot
    url: str = ""  # without a path
    held_out: frozenset[str] = frozenset()  # the questions of the test items
    used: dict[str, Counts] = field(default_factory=lambda: {role: Counts() for role in (TARGET, OPTIMIZER, HELD_OUT)})
    _times: Counter[str] = field(default_factory=Counter)  # that a question to the optimizer was asked since the start
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _turns: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._turns = threading.Semaphore(self.at_once)

    def models(self) -> dict[str, Any]:
        """Return what the target's server says about its models, with the optimizer behind them."""
        listed = json.loads(fetch(f"{self.target}/models"))
        entry = {"id": OPTIMIZER, "object": "model", "created": 0, "owned_by": "a person or a program"}
        return {"object": "list", "data": [*listed["data"], entry]}

    def ask_target(self, body: Mapping[str, Any]) -> dict[str, Any]:
        asked = {name: value for name, value in body.items() if name not in NOT_ASKED}
        asked |= {"temperature": 0, "max_tokens": MOST_TOKENS}
        key = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        with closing(sqlite3.connect(self.replies, timeout=60)) as database:
            database.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT)")
            row = database.execute("SELECT reply FROM replies WHERE key = ?", [key]).fetchone()
        if row is not None:
            reply = json.loads(row[0])
        else:
            with self._turns:
                reply = json.loads(fetch(f"{self.target}/chat/completions", asked))
        if row is None:
            with closing(sqlite3.connect(self.replies, timeout=60)) as database, database:
                database.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", [key, json.dumps(reply)])
        text = "".join(str(message["content"]) for message in body["messages"])
        self._count(HELD_OUT if any(question in text for question in self.held_out) else TARGET, reply["usage"])
        return dict(reply)

    def ask_optimizer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Leave a question for whoever answers, and wait for the answer."""
        prompt = as_page(body)
        key = sha256(prompt.encode()).hexdigest()[:16]
        with self._lock:
            self._times[key] += 1
            name = f"{key}-{self._times[key]}"
        page, answer = self.prompts / f"{name}.prompt.md", self.prompts / f"{name}.answer.md"
        if not page.is_file():
            fresh = page.with_suffix(".new")
            fresh.write_text(prompt, encoding="utf-8")
            fresh.replace(page)
        while not answer.is_file():
            time.sleep(LOOK_S)
        text = answer.read_text(encoding="utf-8").strip()
        usage = {"prompt_tokens": self._tokens(prompt), "completion_tokens": self._tokens(text)}
        self._count(OPTIMIZER, usage)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage["total_tokens"] = sum(usage.values())
        return {
            "id": name,
            "object": "chat.completion",
            "created": 0,
            "model": OPTIMIZER,
            "choices": [choice],
            "usage": usage,
        }

    def _tokens(self, text: str) -> int:
        """Count as the target's server does, so that one measure holds for both models; else four letters a token."""
        try:
            return len(json.loads(fetch(f"{self.target.removesuffix('/v1')}/tokenize", {"content": text}))["tokens"])
        except (OSError, KeyError, ValueError):
            return len(text) // 4

    def _count(self, role: str, usage: Mapping[str, Any]) -> None:
        with self._lock:
            self.used[role].add(usage)


def fetch(url: str, body: Mapping[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})  # noqa: S310 - the user's
    with urllib.request.urlopen(request, timeout=3600) as reply:  # noqa: S310 - the user's
        return bytes(reply.read())


def as_page(body: Mapping[str, Any]) -> str:
    """Return a request as one text for whoever answers it, with the form of the reply last."""
    parts = []
    for message in body["messages"]:
        content = message["content"]
        text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        parts.append(f"# {message['role']}\n\n{text.strip()}")
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    if schema:
        parts.append(f"# form of the reply\n\nJSON alone, as this schema says:\n\n{json.dumps(schema)}")
    return "\n\n".join(parts) + "\n"


def _handler(door: Door) -> type[BaseHTTPRequestHandler]:
    class Handler(JsonHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(door.models if self.path.endswith("/models") else self._look)

        def do_POST(self) -> None:
            body = self.read_json()
            by_hand = self.path.startswith(f"/{OPTIMIZER}/") or body.get("model") == OPTIMIZER
            self._answer(lambda: door.ask_optimizer(body) if by_hand else door.ask_target(body))

        def _look(self) -> Any:
            return json.loads(fetch(f"{door.target.removesuffix('/v1')}{self.path}"))

        def _answer(self, of: Any) -> None:
            status, document = 200, None
            try:
                document = of()
            except urllib.error.HTTPError as error:
                status, document = error.code, {"error": {"message": error.read().decode(errors="replace")}}
            except OSError as error:
                status, document = 503, {"error": {"message": str(error)}}
            self.send_json(document, status)

    return Handler


@contextmanager
def opened(target: str, replies: Path, prompts: Path, at_once: int = 4) -> Iterator[Door]:
    """Open a door on a free port of the loopback while the block lasts."""
    prompts.mkdir(parents=True, exist_ok=True)
    door = Door(target=target.rstrip("/"), replies=replies, prompts=prompts, at_once=at_once)
    with listening(_handler(door)) as address:
        door.url = address.removesuffix("/v1")
        yield door
