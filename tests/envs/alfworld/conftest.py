from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skillgit_envs.alfworld.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def simulator() -> Iterator[Simulator]:
    made = Simulator()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "hidden")  # of which no game may hear
        made._running()
    yield made
    made.close()


@pytest.fixture
def expert() -> Callable[..., list[Any]]:
    """Return what asks the program ``expert.py``."""

    def ask(mode: str, openings: list[dict[str, Any]], steps: int = 50) -> list[Any]:
        task = json.dumps({"mode": mode, "openings": openings, "steps": steps})
        program = [sys.executable, str(Path(__file__).with_name("expert.py"))]
        done = subprocess.run(program, input=task, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found

    return ask
