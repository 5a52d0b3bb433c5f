"""Commands that the screens run for the user: as ``skillgit`` itself in a process of its own, and kept in a log."""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.app.context import Context

_READING: Final = frozenset(
    {
        *("backends", "best", "blame", "cat", "completion", "config", "cost", "data", "diff", "envs", "events", "help"),
        *("items", "log", "matrix", "rev-parse", "runs", "show", "sql", "status", "trailers", "version", "why"),
    }
)
"""Commands that change nothing and pay nobody; every other one asks first."""
_PAYING: Final = frozenset({"ablate", "bisect", "eval", "resurrect", "retest", "tasks", "train", "verify"})
_ARGUMENTS: Final = ("-m", "skillgit")
"""What makes Python this program."""
_MOST: Final = 5_000
"""Lines of output that are kept of one command."""


@dataclass(slots=True, kw_only=True)
class Ran:
    """A command that was run, or still runs.

    Attributes:
        argv: The command without ``skillgit``.
        output: The lines that it printed, newest last.
        code: Its exit code; absent while it runs.
    """

    argv: tuple[str, ...]
    output: list[str] = field(default_factory=list)
    code: int | None = None

    @property
    def line(self) -> str:
        """What one would type."""
        return shlex.join(("skillgit", *self.argv))

    @property
    def last(self) -> str:
        """The last line that says something; of a command that failed, the first one, which names the error."""
        said = [line for line in self.output if line.strip()]
        return "" if not said else said[0] if self.code else said[-1]


def asks(argv: Sequence[str]) -> str:
    """Return what a command may change, for the question before it is run; empty for one that only reads."""
    verb = argv[0] if argv else ""
    if verb in _READING or {"-h", "--help"} & set(argv) or (verb != "fsck" and {"-n", "--dry-run"} & set(argv)):
        return ""
    if verb == "fsck":
        return "It may repair history." if "--repair" in argv else ""
    if verb == "checkout":
        return "It changes files in the work tree."
    return "It may call models, which may cost money." if verb in _PAYING else "It changes refs of this repository."


async def run(context: Context, ran: Ran, told: Callable[[], None]) -> None:
    """Run a command to its end.

    Args:
        context: Where to run it.
        ran: The command; its output and exit code are added to it.
        told: Is called after each line.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *_ARGUMENTS, "-C", str(context.directory), "--no-pager", *ran.argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(context.environ),
    )
    try:
        if process.stdout is not None:
            while line := await process.stdout.readline():
                ran.output.append(line.decode(errors="replace").rstrip("\r\n"))
                del ran.output[:-_MOST]
                told()
        ran.code = await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            ran.code = await process.wait()
