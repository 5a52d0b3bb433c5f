"""Types of an SDK load when they are used, and then as an import would have loaded them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from skillgit_backends.deferral import deferred

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

AFTER_A_CLIENT = """
import asyncio, sys
from skillgit_backends.openai_wire.connection import Connection
from skillgit_backends.openai_wire.endpoint import Endpoint

async def main():
    connection = Connection("openai_chat", 1.0)
    connection.client(Endpoint(url="http://127.0.0.1:1/v1", key="", key_name=""))
    await connection.aclose()

asyncio.run(main())
print("openai.types.responses.response" in sys.modules)
from openai.types.chat import ChatCompletion
from openai.types import responses
print(ChatCompletion.__name__, responses.Response.__name__, responses.response.Response is responses.Response)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package ``latecomer`` with a package ``inner`` in it; each counts in ``latecomer_loads`` how often it loads."""
    inner = tmp_path / "latecomer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "latecomer_loads.py").write_text("names = []\n")
    count = "import latecomer_loads\nlatecomer_loads.names.append(__name__)\n"
    (tmp_path / "latecomer" / "__init__.py").write_text(f"{count}from latecomer.inner import answer\n")
    (inner / "__init__.py").write_text(f"{count}from latecomer.inner.leaf import answer\n")
    (inner / "leaf.py").write_text(f"{count}answer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("latecomer")]:
        del sys.modules[name]


@pytest.mark.usefixtures("package")
def test_a_package_loads_at_the_first_look_and_only_once() -> None:
    latecomer = _import_late("latecomer")
    assert _loads() == []
    assert (latecomer.answer, latecomer.answer) == (42, 42)
    assert _loads() == ["latecomer", "latecomer.inner", "latecomer.inner.leaf"]


@pytest.mark.usefixtures("package")
def test_a_module_inside_loads_without_the_packages_around_it() -> None:
    assert _import_late("latecomer.inner.leaf").answer == 42
    assert _loads() == ["latecomer.inner.leaf"]


@pytest.mark.usefixtures("package")
def test_a_name_that_is_not_there_is_missed_as_usual() -> None:
    latecomer = _import_late("latecomer")
    with pytest.raises(AttributeError, match="nothing"):
        _ = latecomer.nothing
    assert latecomer.answer == 42


@pytest.mark.usefixtures("package")
def test_other_packages_load_at_once() -> None:
    with deferred("late"):
        importlib.import_module("latecomer")
    assert "latecomer" in _loads()


def _import_late(name: str) -> ModuleType:
    with deferred("latecomer"):
        return importlib.import_module(name)


def _loads() -> list[str]:
    names: list[str] = importlib.import_module("latecomer_loads").names
    return names


def test_a_client_of_the_sdk_loads_no_types_and_its_users_still_find_them() -> None:
    done = subprocess.run([sys.executable, "-c", AFTER_A_CLIENT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "ChatCompletion Response True"]
