from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hosts import Host, Person, first

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host with the empty repository ``skills``."""
    host = Host(tmp_path / "host")
    host.make()
    yield host
    if host.process is not None:
        host.kill()


@pytest.fixture
def ann(tmp_path: Path, host: Host) -> Person:
    """Somebody who has the whole sample run, on the machine of the host."""
    person = first(tmp_path / "ann")
    person.git("remote", "add", "origin", str(host.path))
    return person


@pytest.fixture
def clone(tmp_path: Path, host: Host):
    """Let somebody else clone the repository of the host."""

    def make(name: str, *options: str) -> Person:
        Person(tmp_path)("clone", *options, host.path, name)
        return Person(tmp_path / name)

    return make
