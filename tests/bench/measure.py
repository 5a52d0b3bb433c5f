"""Measure commands against each other in one run: rounds are interleaved, so that a busy moment hits all alike.

With ``BENCH_SIZE=small`` in its environment a benchmark takes the small inputs that it names beside the full ones. It
prints the same keys then, and its figures mean nothing: ``tests/test_benchmarks.py`` runs every benchmark this way, so
that none of them falls behind the source.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")
ROOT = Path(__file__).parents[2]

SIZE, SMALL = "BENCH_SIZE", "small"
"""The variable that says how large the inputs are, and its one value; without it they are as large as documented."""
SKILLGIT = str(Path(sys.executable).with_name("skillgit"))
MISSING = 77
"""Exit code of a benchmark whose packages are not installed."""


def sized(full: T, small: T) -> T:
    """Return what a measurement takes, or what shows in a moment that it still runs."""
    return small if os.environ.get(SIZE) == SMALL else full


def need(module: str, extra: str) -> None:
    """End the process with a hint unless ``module`` is installed."""
    if find_spec(module) is None:
        sys.stderr.write(f"This needs the package {module}: pip install 'skillgit[{extra}]'\n")
        sys.exit(MISSING)


def values_of(base: str) -> tuple[str, ...]:
    """Return, as ``KEY=VALUE``, what the shipped configuration ``base`` sets."""
    document = yaml.safe_load((ROOT / f"configs/_base_/{base}.yaml").read_text(encoding="utf-8"))
    sections = {name: section for name, section in document.items() if isinstance(section, dict)}
    return tuple(
        f"{name}.{key}={str(value).lower()}" for name, section in sections.items() for key, value in section.items()
    )


def train_demo(place: Path) -> None:
    """Make a repository at ``place`` and train the demo in it, as the run ``demo``."""
    short = ("train.num_epochs=2", "evaluation.sel_env_num=20", "evaluation.test_env_num=4")
    words = [word for override in sized((), short) for word in ("-o", override)]
    train = ["-C", str(place), "train", "demo", "--run", "demo", "--quiet", *words]
    for arguments in (["init", str(place), "--env", "searchqa"], train):
        subprocess.run([SKILLGIT, *arguments], capture_output=True, check=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Medians over the rounds, in milliseconds."""

    wall_ms: float
    cpu_ms: float


def commands(
    named: Mapping[str, Sequence[str]], *, cwd: Path, rounds: int = 15, env: Mapping[str, str] | None = None
) -> dict[str, Timing]:
    """Run every command once unmeasured, then ``rounds`` times in turn; where inputs are small, once."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in named}
    for number in sized(range(rounds + 1), range(1, 2)):
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
