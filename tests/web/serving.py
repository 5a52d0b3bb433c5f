"""A real ``skillgit serve`` on the loopback, a repository for it to show, and what asks it for pages."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from once import once
from program import QUICK, SKILLGIT, skillgit, surroundings
from trained_runs import RUN, small_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

OTHER = "other"
DEADLINE_S = 60
"""Seconds after which an answer counts as missing, however busy the machine is."""
NOW = {"SKILLGIT_CLOCK": ""}
"""The time of the machine, for a server whose trainings are watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that runs, and the links that it printed: an operator's, and a viewer's behind it."""

    process: subprocess.Popen[str]
    repository: Path
    links: tuple[str, ...]

    @property
    def operator(self) -> str:
        return self.links[0]

    @property
    def viewer(self) -> str:
        return self.links[-1]

    @property
    def origin(self) -> str:
        return self.operator.partition("/?")[0]

    @contextmanager
    def visit(self, link: str = "") -> Iterator[httpx2.Client]:
        """Give a client that came in by ``link``, the operator's unless another is named, and sends forms as pages do."""
        with httpx2.Client(
            base_url=self.origin, headers={"Origin": self.origin}, follow_redirects=True, timeout=DEADLINE_S
        ) as client:
            assert client.get(link or self.operator).status_code == httpx2.codes.OK
            yield client

    def cpu_ms(self) -> float:
        """Return the processor time that the server has used."""
        return cpu_ms(self.process.pid)


@contextmanager
def serving(repository: Path, *options: str, **more: str) -> Iterator[Served]:
    """Serve ``repository`` on a free port for as long as the block lasts."""
    command = (*SKILLGIT, "-C", str(repository), "serve", "--port", "0", *options)
    with subprocess.Popen(
        command, env=surroundings(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            links = tuple(_links(process))
            assert links, process.stderr.read()
            yield Served(process=process, repository=repository, links=links)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=DEADLINE_S)


def _links(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the links that a server prints before the line about how it ends."""
    for line in process.stdout:
        if link := re.search(r"https?://\S+\?token=\S+", line):
            yield link[0]
            return


def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with two finished runs; whoever starts something in it takes a copy."""

    def fill(folder: Path) -> None:
        repository = shutil.copytree(small_run(tmp_path_factory), folder / "repository")
        skillgit("train", "demo", "--run", OTHER, "-q", *QUICK, "-o", "train.seed=7", cwd=repository)

    return once(tmp_path_factory, f"{RUN}-and-{OTHER}", fill) / "repository"


def cpu_ms(pid: int) -> float:
    """Return the processor time of a process and of those that it has waited for, in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
