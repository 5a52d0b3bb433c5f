"""Batches whose process is killed, in a state or at a line of the batch lane, and that the next process goes on with.

Called with a folder, the address of a server, a backend and what kills: names of ``STATES``, or a number of lines.
Forks a process for every kill, so that nothing of a killed one survives but its files. Prints one JSON object per kill.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdk_calls import ask, opened

from skillgit.calls import batch, ledger
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.plugin.backend import Price

if TYPE_CHECKING:
    from types import FrameType

CALLS = 6
STATES = {
    "before the intent": (Ledger, "intend_batch", "before", 1),
    "after the intent": (Ledger, "intend_batch", "after", 1),
    "before the ticket": (Ledger, "batch_sent", "before", 1),
    "after the ticket": (Ledger, "batch_sent", "after", 1),
    "half of the replies": (Ledger, "record_reply", "after", CALLS // 2),
    "before the end": (Ledger, "forget_batched", "before", 1),
    "after the end": (Ledger, "forget_batched", "after", 1),
}


async def train(folder: Path, url: str, backend: str) -> None:
    batch.QUIET_S = 0.02
    price = Price(usd_in=2.0, usd_out=8.0)

    async def nap(_: float) -> None:
        await asyncio.sleep(0.01)

    keeping = {"ledger": folder / "ledger.db", "caps": Caps(max_usd=1.0), "sleep": nap}
    async with opened(url, folder, backend=backend, price=price, batch=True, **keeping) as calls:
        replies = await asyncio.gather(*(ask(calls, f"{folder.name} {number}") for number in range(CALLS)))
        cost = calls.meter.total()
    (folder / "end").write_text(json.dumps({"replies": replies, "calls": cost.calls, "usd": cost.usd}))


def forked(folder: Path, url: str, backend: str, kill: str | int = 0) -> int:
    """Train in a process of its own that dies as ``kill`` says; 0 lets it live. Return its exit code."""
    child = os.fork()
    if child == 0:
        count = die_in(kill) if isinstance(kill, str) else die_at(kill)
        try:
            asyncio.run(train(folder, url, backend))
            sys.settrace(None)
            (folder / "lines").write_text(str(count[0]))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die_in(state: str) -> list[int]:
    owner, name, moment, times = STATES[state]
    original, count = getattr(owner, name), [0]

    def dying(*arguments: Any) -> Any:
        count[0] += 1
        if moment == "before" and count[0] == times:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments)
        if count[0] == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)
    return count


def die_at(line: int) -> list[int]:
    count = [0]

    def trace(frame: FrameType, event: str, _: object) -> object:
        if frame.f_code.co_filename not in {batch.__file__, ledger.__file__}:
            return None
        count[0] += event == "line"
        if event == "line" and count[0] == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    return count


def main(root: Path, url: str, backend: str, kills: list[str]) -> None:
    moments: list[str | int] = list(kills)
    if kills[0].isdecimal():
        unbroken = root / "unbroken"
        unbroken.mkdir()
        assert forked(unbroken, url, backend) == 0
        total, number = int((unbroken / "lines").read_text()), int(kills[0])
        moments = [1 + index * total // number for index in range(number)]
    for moment in moments:
        folder = root / str(moment).replace(" ", "-")
        folder.mkdir()
        codes = [forked(folder, url, backend, moment), forked(folder, url, backend)]
        report = {"name": folder.name, "codes": codes, "end": json.loads((folder / "end").read_text())}
        sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    for module in ("aiohttp", "anthropic", "openai"):  # once, and not in every process
        import_module(module)
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
