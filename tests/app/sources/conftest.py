"""A hub on the loopback with one dataset, and an environment that names it."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMIT = "c0ffee" + 34 * "0"
REPOSITORY = "someone/riddles"
ENVIRONMENT = """
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, SourceKind

class Riddles:
    info = EnvironmentInfo(
        name="riddles", summary="Riddles.", fields={}, scorer="equality", source="made here", licence="MIT",
        public=PublicSource(
            kind=SourceKind.HUGGINGFACE, place="someone/riddles", revision="v1", files=("data/*.parquet", "*.jsonl"),
            layout="place riddles.jsonl and name it with env.data_path", convert="riddle_rows:convert",
        ),
    )
"""
CONVERSION = """
def convert(rows):
    for row in rows:
        yield {"id": str(row["key"]), "question": row["question"], "answers": list(row["answers"])}
"""


@dataclass
class Hub:
    """What the hub holds, and what it was asked for; ``sizes`` and ``sent`` are what it declares and sends instead."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    gated: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    sent: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


Answer = tuple[int, dict[str, str], bytes]


def answer(hub: Hub, path: str) -> Answer:
    """Return status, headers and body of what is at ``path``."""
    if hub.gated:
        return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
    if path in {f"/api/datasets/{REPOSITORY}/revision/{name}" for name in ("v1", "v2", COMMIT)}:
        listed = [{"rfilename": name, "size": hub.sizes.get(name, len(hub.files[name]))} for name in hub.files]
        return 200, {}, json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": listed}).encode()
    if path == f"/api/datasets/{REPOSITORY}/tree/{COMMIT}":
        tree = [{"type": "file", "path": name, "size": len(hub.files[name]), "oid": "0" * 40} for name in hub.files]
        return 200, {}, json.dumps(tree).encode()
    name = path.removeprefix(f"/datasets/{REPOSITORY}/resolve/{COMMIT}/")
    if name in hub.files:
        etag = f'"{hashlib.sha256(hub.files[name]).hexdigest()}"'
        return 200, {"ETag": etag, "X-Repo-Commit": COMMIT}, hub.sent.get(name, hub.files[name])
    return 404, {"X-Error-Code": "RevisionNotFound" if "/revision/" in path else "EntryNotFound"}, b"{}"


def handler_of(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.tell(body=True)

        def do_HEAD(self) -> None:
            self.tell(body=False)

        def tell(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            status, headers, content = answer(hub, path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(hub))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub on the loopback."""
    with serving(Hub()) as found:
        yield found


@pytest.fixture
def user(empty, hub, tmp_path, monkeypatch):
    """A user of that hub, with the environment ``riddles.py:Riddles`` in the working directory."""
    (empty.directory / "riddles.py").write_text(ENVIRONMENT)
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "riddle_rows.py").write_text(CONVERSION)
    monkeypatch.syspath_prepend(str(modules))
    monkeypatch.delitem(sys.modules, "riddle_rows", raising=False)
    return replace(empty, environ={"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(tmp_path / "cache")})


@pytest.fixture
def parquet() -> Callable[[list[dict[str, object]]], bytes]:
    """Return rows as a Parquet file."""

    def written(rows: list[dict[str, object]]) -> bytes:
        import pyarrow as pa  # noqa: PLC0415 - slow to import
        from pyarrow.parquet import write_table  # noqa: PLC0415 - slow to import

        sink = pa.BufferOutputStream()
        write_table(pa.Table.from_pylist(rows), sink)
        return sink.getvalue().to_pybytes()

    return written
