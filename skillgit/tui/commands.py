"""How a command goes that a screen has started, and what its plan says."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from skillgit.app.workspace.command_journal import TERMINAL, CommandRecord, command_line, start_command
from skillgit.errors import ConflictError
from skillgit.plugin.process_start import whole_start

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context

_PLANNING_S: Final = 120
_MOST: Final = 5_000  # lines of output that are kept of one command
_LOOKS_EVERY: Final = 0.2  # seconds between two looks at what a command prints


@dataclass(slots=True, kw_only=True)
class Ran:
    """A command, without ``skillgit``, that was run, or that runs as long as it has no exit code."""

    argv: tuple[str, ...]
    changes: bool = False  # whether it changes anything; it then survives the screens
    began: datetime | None = None
    output: list[str] = field(default_factory=list)
    code: int | None = None
    record: CommandRecord | None = None  # in the journal, if it changes anything

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
        """Return who ran it on a page, and for how many seconds it has run, or what it exited with if not 0."""
        parts = [self.record.by] if self.record is not None and self.record.by != TERMINAL else []
        if self.code is None:
            seconds = 0 if self.began is None else max(0, int((now - self.began).total_seconds()))
            parts.append(f"runs, {seconds} s")
        elif self.code:
            parts.append(f"exit {self.code}")
        return ", ".join(parts)


def plan_text(context: Context, words: Sequence[str]) -> str:
    """Return what the plan says that the command ``words`` prints as JSON; where there is none, what is wrong."""
    try:
        process = subprocess.run(  # noqa: S603 - skillgit itself, and no shell
            command_line(context, words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(context.environ),
            timeout=_PLANNING_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"There is no plan after {_PLANNING_S} seconds."
    text = process.stdout.decode(errors="replace")
    ran = Ran(argv=tuple(words), output=text.splitlines(), code=process.returncode)
    try:
        plan = json.loads(text[max(text.find("{"), 0) :]) if ran.code == 0 else {}
    except ValueError:
        plan = {}
    return "\n".join((plan["sentence"], *plan["notes"])) if "sentence" in plan else ran.last


async def run(context: Context, ran: Ran, on_line: Callable[[], None]) -> None:
    """Run a command to its end; a caller that stops waiting stops it if it only reads."""
    ran.began = context.clock()
    if ran.changes:
        try:
            ran.record = start_command(context, ran.argv)
        except ConflictError as error:
            ran.output[:], ran.code = [f"skillgit: {error}", f"hint: {error.hint}"], error.exit_code
        await follow(ran, on_line)
        return
    process = await whole_start(
        asyncio.create_subprocess_exec(
            *command_line(context, ran.argv),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(context.environ),
        )
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
    """Keep up with what a command prints until it ends."""
    while ran.record is not None and ran.code is None:
        record = ran.record = ran.record.now()  # before the output is read, so that none of it is missed
        lines = (await asyncio.to_thread(record.text)).splitlines()[-_MOST:]
        if lines != ran.output or not record.runs:
            ran.output[:], ran.code = lines, record.code
            on_line()
        if record.runs:
            await asyncio.sleep(_LOOKS_EVERY)


def adopted(log: Iterable[Ran], records: Sequence[CommandRecord]) -> list[Ran]:
    """Return those of ``records`` that are not in the log yet, the oldest first."""
    ids = {ran.record.id for ran in log if ran.record is not None}
    unknown = (record for record in reversed(records) if record.id not in ids)
    return [Ran(argv=record.words, began=record.time, record=record) for record in unknown]
