"""Every benchmark of ``make bench`` runs once on small inputs, so that it cannot fall behind the source."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

import pytest
from bench import measure
from program import run
from soaking import soak

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted(path.stem for path in (ROOT / "tests" / "bench").glob("*.py") if path.stem != "measure")

CHEAP = {"caution", "gate", "harvest", "inspect_overhead"}
"""Those whose small inputs take about a second."""


def numbers(value: object) -> Iterator[float]:
    """Yield the numbers of a JSON value, however deep."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from numbers(inner)
    elif isinstance(value, int | float):
        yield value


def test_make_bench_runs_these_files():
    planned = run("make", "--dry-run", "bench", cwd=ROOT)
    assert planned.code == 0, planned
    assert sorted(set(re.findall(r"tests/bench/(\w+)\.py", planned.out))) == BENCHMARKS


def test_each_benchmark_can_be_loaded_and_names_its_small_inputs(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests" / "bench")
    for name in BENCHMARKS:
        program = ROOT / "tests" / "bench" / f"{name}.py"
        assert "measure.sized(" in program.read_text(encoding="utf-8"), f"{program} has no small inputs"
        runpy.run_path(str(program))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name if name in CHEAP else soak(name) for name in BENCHMARKS])
def test_each_benchmark_runs_on_small_inputs(name):
    program = ROOT / "tests" / "bench" / f"{name}.py"
    done = run(sys.executable, program, cwd=ROOT, env={measure.SIZE: measure.SMALL})
    if done.code == measure.MISSING:
        pytest.skip(done.err.strip())
    assert done.code == 0, done
    *_, last = done.out.splitlines()
    figures = json.loads(last)
    assert isinstance(figures, dict)
    assert list(numbers(figures)), "the last line has no figures"
    assert all(map(isfinite, numbers(figures)))
