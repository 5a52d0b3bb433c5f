"""What is checked before a run spends anything, and roles with settings of their own, through real HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from program import QUICK, git, new_repository, refs, skillgit

from wire import Faults, wire_server

if TYPE_CHECKING:
    from pathlib import Path

    from wire import Entry, Wire

QUESTION = "Reply with OK."
KEYS = {"TARGET_KEY": "sk-target-0123456789abcdef", "OPTIMIZER_KEY": "sk-optimizer-0123456789abcdef"}
CLEAN = dict.fromkeys(("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"), "")
SHORT = (*QUICK, "-o", "train.num_epochs=1", "-o", "evaluation.sel_env_num=8", "-o", "evaluation.test_env_num=2")


def apart(target: Wire, optimizer: Wire) -> tuple[str, ...]:
    """Return overrides by which each role has a backend, an address and a key of its own."""
    keys = {
        "target_backend": "openai_chat",
        "target_base_url": f"{target.url}/v1",
        "target_api_key_env": "TARGET_KEY",
        "optimizer_backend": "openai_chat",
        "optimizer_base_url": f"{optimizer.url}/v1",
        "optimizer_api_key_env": "OPTIMIZER_KEY",
    }
    return tuple(word for key, value in keys.items() for word in ("-o", f"model.{key}={value}"))


def train(repository: Path, *options: str, code: int = 0, env: dict[str, str] | None = None):
    surroundings = CLEAN | KEYS | (env or {})
    names = ("-o", "model.target=reader", "-o", "model.optimizer=analyst")
    return skillgit(
        "train", "demo", "--run", "demo", *SHORT, *names, *options, cwd=repository, env=surroundings, code=code
    )


def asked(wire: Wire) -> list[Entry]:
    return [entry for entry in wire.log() if entry.dialect != "models"]


def tiny(wire: Wire) -> list[Entry]:
    return [entry for entry in asked(wire) if entry.document["messages"][-1]["content"] == QUESTION]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


@pytest.mark.slow
def test_each_role_has_its_own_server_and_key_and_is_asked_once_before_a_run(repository):
    with wire_server(keep=True) as one, wire_server(keep=True) as other:
        # The first try ends right after the preflight: whatever comes behind it in the baseline is refused.
        one.change(faults=Faults(rate=1, after=1, kinds=("unauthorized",), row=10**6))
        train(repository, *apart(one, other), "-o", "calls.concurrency=1", code=5)
        assert [len(tiny(wire)) for wire in (one, other)] == [1, 1]
        assert "refs/heads/run/demo" not in refs(repository)
        one.change(faults=Faults())
        train(repository, *apart(one, other))
        assert [len(tiny(wire)) for wire in (one, other)] == [1, 1], "it is in the ledger"
        for wire, role, key in ((one, "target", "TARGET_KEY"), (other, "optimizer", "OPTIMIZER_KEY")):
            assert {entry.role for entry in asked(wire)} == {role}
            assert {entry.headers["authorization"] for entry in asked(wire)} == {f"Bearer {KEYS[key]}"}
        count = len(asked(one)) + len(asked(other))
        skillgit("eval", "demo/v0", "--split", "selection", cwd=repository, env=CLEAN | KEYS)
        assert len(asked(one)) + len(asked(other)) == count, "what was measured is measured again without a call"
    first = git("log", "--format=%(trailers:key=Skillgit-Cost,valueonly)", "--reverse", "run/demo", cwd=repository).out
    assert "calls=10 " in next(line for line in first.splitlines() if line), "8 selection items and 2 tiny calls"


def test_a_refusal_ends_before_anything_is_spent_or_written(repository):
    before = refs(repository)
    with wire_server(keep=True) as one, wire_server(keep=True) as other:
        other.change(faults=Faults(rate=1, kinds=("unknown_model",), row=10**6))
        ended = train(repository, *apart(one, other), code=5)
        assert [len(asked(wire)) for wire in (one, other)] == [1, 1]
    assert "does not exist" in ended.err
    assert refs(repository) == before


def test_a_missing_key_of_one_role_keeps_the_other_from_being_asked(repository):
    with wire_server() as one, wire_server() as other:
        ended = train(repository, *apart(one, other), env={"OPTIMIZER_KEY": ""}, code=5)
        assert asked(one) == asked(other) == []
    assert "OPTIMIZER_KEY" in ended.err


def test_a_prompt_that_cannot_fit_is_refused_after_the_tiny_calls_and_one_that_hardly_fits_is_told(repository):
    with wire_server(keep=True) as one, wire_server(keep=True) as other:
        ended = train(repository, *apart(one, other), "-o", "model.context_window={reader: 100}", code=2)
        assert [len(asked(wire)) for wire in (one, other)] == [len(tiny(wire)) for wire in (one, other)] == [1, 1]
        assert "openai_chat/reader takes 100" in ended.err
        assert "model.context_window" in ended.err
        one.change(faults=Faults(rate=1, after=1, kinds=("unauthorized",), row=10**6))
        told = train(repository, *apart(one, other), "-o", "model.context_window={reader: 16500}", code=5)
        assert "some calls may be refused" in told.err
        assert "calls, about" in told.err, "the plan, once the models have answered"


def test_it_can_be_switched_off_and_a_backend_on_this_machine_needs_none(repository):
    off = ("-o", "train.preflight=false")
    with wire_server(keep=True) as one, wire_server(keep=True) as other:
        one.change(faults=Faults(rate=1, kinds=("unauthorized",), row=10**6))
        train(repository, *apart(one, other), *off, code=5)
        assert tiny(one) == tiny(other) == asked(other) == []


def test_a_cap_that_does_not_pay_for_baseline_step_and_tiny_calls_is_refused(repository):
    with wire_server() as one, wire_server() as other:
        ended = train(repository, *apart(one, other), "--max-calls", "30", code=2)
        assert asked(one) == asked(other) == []
    assert "--max-calls to 31" in ended.err


@pytest.mark.slow
def test_azure_has_variables_for_each_role_as_in_the_reference(repository):
    with wire_server(keep=True) as one, wire_server(keep=True) as other:
        env = {
            "TARGET_AZURE_OPENAI_ENDPOINT": one.url,
            "TARGET_AZURE_OPENAI_API_KEY": "target-key",
            "OPTIMIZER_AZURE_OPENAI_ENDPOINT": other.url,
            "AZURE_OPENAI_API_KEY": "shared-key",
            "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9/not-here",
        }
        train(repository, "-o", "model.backend=azure_openai", env=env)
        for wire, role, key in ((one, "target", "target-key"), (other, "optimizer", "shared-key")):
            assert {entry.role for entry in wire.log()} == {role}
            assert {entry.headers["api-key"] for entry in wire.log()} == {key}
            assert all(entry.path.startswith("/openai/deployments/") for entry in wire.log())


def test_azure_has_configuration_keys_for_each_role_as_in_the_reference(repository):
    with wire_server(keep=True) as one, wire_server(keep=True) as other:
        one.change(faults=Faults(rate=1, after=1, kinds=("unauthorized",), row=10**6))
        keys = (
            "model.backend=azure_openai",
            f"target_azure_openai_endpoint={one.url}",
            f"optimizer_azure_openai_endpoint={other.url}",
            "target_api_key_env=TARGET_KEY",
            "optimizer_api_key_env=OPTIMIZER_KEY",
        )
        train(repository, *(word for key in keys for word in ("-o", key)), code=5)
        assert {entry.headers["api-key"] for entry in asked(one)} == {KEYS["TARGET_KEY"]}
        assert {entry.headers["api-key"] for entry in asked(other)} == {KEYS["OPTIMIZER_KEY"]}
