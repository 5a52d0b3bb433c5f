"""Commands that the screens run for the user, as ``skillgit`` itself in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.workspace.context import Context
    from skillgit.view.commands import Ran

_ARGUMENTS: Final = ("-m", "skillgit")  # what makes Python this program
_MOST: Final = 5_000  # lines of output that are kept of one command


async def run(context: Context, ran: Ran, on_line: Callable[[], None]) -> None:
    ran.began = context.clock()
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
