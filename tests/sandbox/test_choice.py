from __future__ import annotations

import asyncio
import shutil

import pytest

from skillgit.errors import ConfigError, EnvironmentFaultError, SandboxError, UsageError
from skillgit.sandbox import Mode, Sandbox, option, sandbox, syscalls
from skillgit.sandbox.launcher import confinement


@pytest.fixture(autouse=True)
def _tried_anew():
    sandbox._tried.cache_clear()
    yield
    sandbox._tried.cache_clear()


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _, **_path: None)


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "landlock_version", lambda: 0)


def test_the_words_of_the_configuration_are_the_modes():
    assert [Mode(word) for word in ("auto", "bubblewrap", "landlock", "none")] == list(Mode)


@pytest.mark.usefixtures("no_bubblewrap", "no_landlock")
def test_a_machine_without_isolation_refuses_unless_told_otherwise():
    with pytest.raises(SandboxError, match="bubblewrap is not installed; the kernel's Landlock") as caught:
        Sandbox(Mode.AUTO)
    assert isinstance(caught.value, UsageError)
    assert "env.sandbox: none" in caught.value.hint
    assert Sandbox(Mode.NONE).kind is Mode.NONE


@pytest.mark.usefixtures("no_bubblewrap")
def test_a_way_that_was_asked_for_is_not_replaced_by_another():
    with pytest.raises(SandboxError, match="bubblewrap is not installed"):
        Sandbox(Mode.BUBBLEWRAP)


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_bubblewrap_the_kernel_isolates():
    try:
        assert Sandbox().kind is Mode.LANDLOCK
    except SandboxError as error:
        pytest.skip(error.message)


def test_a_bubblewrap_that_does_not_work_is_no_bubblewrap(tmp_path, monkeypatch):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permission to make namespaces' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _, **_path: str(broken))
    with pytest.raises(SandboxError, match="no permission to make namespaces"):
        Sandbox(Mode.BUBBLEWRAP)


def test_a_sandbox_can_be_made_within_an_event_loop():
    async def main() -> str:
        return Sandbox(Mode.NONE).explain()

    assert asyncio.run(main())


def test_a_processor_whose_calls_are_unknown_is_refused(monkeypatch):
    monkeypatch.setattr(syscalls, "PROCESSORS", {})
    syscalls.seccomp_filter.cache_clear()
    with pytest.raises(SandboxError, match="no list of system calls for the processor"):
        syscalls.seccomp_filter(unix_sockets=False, foreign_files=False, foreign_processes=False)


def test_a_launcher_that_dies_is_the_fault_of_the_machine(monkeypatch):
    box = Sandbox(Mode.NONE)
    monkeypatch.setattr("skillgit.sandbox.mechanisms._START", "import sys; sys.exit('no luck')")
    with pytest.raises(EnvironmentFaultError, match="did not start: no luck"):
        asyncio.run(box.run(box.python_job("print(1)")))


def test_each_way_says_what_it_does():
    for mode in (Mode.BUBBLEWRAP, Mode.LANDLOCK, Mode.NONE):
        try:
            said = Sandbox(mode).explain()
        except SandboxError:
            continue
        assert said.startswith("model-written code runs ")
        assert not said.endswith(".")


def test_the_option_of_environments_names_a_mode():
    assert option.OPTION.default == "auto"
    assert option.chosen("none").kind is Mode.NONE
    with pytest.raises(
        ConfigError, match=r"env\.sandbox is 'docker'; it must be one of auto, bubblewrap, landlock, none"
    ):
        option.chosen("docker")
