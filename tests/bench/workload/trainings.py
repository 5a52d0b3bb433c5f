"""Owns the real thing: ``skillgit train`` against the model server, each time in a new repository."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import measure
from bench.workload import items, processes

if TYPE_CHECKING:
    from bench.workload.processes import Cost
    from wire import Wire

SKILLGIT = str(Path(sys.executable).with_name("skillgit"))
RUN = "bench"
ROLES = {"reader": "target", "analyst": "optimizer"}
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a recorded training.

    Attributes:
        scope: The event in the making that paid for it, without the run: ``start``, ``step-2``, ``slow-2``, ``finish``.
        role: ``target`` or ``optimizer``.
        stage: What for.
        document: The request's body.
        text: The reply.
    """

    scope: str
    role: str
    stage: str
    document: dict[str, Any]
    text: str

    @property
    def system(self) -> str:
        """The system prompt; of a target, it tells the skill."""
        return str(self.document["messages"][0]["content"])

    @property
    def user(self) -> str:
        """The user prompt; of a target, it tells the item."""
        return str(self.document["messages"][1]["content"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A training, one call after the other.

    Attributes:
        calls: In the order in which they were made.
        accepted: The scopes whose candidate became a version.
        measured: The scopes that had a candidate.
        items: The items of each split.
    """

    calls: tuple[Call, ...]
    accepted: frozenset[str]
    measured: frozenset[str]
    items: dict[str, list[dict[str, Any]]]


class Trainings:
    """Trains on the same items again and again.

    Args:
        folder: Where to work.
        wire: The server.
    """

    def __init__(self, folder: Path, wire: Wire) -> None:
        self._folder = folder
        self._wire = wire
        self._seed, self._repository = folder / "seed", folder / "repository"
        items.write(folder / "items")
        command = [SKILLGIT, "init", str(self._seed), "--env", "searchqa"]
        subprocess.run(command, cwd=folder, capture_output=True, check=True)

    def run(self, *, width: int, epochs: int) -> Cost:
        """Train once; ``width`` is what ``calls.concurrency`` is set to."""
        return processes.measured(self._command(width, epochs), cwd=self._new_repository())

    def record(self, *, epochs: int) -> Recording:
        """Train once without latency, one call at a time, and tell what was asked for what."""
        self._wire.clear()
        self._wire.change(keep=True)
        self.run(width=1, epochs=epochs)
        log = [entry for entry in self._wire.log() if entry.role]
        self._wire.change(keep=False)
        self._wire.clear()
        asked = {role: iter([entry for entry in log if entry.role == role]) for role in ROLES.values()}
        calls = []
        for scope, role, stage, tokens, reply in self._ledger():
            entry = next(asked[role])
            if entry.tokens_in != tokens:
                raise RuntimeError("the ledger and the server's log tell of different calls")
            text = json.loads(reply)["text"]
            place = scope.partition("/")[2]
            calls.append(Call(scope=place, role=role, stage=stage, document=entry.document, text=text))
        if len(calls) != len(log):
            raise RuntimeError(f"the ledger has {len(calls)} calls, the server's log {len(log)}")
        shown = [SKILLGIT, "log", "--json", RUN]
        done = subprocess.run(shown, cwd=self._repository, capture_output=True, check=True)
        events = [event for event in json.loads(done.stdout)["events"] if event["decision"]]
        accepted = frozenset(_scope(event) for event in events if "accept" in event["decision"])
        splits = {
            split: json.loads((self._folder / "items" / split / "items.json").read_text()) for split in items.SIZES
        }
        return Recording(calls=tuple(calls), accepted=accepted, measured=frozenset(map(_scope, events)), items=splits)

    def start(self) -> float:
        """Return the seconds of CPU from the start of a training to its first request."""
        self._wire.clear()
        self._wire.change(latency=PATIENCE_S)
        process = processes.started(self._command(1, 2), self._new_repository(), {}, subprocess.DEVNULL)
        try:
            until = time.monotonic() + PATIENCE_S
            while not self._wire.log() and time.monotonic() < until and process.poll() is None:
                time.sleep(0.002)
            return processes.cpu_of(process)
        finally:
            process.kill()
            process.wait()
            self._wire.change(latency=0.0)

    def _new_repository(self) -> Path:
        shutil.rmtree(self._repository, ignore_errors=True)
        shutil.copytree(self._seed, self._repository, symlinks=True)
        return self._repository

    def _ledger(self) -> list[tuple[str, str, str, int, str]]:
        (path,) = self._repository.rglob("ledger.db")
        connection = sqlite3.connect(path)
        try:
            query = "SELECT scope, role, stage, tokens_in, reply FROM reply ORDER BY rowid"
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def _command(self, width: int, epochs: int) -> list[str]:
        settings = {
            "train.num_epochs": epochs,
            "train.stop_at_ceiling": "false",
            "model.target_backend": "openai_compatible",
            "model.optimizer_backend": "openai_compatible",
            "model.target": "reader",
            "model.optimizer": "analyst",
            "model.openai_compatible_base_url": f"{self._wire.url}/v1",
            "calls.concurrency": width,
            "env.split_mode": "split_dir",
            "env.split_dir": self._folder / "items",
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        options += [word for change in measure.values_of("skillopt") for word in ("-o", change)]
        return [SKILLGIT, "train", "searchqa/default", "--run", RUN, *options]


def _scope(event: dict[str, Any]) -> str:
    return f"slow-{event['epoch']}" if event["kind"].startswith("slow") else f"step-{event['step']}"
