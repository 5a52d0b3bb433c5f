from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest
from stand_ins import HANG, first_note, is_alive, noted, write_agent

from skillgit.errors import (
    BackendTimeoutError,
    ConfigError,
    FatalBackendError,
    RetryableBackendError,
    UnusableAnswerError,
)
from skillgit_backends.agent_cli.process import Ended, ProcessLimits, run
from skillgit_backends.agent_cli.workspace import fresh_workspace
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend
from skillgit_backends.codex_exec import CodexExecBackend
from skillgit_backends.copilot_exec import CopilotExecBackend
from skillgit_backends.opencode_exec import OpenCodeExecBackend

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = ProcessLimits(timeout_s=60.0, setting="model.some_timeout_s")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="who is alive is read from /proc")


async def ran(path: str, given: bytes = b"", limits: ProcessLimits = LIMITS) -> tuple[Ended, list[bytes]]:
    lines: list[bytes] = []
    with fresh_workspace() as workspace:
        ended = await run(
            [path],
            workspace,
            {"HOME": str(workspace.home), "TMPDIR": str(workspace.temporary)},
            stdin=given,
            limits=limits,
            take=lines.append,
        )
    return ended, lines


def test_input_goes_in_and_lines_come_out(tmp_path: Path):
    path, _ = write_agent(tmp_path, "sys.stdout.write(sys.stdin.read()); print('end', file=sys.stderr); sys.exit(3)")
    text = b"one\n" + b"x" * 3_000_000 + b"\nlast"
    ended, lines = asyncio.run(ran(path, text))
    assert lines == text.split(b"\n")
    assert ended == Ended(code=3, errors="end")


def test_a_program_that_reads_nothing_is_no_error(tmp_path: Path):
    path, _ = write_agent(tmp_path, "print('done')")
    assert asyncio.run(ran(path, b"x" * 3_000_000)) == (Ended(code=0, errors=""), [b"done"])


def test_only_the_end_of_standard_error_is_kept(tmp_path: Path):
    path, _ = write_agent(tmp_path, "sys.stderr.write('a' * 5_000_000 + 'end')")
    ended, _ = asyncio.run(ran(path))
    assert len(ended.errors) == LIMITS.error_bytes
    assert ended.errors.endswith("end")


def test_too_much_output_ends_it(tmp_path: Path):
    path, _ = write_agent(tmp_path, "while True: print('x' * 1000)")
    with pytest.raises(UnusableAnswerError, match="more than 1 MiB"):
        asyncio.run(ran(path, limits=ProcessLimits(timeout_s=60.0, setting="", output_bytes=1 << 20)))


def test_a_program_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(FatalBackendError, match="cannot be started") as caught:
        asyncio.run(ran(str(tmp_path / "nothing")))
    assert "install it" in caught.value.hint


def test_a_program_that_hangs_is_ended_in_time(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note(); time.sleep(600)")
    with pytest.raises(RetryableBackendError, match="did not end within 1 s") as late:
        asyncio.run(ran(path, limits=ProcessLimits(timeout_s=1.0, setting="model.some_timeout_s")))
    assert late.value.hint == "raise model.some_timeout_s"
    assert not any(is_alive(int(found.stem.rpartition("-")[2])) for found in notes.glob("*.json"))


@linux_only
def test_a_cancelled_call_leaves_no_process(tmp_path: Path):
    path, notes = write_agent(tmp_path, HANG)

    async def cancelled() -> list[int]:
        task = asyncio.create_task(ran(path))
        children = (await first_note(notes, task))["children"]
        assert all(is_alive(number) for number in children)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return children

    assert [number for number in asyncio.run(cancelled()) if is_alive(number)] == []


@linux_only
def test_what_a_program_leaves_behind_is_ended_and_not_waited_for(tmp_path: Path):
    body = HANG.rpartition("time.sleep(600)")[0] + "print('done', flush=True)\n"
    path, notes = write_agent(tmp_path, body)
    ended, lines = asyncio.run(ran(path))
    assert (ended.code, lines) == (0, [b"done"])
    assert [number for number in noted(notes)[0]["children"] if is_alive(number)] == []


def test_a_signal_is_a_negative_code(tmp_path: Path):
    path, _ = write_agent(tmp_path, "os.kill(os.getpid(), 9)")
    assert asyncio.run(ran(path))[0].code == -9


AGENTS = {
    "claude_code_exec": ClaudeCodeExecBackend,
    "codex_exec": CodexExecBackend,
    "copilot_exec": CopilotExecBackend,
    "opencode_exec": OpenCodeExecBackend,
}


@pytest.mark.parametrize("name", AGENTS)
def test_a_start_that_takes_too_long_names_the_limit_of_starts(name, tmp_path):
    path = tmp_path / "agent"
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o755)
    agent = AGENTS[name]({"path": str(path), "start_timeout_s": 0.2, "timeout_s": 500.0})
    with pytest.raises(BackendTimeoutError) as late:
        asyncio.run(agent.probe())
    assert late.value.message == f"{path} --version did not end within 0.2 s"
    assert late.value.hint == f"raise model.{name}_start_timeout_s"


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("key", ["timeout_s", "start_timeout_s"])
def test_a_time_that_is_none_is_refused(name, key):
    with pytest.raises(ConfigError, match=f"model.{name}_{key} is 0"):
        AGENTS[name]({key: 0.0})
