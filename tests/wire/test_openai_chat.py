"""Training through the backends that speak OpenAI's protocol is the training that the offline backend gives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from decisions import decisions, skills
from once import copy_folder
from program import QUICK, new_repository, skillgit
from soaking import soak
from trained_runs import trained_run

from wire import Faults, wire_server

if TYPE_CHECKING:
    from pathlib import Path

    from wire import Entry, Wire

KEY = "sk-proj-PLANTED0123456789abcdefghijklmnop"
CLEAN = dict.fromkeys(("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"), "")


def train(repository: Path, *options: str, code: int = 0, env: dict[str, str] | None = None):
    return skillgit(
        "train", "demo", "--run", "demo", *QUICK, *NAMES, *options, cwd=repository, env=CLEAN | (env or {}), code=code
    )


NAMES = ("-o", "model.target=reader", "-o", "model.optimizer=analyst")


def through(backend: str, *settings: str) -> tuple[str, ...]:
    keys = (f"target_backend={backend}", f"optimizer_backend={backend}", *(f"{backend}_{key}" for key in settings))
    return tuple(word for key in keys for word in ("-o", f"model.{key}"))


def openai(wire: Wire, *settings: str) -> tuple[str, ...]:
    return through("openai_chat", f"base_url={wire.url}/v1", "api_key_env=PLANTED", *settings)


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_folder(trained_run(tmp_path_factory, "demo", *QUICK), tmp_path_factory.mktemp("offline") / "run")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def same(repository: Path, offline: Path) -> bool:
    assert decisions(repository, "demo") == decisions(offline, "demo")
    return skills(repository, "demo") == skills(offline, "demo") != {}


def asked(wire: Wire) -> list[Entry]:
    """Return the questions to models; whether the list of models was looked at does not matter here."""
    return [entry for entry in wire.log() if entry.dialect != "models"]


def paid_twice(wire: Wire) -> list[str]:
    counts = Counter(entry.digest for entry in wire.log() if entry.delivered)
    return [digest for digest, count in counts.items() if count > 1]


@pytest.mark.slow
def test_the_demo_learns_the_same_from_openai_and_keeps_no_key(repository, offline):
    with wire_server() as wire:
        train(repository, *openai(wire), env={"PLANTED": KEY})
        assert {entry.dialect for entry in asked(wire)} == {"chat"}
        assert {entry.role for entry in asked(wire)} == {"target", "optimizer"}
        assert paid_twice(wire) == []
    assert same(repository, offline)
    skillgit("fsck", "--deep", cwd=repository)
    files = [path for path in repository.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "settings", "dialect"),
    [
        soak("openai_chat", ("api=responses",), "responses"),
        soak("openai_compatible", (), "chat"),
        soak("qwen_chat", ("thinking_mode=enabled",), "chat"),
        soak("minimax_chat", ("thinking_mode=enabled",), "chat"),
    ],
)
def test_the_demo_learns_the_same_from_all_of_them(repository, offline, backend, settings, dialect):
    with wire_server() as wire:
        train(repository, *through(backend, f"base_url={wire.url}/v1", *settings))
        assert {entry.dialect for entry in asked(wire)} == {dialect}
    assert same(repository, offline)


@pytest.mark.soak
def test_azure_needs_nothing_but_the_variables_of_the_reference(repository, offline):
    with wire_server() as wire:
        env = {"AZURE_OPENAI_ENDPOINT": wire.url, "AZURE_OPENAI_API_KEY": KEY}
        train(repository, "-o", "model.backend=azure_openai", env=env)
        assert all(entry.path.startswith("/openai/deployments/") for entry in wire.log())
    assert same(repository, offline)


@pytest.mark.slow
def test_a_key_that_is_refused_ends_the_run_with_a_sentence_and_is_not_told(repository):
    with wire_server(faults=Faults(rate=1.0, kinds=("unauthorized",))) as wire:
        ended = train(repository, *openai(wire), env={"PLANTED": KEY}, code=5)
    assert "refused the key (401)" in ended.err
    assert KEY not in ended.out + ended.err


def test_a_key_that_is_not_there_is_named_and_nothing_is_asked(repository):
    with wire_server() as wire:
        ended = train(repository, *openai(wire), code=5)
        assert wire.log() == []
    assert "PLANTED" in ended.err
