"""Commands that the screens run for the user: as ``skillgit`` itself in a process of its own, and kept in a log.

What changes anything survives the screens that started it, and is in the log of every screen and page opened later.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from skillgit.app.workspace.command_journal import command_line, start_command
from skillgit.errors import ConflictError
from skillgit.view.commands import Ran, asks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillgit.app.workspace.command_journal import CommandRecord
    from skillgit.app.workspace.context import Context

_MOST: Final = 5_000  # lines of output that are kept of one command
_LOOKS_EVERY: Final = 0.2  # seconds between two looks at what a command prints


async def run(context: Context, ran: Ran, on_line: Callable[[], None]) -> None:
    """Run a command to its end; whoever stops waiting stops it if it only reads."""
    ran.began = context.clock()
    if asks(ran.argv):
        try:
            ran.record = start_command(context, ran.argv)
        except ConflictError as error:
            ran.output[:], ran.code = [f"skillgit: {error}", f"hint: {error.hint}"], error.exit_code
        await follow(ran, on_line)
        return
    process = await asyncio.create_subprocess_exec(
        *command_line(context, ran.argv),
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
    """Keep up with what a command prints until it ends."""
    while ran.record is not None and ran.code is None:
        record = ran.record = ran.record.now()  # before the output is read, so that none of it is missed
        lines = record.text().splitlines()[-_MOST:]
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
