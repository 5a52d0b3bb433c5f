"""Measure commands against each other in one run: rounds are interleaved, so that a busy moment hits all alike."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Medians over the rounds, in milliseconds."""

    wall_ms: float
    cpu_ms: float


def commands(
    named: Mapping[str, Sequence[str]], *, cwd: Path, rounds: int = 15, env: Mapping[str, str] | None = None
) -> dict[str, Timing]:
    """Run every command once unmeasured, then ``rounds`` times in turn."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in named}
    for number in range(rounds + 1):
        for name, command in named.items():
            sample = _once(command, cwd, {**os.environ, **(env or {})})
            if number:
                taken[name].append(sample)
    return {
        name: Timing(wall_ms=median(wall for wall, _ in samples), cpu_ms=median(cpu for _, cpu in samples))
        for name, samples in taken.items()
    }


def _once(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, cpu * 1000


def report(title: str, rows: Sequence[Sequence[str]], figures: Mapping[str, float]) -> None:
    """Print a table for people and, as the last line, one JSON object for programs."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    sys.stdout.write("\n".join([title, "", *lines, "", json.dumps(figures)]) + "\n")
