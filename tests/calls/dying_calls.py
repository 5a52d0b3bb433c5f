"""A run that is killed at a given line of the calls layer, again and again, and resumed.

Called with a folder; forks a process for every kill, so that nothing of a killed one survives but its files. Prints one
JSON object per kill for the test to look at.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scripted import chance

import skillgit.calls
from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps, Cost
from skillgit.plugin.backend import BackendInfo, Price, Reply, Request, Usage, user

if TYPE_CHECKING:
    from types import FrameType

CALLS_LAYER = str(Path(skillgit.calls.__file__).parent)
EVENTS = (("a", "b", "c", "k1", "k2"), ("b", "d", "k2", "k3"), ("e", "k1", "k4"))
QUESTIONS = {"k1": ("p", "q"), "k2": ("q", "r"), "k3": ("s", "a"), "k4": ("s", "t")}
FRESH_CALLS = len("abcde") + len("pqrst")
CONCURRENCY = 3


def note(path: Path, line: str) -> None:
    """Append a line, whole or not at all as far as this process can be killed."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


class Sluggish:
    """A backend that lets others go first and never says the same twice."""

    info = BackendInfo(name="sluggish", summary="", needs_network=False)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def complete(self, request: Request) -> Reply:
        question = request.messages[0].text
        for _ in range(1 + ord(question) % 4):
            await asyncio.sleep(0)
        note(self.folder / "paid", question)
        usage = Usage(tokens_in=ord(question), tokens_out=ord(question) % 7)
        return Reply(text=f"{question} from {os.getpid()}", usage=usage)

    async def aclose(self) -> None:
        return None


async def train(folder: Path) -> None:
    backend = Sluggish(folder)
    price = Price(usd_in=0.7, usd_out=3.1)
    route = Route(backend=backend, backend_name="b", model="m", price=price, concurrency=CONCURRENCY)
    with Ledger.open(folder / "ledger.db") as ledger:
        calls = Calls(
            routes={"target": route}, ledger=ledger, caps=Caps(max_usd=1.0), sleep=asyncio.sleep, random=chance(0)
        )

        async def say(question: str) -> str:
            reply = await calls.call("target", "rollout", [user(question)], draw=("place", question))
            note(folder / "seen", reply.text)
            return reply.text

        async def outcome(key: str) -> None:
            async def produce() -> tuple[object, bool]:
                return await asyncio.gather(*map(say, QUESTIONS[key])), True

            note(folder / "seen", json.dumps([key, await calls.rollout(key, produce)]))

        done = [json.loads(line) for line in lines(folder / "events")]
        for number, work in enumerate(EVENTS[len(done) :], len(done)):
            calls.enter(f"run/{number}", sum((Cost(**event) for event in done), Cost()))
            await asyncio.gather(*(outcome(name) if name in QUESTIONS else say(name) for name in work))
            total = calls.meter.total()
            done.append({name: getattr(total, name) for name in Cost.__slots__})
            note(folder / "events", json.dumps(done[-1]))


def forked(folder: Path, kill_at: int) -> int:
    """Train in a process of its own that dies at its line number ``kill_at``; 0 lets it live. Return its exit code."""
    child = os.fork()
    if child == 0:
        count = 0

        def trace(frame: FrameType, event: str, _: object) -> object:
            nonlocal count
            if not frame.f_code.co_filename.startswith(CALLS_LAYER):
                return None
            if event == "line":
                count += 1
                if count == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        asyncio.run(train(folder))
        sys.settrace(None)
        (folder / "lines").write_text(str(count))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def recorded(folder: Path) -> dict[str, list[str]]:
    """Return the texts of the replies and the outcomes that a second connection reads."""
    connection = sqlite3.connect(folder / "ledger.db")
    try:
        replies = [json.loads(row[0])["text"] for row in connection.execute("SELECT reply FROM reply")]
        rollouts = [
            json.dumps([key, json.loads(value)]) for key, value in connection.execute("SELECT key, value FROM rollout")
        ]
    except sqlite3.OperationalError:  # killed before the tables were made
        replies, rollouts = [], []
    finally:
        connection.close()
    return {"replies": replies, "rollouts": rollouts}


def main(root: Path, kills: int) -> None:
    unbroken = root / "unbroken"
    unbroken.mkdir()
    assert forked(unbroken, 0) == 0
    total = int((unbroken / "lines").read_text())
    for number in range(kills):
        kill_at = 1 + number * total // kills
        folder = root / str(kill_at)
        folder.mkdir()
        code = forked(folder, kill_at)
        before = {"seen": lines(folder / "seen"), "paid": lines(folder / "paid"), **recorded(folder)}
        resumed = forked(folder, 0)
        report = {
            "codes": [code, resumed],
            "before": before,
            "after": {"seen": lines(folder / "seen"), "paid": lines(folder / "paid"), **recorded(folder)},
            "events": lines(folder / "events"),
            "unbroken": lines(unbroken / "events"),
        }
        sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
