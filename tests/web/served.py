"""A server of ``skillgit serve`` as a process, and a browser's part of the conversation with it."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
from program import SKILLGIT, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PageServer:
    process: subprocess.Popen[bytes]
    link: str
    visitors: list[httpx2.Client] = field(default_factory=list)

    @property
    def origin(self) -> str:
        parts = urlsplit(self.link)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def port(self) -> int:
        return urlsplit(self.link).port

    def visitor(self, link: str = "", **options: object) -> httpx2.Client:
        """Return a client that has opened ``link``; the server's own unless another is given."""
        client = httpx2.Client(base_url=self.origin, timeout=DEADLINE_S, follow_redirects=True, **options)
        self.visitors.append(client)
        assert client.get(link or self.link).status_code == 200
        return client

    def post(self, client: httpx2.Client, path: str, **fields: str) -> httpx2.Response:
        """Send a form as a page of ours does."""
        page = client.get("/activity").text
        csrf = re.search(r'name="csrf" value="([^"]*)"', page)
        data = {"csrf": csrf[1] if csrf else "", **fields}
        return client.post(path, data=data, headers={"origin": self.origin})


@contextmanager
def page_server(repository: Path, *options: str, **more: str) -> Iterator[PageServer]:
    command = (*SKILLGIT, "-C", str(repository), "serve", "--port", "0", *options)
    process = subprocess.Popen(command, env=surroundings(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        try:
            link = process.stdout.readline().decode().strip()
            assert link, process.stderr.read().decode()
            server = PageServer(process=process, link=link)
            yield server
            for visitor in server.visitors:
                visitor.close()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=DEADLINE_S)
