"""A real ``skillgit serve`` on the loopback, a repository for it to show, and what asks it for pages."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
from harvested import draft, write_drafts
from once import copy_folder, once
from program import QUICK, SKILLGIT, skillgit, surroundings
from trained_runs import RUN, small_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

OTHER = "other"
DEADLINE_S = 60
"""Seconds after which an answer counts as missing, however busy the machine is."""
NOW = {"SKILLGIT_CLOCK": ""}
"""The time of the machine, for a server whose trainings are watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs, and the link of its owner, which it printed."""

    process: subprocess.Popen[bytes]
    repository: Path
    link: str
    visitors: list[httpx2.Client] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return self.link.partition("/?")[0]

    @property
    def port(self) -> int | None:
        return urlsplit(self.link).port

    def invite(self) -> str:
        """Return a link of this server that only reads."""
        name = f"viewer {os.urandom(4).hex()}"  # ports come again
        link = skillgit("serve", "--invite", name, cwd=self.repository).out.strip()
        return f"{self.origin}/?{urlsplit(link).query}"

    def visitor(self, link: str = "", **options: object) -> httpx2.Client:
        """Return a client that came in by ``link``, else by the owner's; it is closed with the server."""
        client = httpx2.Client(base_url=self.origin, timeout=DEADLINE_S, follow_redirects=True, **options)
        self.visitors.append(client)
        assert client.get(link or self.link).status_code == httpx2.codes.OK
        return client

    @contextmanager
    def visit(self, link: str = "") -> Iterator[httpx2.Client]:
        """Give a visitor for as long as the block lasts, whose forms come from a page of the server."""
        with closing(self.visitor(link, headers={"Origin": self.origin})) as client:
            yield client

    def post(self, client: httpx2.Client, path: str, **fields: str) -> httpx2.Response:
        """Send a form as a page of the server does."""
        page = client.get("/activity").text
        csrf = re.search(r'name="csrf" value="([^"]*)"', page)
        data = {"csrf": csrf[1] if csrf else "", **fields}
        return client.post(path, data=data, headers={"origin": self.origin})

    def cpu_ms(self) -> float:
        """Return the processor time that the server has used."""
        return cpu_ms(self.process.pid)


@contextmanager
def serving(repository: Path, *options: str, **more: str) -> Iterator[Served]:
    """Serve ``repository`` on a free port for as long as the block lasts."""
    command = (*SKILLGIT, "-C", str(repository), "serve", "--port", "0", *options)
    with subprocess.Popen(command, env=surroundings(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            link = process.stdout.readline().decode().strip()
            assert link, process.stderr.read().decode()
            server = Served(process=process, repository=repository, link=link)
            yield server
            for visitor in server.visitors:
                visitor.close()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=DEADLINE_S)


def until(condition: Callable[[], bool]) -> None:
    """Wait for ``condition`` to hold."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with two finished runs; whoever starts something in it takes a copy."""

    def fill(folder: Path) -> None:
        repository = copy_folder(small_run(tmp_path_factory), folder / "repository")
        skillgit("train", "demo", "--run", OTHER, "-q", *QUICK, "-o", "train.seed=7", cwd=repository)
        rows = [
            draft("d-1", prompt="How long is the pier?", files=["files/d-1/pier.txt"]),
            draft("d-2", prompt="Use ghp_" + 6 * "a1B2c3"),
        ]
        write_drafts(repository, rows, {"files/d-1/pier.txt": b"180 metres"})

    return once(tmp_path_factory, f"{RUN}-and-{OTHER}", fill) / "repository"


def cpu_ms(pid: int) -> float:
    """Return the processor time of a process and of those that it has waited for, in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
