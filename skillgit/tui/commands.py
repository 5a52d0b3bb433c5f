"""Commands that the screens run for the user: as ``skillgit`` itself in a process of its own, and kept in a log.

A training survives the screens that started it, and is in the log of whatever screens are opened later.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from skillgit.view.catalogue import current
from skillgit.view.commands import Ran, asks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillgit.app.workspace.context import Context
    from skillgit.processes import DetachedCommand

_ARGUMENTS: Final = ("-m", "skillgit")  # what makes Python this program
_MOST: Final = 5_000  # lines of output that are kept of one command
_LOOKS_EVERY: Final = 0.3  # seconds between two looks at what a training prints


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
