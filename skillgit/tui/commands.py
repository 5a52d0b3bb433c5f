"""Commands that the screens run for the user: as ``skillgit`` itself in a process of its own, and kept in a log.

A training survives the screens that started it, and is in the log of whatever screens are opened later.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skillgit.view.catalogue import RENAMED, current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from skillgit.app.workspace.context import Context
    from skillgit.processes import DetachedCommand

_READING: Final = frozenset(
    {
        *("backends", "blame", "completion", "config", "cost", "data", "diff", "envs", "events", "help", "items"),
        *("lint", "log", "matrix", "rev-parse", "runs", "scan", "show", "sql", "status", "why"),
        *(name for name, entry in RENAMED.items() if entry.module),
    }
)
"""Commands that change nothing and pay nobody; every other one asks first."""
_PAYING: Final = frozenset(
    {
        *("ablate", "bisect", "cherry-pick", "compress", "doctor", "eval", "gate", "merge", "prune", "restore"),
        *("retry", "revert", "tasks", "train", "verify"),
    }
)
"""Commands that may call models."""
_CHANGES: Final = {
    **dict.fromkeys(_PAYING - {"restore"}, "It may call models, which may cost money."),
    **dict.fromkeys(("clone", "export", "init", "report"), "It writes files."),
    **dict.fromkeys(("install", "uninstall"), "It writes files where an agent looks for skills."),
    "train": "It may call models, which may cost money. It goes on when the screens are closed; L watches it.",
    "checkout": "It changes files in the work tree.",
    "note": "It goes into the history, and later steps read it.",
    "pull": "It changes refs of this repository by those of another one.",
    "push": "It sends runs to another repository.",
    "reindex": "It makes the index again, which may take a while.",
}
"""What commands may change, where that is not refs of this repository only."""
_ARGUMENTS: Final = ("-m", "skillgit")  # what makes Python this program
_MOST: Final = 5_000  # lines of output that are kept of one command
_LOOKS_EVERY: Final = 0.3  # seconds between two looks at what a training prints


@dataclass(slots=True, kw_only=True)
class Ran:
    """A command, without ``skillgit``, that was run, or that runs as long as it has no exit code."""

    argv: tuple[str, ...]
    began: datetime | None = None
    output: list[str] = field(default_factory=list)
    code: int | None = None
    training: DetachedCommand | None = None  # its process if it trains, which is not stopped with the screens

    @property
    def line(self) -> str:
        return shlex.join(("skillgit", *self.argv))

    @property
    def last(self) -> str:
        """The last line that says something; of a command that failed, the error with its hint."""
        lines = [line for line in self.output if line.strip()]
        if self.code:
            wrong = [line for line in lines if line.startswith(("skillgit: ", "hint: "))]
            return "\n".join(wrong or lines[:1])
        return lines[-1] if lines else ""

    def state(self, now: datetime) -> str:
        """Return for how many seconds it has run, or what it exited with if that is not 0."""
        if self.code is None:
            seconds = 0 if self.began is None else max(0, int((now - self.began).total_seconds()))
            return f"runs, {seconds} s"
        return f"exit {self.code}" if self.code else ""


def asks(argv: Sequence[str]) -> str:
    """Return what a command may change, for the question before it is run; empty for one that only reads."""
    argv, _ = current(argv)
    verb = argv[0] if argv else ""
    if verb in _READING or {"-h", "--help", "-n", "--dry-run"} & set(argv):
        return ""
    if verb == "fsck":
        return "It may repair history." if "--repair" in argv else ""
    return _CHANGES.get(verb, "It changes refs of this repository.")


def plan_of(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command that plans as JSON what ``argv`` would cost; empty for a command that pays nobody."""
    argv, _ = current(argv)
    pays = bool(argv) and argv[0] in _PAYING and (argv[0] != "restore" or "--gate" in argv)
    return (*argv, "--dry-run", "--json") if pays else ()


def told_plan(ran: Ran) -> str:
    """Return what a plan that was asked for by :func:`plan_of` says; where there is none, what is wrong."""
    text = "\n".join(ran.output)
    try:
        plan = json.loads(text[max(text.find("{"), 0) :]) if ran.code == 0 else {}
    except ValueError:
        plan = {}
    return "\n".join((plan["sentence"], *plan["notes"])) if "sentence" in plan else ran.last


async def run(context: Context, ran: Ran, on_line: Callable[[], None]) -> None:
    """Run a command to its end; whoever stops waiting stops it, unless it trains."""
    ran.began = context.clock()
    if ran.argv and current(ran.argv)[0][0] == "train" and asks(ran.argv):
        from skillgit.app.train.trainers import start_training  # noqa: PLC0415 - few sessions train

        ran.training = start_training(context, ran.argv, options=("--no-pager",))
        await follow(ran, on_line)
        return
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
                on_line()
        ran.code = await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            ran.code = await process.wait()


async def follow(ran: Ran, on_line: Callable[[], None]) -> None:
    """Keep up with what a training prints until it ends."""
    training = ran.training
    while training is not None and ran.code is None:
        code = training.code  # before the output is read, so that none of it is missed
        output, errors = training.output()
        lines = (errors + output).decode(errors="replace").splitlines()[-_MOST:]
        if lines != ran.output or code is not None:
            ran.output[:], ran.code = lines, code
            on_line()
        if code is None:
            await asyncio.sleep(_LOOKS_EVERY)


def adopted(log: Iterable[Ran], trainings: Iterable[DetachedCommand]) -> list[Ran]:
    """Return those of ``trainings`` that are not in the log yet."""
    ids = {ran.training.id for ran in log if ran.training is not None}
    return [Ran(argv=entry.words, began=entry.began, training=entry) for entry in trainings if entry.id not in ids]
