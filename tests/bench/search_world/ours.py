"""Trainings of skillgit in the world, each a real ``skillgit train`` in a repository of its own."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import measure
from bench.search_world.plugins import LATENCY, WORLD
from bench.search_world.world import World, world_of

RUN = "search"
CONTROLS = measure.sized(5, 1)
"""No-op candidates that are sent through the gate at the end of a run; their calls are not counted."""
CONFIG = "search.yaml"
_HERE = Path(__file__).parent
_SKILLGIT = (sys.executable, "-m", "skillgit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The version best by selection after so many prompt tokens, and its true score on the test items."""

    tokens: int
    selection: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRun:
    """What one search came to.

    Attributes:
        curve: The best versions one after the other, the first one the start.
        tokens: Prompt tokens of target and optimizer.
        calls: Their calls.
        stages: Prompt tokens and calls by stage.
        controls: No-op candidates that went through the gate, and how many of them passed.
        judged: Candidates without a true gain on the selection items, and how many of them were accepted.
        metric_calls: Rollouts that a rival counts as its budget.
    """

    curve: list[Point]
    tokens: int
    calls: int
    stages: dict[str, tuple[int, int]] = field(default_factory=dict)
    controls: tuple[int, int] = (0, 0)
    judged: tuple[int, int] = (0, 0)
    metric_calls: int = 0

    @property
    def score(self) -> float:
        """The true test score of the version that the search ends with."""
        return self.curve[-1].score

    def score_at(self, tokens: float) -> float:
        """Return the true test score of the best version after ``tokens``."""
        return next((point.score for point in reversed(self.curve) if point.tokens <= tokens), self.curve[0].score)


def search(overrides: tuple[str, ...], seed: int, *, controls: int = CONTROLS) -> SearchRun:
    """Train in the world of ``seed``, with settings in the form ``KEY=VALUE``."""
    world = world_of(seed)
    with TemporaryDirectory(dir=_memory()) as name:
        folder = Path(name)
        environment = _prepared(folder, seed)
        result = _trained(folder, (*overrides, f"train.placebo={controls}"), environment)
        [path] = folder.rglob("ledger.db")
        rows = _ledger(path)
        events = _events(folder)
        counted = [row for row in rows if not _is_control(row)]
        placebo = result.get("placebo") or {"n": 0, "accepted": 0}
        return SearchRun(
            curve=_curve(world, folder, events, counted),
            tokens=sum(row.tokens for row in counted),
            calls=sum(row.calls for row in counted),
            stages=_stages(counted),
            controls=(placebo["n"], placebo["accepted"]),
            judged=_judged(world, folder, events),
        )


def wall_s(overrides: tuple[str, ...], seed: int, latency_s: float, width: int) -> float:
    """Return the seconds that a training takes where each call takes ``latency_s``."""
    with TemporaryDirectory(dir=_memory()) as name:
        environment = _prepared(Path(name), seed, latency_s)
        wide = (f"calls.concurrency={width}", f"gradient.analyst_workers={width}")
        began = time.perf_counter()
        _trained(Path(name), (*overrides, *wide), environment)
        return time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class _Row:
    scope: str
    stage: str
    calls: int
    tokens: int


def _prepared(folder: Path, seed: int, latency_s: float = 0.0) -> dict[str, str]:
    """Make a repository with the world's seed skill and a configuration; return the environment to run it in."""
    plugins = _HERE / "plugins.py"
    settings = {
        "env": {"name": f"{plugins}:Desk"},
        "model": {
            "target": "desk",
            "optimizer": "optimizer",
            "target_backend": f"{plugins}:Models",
            "optimizer_backend": f"{plugins}:Models",
        },
        "train": {"num_epochs": 2, "seed": seed},
        # True scores are known; what a run pays for its own report on the test items is no part of a search.
        "evaluation": {"eval_test": False},
    }
    (folder / CONFIG).write_text(json.dumps(settings), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(_HERE.parents[1]), WORLD: str(seed), LATENCY: str(latency_s)}
    _skillgit(folder, ("init", ".", "--env", settings["env"]["name"]), environment)
    return environment


