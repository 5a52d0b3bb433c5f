"""What the tests of the sandbox share: every way of isolation that works on this machine."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from soaking import soak

from skillgit.errors import SandboxError
from skillgit.sandbox import Limits, Mode, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillgit.sandbox import Result


def sandbox_of(mode: Mode) -> Sandbox:
    """Return a sandbox of this way; a machine that does not have it skips the test."""
    try:
        return Sandbox(mode)
    except SandboxError as error:
        pytest.skip(f"{error.message}")


@pytest.fixture(params=[Mode.BUBBLEWRAP, Mode.LANDLOCK], ids=str)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """A sandbox that isolates, in each way that works here."""
    return sandbox_of(request.param)


@pytest.fixture(params=[Mode.AUTO, soak(Mode.BUBBLEWRAP), soak(Mode.LANDLOCK)], ids=str)
def usual_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox that is taken here, for what every way does alike because it is not the way that does it."""
    return sandbox_of(request.param)


@pytest.fixture(params=[Mode.BUBBLEWRAP, soak(Mode.LANDLOCK), soak(Mode.NONE)], ids=str)
def any_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """A sandbox in each way, that without isolation as well."""
    return sandbox_of(request.param)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach and read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def ran(box: Sandbox, code: str, **options: object) -> Result:
    """Run Python code in a sandbox, within limits that are tight for a test."""
    limits = Limits(**{"wall_s": 60, "cpu_s": 20, **options.pop("limits", {})})
    return asyncio.run(box.run(box.python_job(code, limits=limits, **options)))


@pytest.fixture
def run(sandbox: Sandbox) -> Callable[..., Result]:
    """Run Python code in a sandbox that isolates."""
    return lambda code, **options: ran(sandbox, code, **options)


@pytest.fixture
def run_any(any_sandbox: Sandbox) -> Callable[..., Result]:
    """Run Python code in any sandbox."""
    return lambda code, **options: ran(any_sandbox, code, **options)
