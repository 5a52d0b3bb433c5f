"""What the tests of the environment tasks share: task files, and checks carried out on an answer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.trajectory import Trajectory
from skillgit.errors import SandboxError
from skillgit.sandbox import Sandbox
from skillgit_envs.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write rows as JSON lines."""

    def write(*rows: object, name: str = "tasks.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return path

    return write


@pytest.fixture
def graded(tmp_path: Path) -> Callable[..., tuple[float, float, str]]:
    """Return hard, soft and feedback of an answer to a task."""

    def grade(row: dict[str, object], answer: str, *, judge: object = None, products=None, **options: object):
        environment = Tasks(options, tmp_path)
        item = environment.task("the row", {"prompt": "Do it.", **row}, tmp_path / "tasks.jsonl")
        trajectory = Trajectory(item_id=item.id, turns=(), answer=answer, products=products or {})
        # The files of an item are known to the reader that found them.
        environment._reader.item("the row", {"prompt": "Do it.", **row}, tmp_path / "tasks.jsonl")
        scored, said = asyncio.run(environment.score(item, trajectory, judge))
        return scored.hard, scored.soft, said

    return grade


@pytest.fixture
def isolated() -> None:
    """Skip a test on a machine that cannot isolate programs."""
    try:
        Sandbox()
    except SandboxError as error:
        pytest.skip(error.message)