def _trained(folder: Path, overrides: tuple[str, ...], environment: dict[str, str]) -> dict[str, Any]:
    words = [word for override in overrides for word in ("-o", override)]
    command = ("train", CONFIG, "--run", RUN, "--quiet", "--json", *words)
    return dict(json.loads(_skillgit(folder, command, environment)))


def _skillgit(folder: Path, command: tuple[str, ...], environment: dict[str, str]) -> bytes:
    done = subprocess.run((*_SKILLGIT, *command), cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"skillgit {' '.join(command)}: {done.stderr.decode()}")
    return done.stdout


def _ledger(path: Path) -> list[_Row]:
    connection = sqlite3.connect(path)
    try:
        query = "SELECT scope, role, stage, calls, tokens_in FROM reply ORDER BY rowid"
        return [
            _Row(scope.partition("/")[2], f"{role} {stage}", calls, tokens)
            for scope, role, stage, calls, tokens in connection.execute(query)
        ]
    finally:
        connection.close()


def _is_control(row: _Row) -> bool:
    return row.scope == "finish" and row.stage == "target selection"


def _stages(rows: list[_Row]) -> dict[str, tuple[int, int]]:
    """Return prompt tokens and calls by stage; the baseline is the selection of the start."""
    stages = dict[str, tuple[int, int]]()
    for row in rows:
        name = "target baseline" if (row.scope, row.stage) == ("start", "target selection") else row.stage
        name = f"{name} (end of epoch)" if row.scope.startswith("slow") and name == "target selection" else name
        tokens, calls = stages.get(name, (0, 0))
        stages[name] = (tokens + row.tokens, calls + row.calls)
    return stages


def _events(folder: Path) -> list[dict[str, Any]]:
    shown = _output(folder, *_SKILLGIT, "log", "--json", RUN)
    return list(json.loads(shown)["events"])


def _curve(world: World, folder: Path, events: list[dict[str, Any]], rows: list[_Row]) -> list[Point]:
    tokens, after = 0, dict[str, int]()
    for scope in dict.fromkeys(row.scope for row in rows):
        tokens += sum(row.tokens for row in rows if row.scope == scope)
        after[scope] = tokens
    points = list[Point]()
    versions = [event for event in events if event["version"] is not None and event["score"] is not None]
    for event in sorted(versions, key=lambda event: event["version"]):
        if not points or event["score"] > points[-1].selection:
            score = world.score(_text(folder, event["commit"]), "test")
            points.append(Point(tokens=after[_scope(event)], selection=event["score"], score=score))
    return points


def _scope(event: dict[str, Any]) -> str:
    if not event["step"]:
        return "start"
    return f"slow-{event['epoch']}" if event["kind"].startswith("slow") else f"step-{event['step']}"


def _judged(world: World, folder: Path, events: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many candidates had no true gain, and how many of them passed."""
    texts = {event["version"]: _text(folder, event["commit"]) for event in events if event["version"] is not None}
    scores = {version: world.score(text, "selection") for version, text in texts.items()}
    idle = accepted = 0
    # Refused guidance is on a line of its own, whose texts say nothing of the version that it was tried on.
    for event in (event for event in events if event["decision"] and event["kind"] != "slow-proposed"):
        is_accepted = event["version"] is not None
        base = event["version"] - 1 if is_accepted else event["base"]
        if world.score(_text(folder, event["commit"]), "selection") <= scores[base] + 1e-9:
            idle, accepted = idle + 1, accepted + is_accepted
    return idle, accepted


def _text(folder: Path, commit: str) -> str:
    [path] = [
        name for name in _output(folder, "git", "ls-tree", "-r", "--name-only", commit).split() if "SKILL.md" in name
    ]
    return _output(folder, "git", "show", f"{commit}:{path}")


def _output(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout


def _memory() -> str | None:
    """Return a folder in memory, where thousands of small files cost no waiting; None if there is none."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a folder of our own is made in it
