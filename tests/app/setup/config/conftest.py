from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from skillgit.app.setup.config.load import load_config
from skillgit.app.workspace.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.app.setup.config.resolved import ResolvedConfig


@pytest.fixture
def context(tmp_path: Path) -> Context:
    work = tmp_path / "work"
    work.mkdir()
    return Context(
        directory=work,
        environ={"HOME": str(tmp_path / "home")},
        clock=lambda: datetime(2026, 11, 21, tzinfo=UTC),
        entropy=lambda count: b"\0" * count,
    )


@pytest.fixture
def write(context: Context) -> Callable[..., Path]:
    """Write a file below the working directory."""

    def put(name: str, text: str) -> Path:
        path = context.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return put


@pytest.fixture
def load(context: Context, write: Callable[..., Path]) -> Callable[..., ResolvedConfig]:
    """Load a configuration from the text of a file, on top of the name of the environment."""

    def read(text: str = "", *overrides: str, name: str = "my.yaml") -> ResolvedConfig:
        write(name, text if "name:" in text or "env:" in text else f"{text}\nenv: {{name: searchqa}}\n")
        return load_config(context, name, overrides)

    return read
