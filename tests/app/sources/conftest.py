"""A hub on the loopback with one dataset, and an environment that names it."""

from __future__ import annotations

import hashlib
import json
import re
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
REVISION = re.compile(r"v1|v2|main|[0-9a-f]{40}")
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
        fields = row.fields
        yield {"id": str(fields["key"]), "question": fields["question"], "answers": list(fields["answers"])}
"""


@dataclass
class Hub:
    """What the hub holds, how it behaves, and what it was asked for.

    Attributes:
        repository: The name of its only dataset; ``former`` is one that it is moved from.
        sizes: What it declares instead.
        sent: What it sends instead.
        closed: Error code and status of all requests for this dataset; of its files alone if ``lists``.
        cut: Bytes after which a connection breaks off.
        plain: Files that are not kept in LFS.
        web: Files at addresses of their own.
    """

    url: str = ""
    repository: str = REPOSITORY
    former: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    plain: set[str] = field(default_factory=set)
    web: dict[str, bytes] = field(default_factory=dict)
    closed: tuple[int, str] | None = None
    lists: bool = False
    licence: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    sent: dict[str, bytes] = field(default_factory=dict)
    cut: int | None = None
    asked: list[str] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)


Answer = tuple[int, dict[str, str], bytes]


def sibling(hub: Hub, name: str) -> dict[str, object]:
    content = hub.files[name]
    size = hub.sizes.get(name, len(content))
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if name in hub.plain:
        return {"rfilename": name, "size": size, "blobId": blob}
    lfs = {"size": size, "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 130}
    return {"rfilename": name, "size": size, "blobId": "0" * 40, "lfs": lfs}


def answer(hub: Hub, path: str) -> Answer:
    """Return status, headers and body of what is at ``path``."""
    if path.lstrip("/") in hub.web:
        return 200, {}, hub.web[path.lstrip("/")]
    if hub.closed and not (hub.lists and path.startswith("/api/")):
        status, code = hub.closed
        return status, {"X-Error-Code": code} if code else {}, b"{}"
    if hub.former and f"/{hub.former}/" in path:
        return 307, {"Location": path.replace(hub.former, hub.repository)}, b""
    head = f"/api/datasets/{hub.repository}/revision/"
    if path.startswith(head) and REVISION.fullmatch(path.removeprefix(head)):
        card = {"license": hub.licence} if hub.licence else {}
        listed = [sibling(hub, name) for name in hub.files]
        return 200, {}, json.dumps({"id": hub.repository, "sha": COMMIT, "siblings": listed, "cardData": card}).encode()
    name = path.removeprefix(f"/datasets/{hub.repository}/resolve/{COMMIT}/")
    if name in hub.files:
        return 200, {}, hub.sent.get(name, hub.files[name])
    code = "EntryNotFound"
    if path.startswith("/api/"):
        code = "RevisionNotFound" if path.startswith(head) else "RepoNotFound"
    return 404, {"X-Error-Code": code}, b"{}"


def handler_of(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.tell(body=False)

        def do_GET(self) -> None:
            self.tell(body=True)

        def tell(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(path if body else f"HEAD {path}")
            status, headers, content = answer(hub, path)
            begin = self.headers.get("Range", "").removeprefix("bytes=").rstrip("-")
            if begin and status == 200:
                hub.ranges.append(begin)
                status, headers = 206, {"Content-Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"}
                content = content[int(begin) :]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            cut = None if path.startswith("/api/") or not body else hub.cut
            self.wfile.write(content[:cut] if body else b"")
            self.close_connection = cut is not None

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: a client may leave in the middle of an answer."""


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    server = _Server(("127.0.0.1", 0), handler_of(hub))
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
    return replace(empty, environ={"HF_ENDPOINT": hub.url, "XDG_CACHE_HOME": str(tmp_path / "cache")})


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
