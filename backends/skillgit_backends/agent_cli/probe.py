"""Owns the look at an agent's program before it is used: which version it is, and whether someone is logged in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit_backends.agent_cli.process import ProcessLimits, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit_backends.agent_cli.workspace import CallWorkspace

LIMITS = ProcessLimits(timeout_s=30.0, output_bytes=1 << 20)
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


async def ask(command: Sequence[str], workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[int, str]:
    """Return the exit code and the standard output of a short command.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    lines: list[str] = []
    result = await run(
        command,
        stdin=b"",
        folder=workspace.work,
        root=workspace.root,
        environment=environment,
        limits=LIMITS,
        take=lambda line: lines.append(line.decode(errors="replace")),
    )
    return result.code, "\n".join(lines)


async def version(path: str, workspace: CallWorkspace, environment: Mapping[str, str]) -> str:
    """Return the version that the program at ``path`` tells; empty if it tells none.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    code, output = await ask([path, "--version"], workspace, environment)
    match = _VERSION.search(output)
    return match.group() if match and code == 0 else ""
