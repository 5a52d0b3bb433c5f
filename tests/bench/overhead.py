"""``make bench-overhead``: a training over the loopback model server against the least that its calls can take.

The floor is the bare client of the official SDK, which replays the same requests: each waits for the replies that
decide its text or whether it is made, at the same latency, with as many in flight for each model. Both are processes of
their own on the same processor, the server on another one; both are timed from their start to their end, imports
included, in turn. ``python tests/bench/overhead.py 50ms_64 start`` measures single rows.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import measure
from bench.workload import processes, reference_schedule
from bench.workload.order import Plan, plan_of
from bench.workload.trainings import Recording, Trainings
from wire import Faults, Wire, wire_server

WORKLOAD = Path(__file__).parent / "workload"
EPOCHS, LONG_EPOCHS = measure.sized((2, 8), (1, 2))
FAILING = ("rate_limit", "server_error", "malformed", "reset")
CPU_ROW = "50ms_64"
"""The row that the CPU of a call is taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one row measures.

    Attributes:
        latency: Seconds before an answer.
        width: Calls in flight that the training may have.
        rounds: How often each side runs.
        server: More settings of the server, for both sides.
        against: Settings of the server for the training only: what is against it.
        floor: Calls in flight of all models together that the floor may have; None for ``width`` of each model.
    """

    latency: float
    width: int
    rounds: int = 3
    server: dict[str, Any] = field(default_factory=dict)
    against: dict[str, Any] = field(default_factory=dict)
    floor: int | None = None


ROWS = {
    **{f"{ms}ms_{width}": Row(latency=ms / 1000, width=width) for ms in (0, 50) for width in (8, 64, 256)},
    "200ms_8": Row(latency=0.2, width=8, rounds=1),
    "200ms_64": Row(latency=0.2, width=64, rounds=2),
    "200ms_256": Row(latency=0.2, width=256, rounds=2),
    "tail_64": Row(latency=0.2, width=64, rounds=2, server={"tail_share": 0.03, "tail": 1.6}),
    "faults5_64": Row(latency=0.05, width=64, against={"faults": Faults(rate=0.05, kinds=FAILING)}),
    "faults5_retry_after_64": Row(
        latency=0.05,
        width=64,
        rounds=1,
        against={"faults": Faults(rate=0.05, kinds=(*FAILING[1:], "rate_limit_after"), retry_after=1.0)},
    ),
    "cap16_64": Row(latency=0.05, width=64, against={"cap": 16}, floor=16),
}
FEW = [CPU_ROW, "cap16_64"]
"""A row for each way to replay; the others differ in settings of the server."""
OTHERS = ("start", "reference_24")
CALM: dict[str, Any] = {"latency": 0.0, "tail_share": 0.0, "tail": 0.0, "cap": 0, "faults": Faults()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Both sides of a row, round by round."""

    tool: list[processes.Cost]
    floor: list[processes.Cost]
    requests: int

    @property
    def ratio(self) -> float:
        """The training's wall time over the floor's."""
        return _wall(self.tool) / _wall(self.floor)


class Bench:
    """Everything that the rows share: the server, the trainings and what the floor replays."""

    def __init__(self, folder: Path, wire: Wire) -> None:
        self._folder, self._wire = folder, wire
        self.trainings = Trainings(folder, wire)
        self.plan = plan_of(self.trainings.record(epochs=EPOCHS))
        self._plan = _written(folder / "plan.json", asdict(self.plan))

    def row(self, row: Row) -> Measured:
        """Measure both sides in turn."""
        tool, floor, requests = [], [], 0
        for _ in range(measure.sized(row.rounds, 1)):
            self._serve(latency=row.latency, **row.server, **row.against)
            tool.append(self.trainings.run(width=row.width, epochs=EPOCHS))
            requests = len(self._wire.log())
            self._serve(latency=row.latency, **row.server)
            lanes = "each" if row.floor is None else "one"
            floor.append(self._client("floor.py", self._plan, row.floor or row.width, lanes))
        return Measured(tool=tool, floor=floor, requests=requests)

    def start(self) -> float:
        """Return the CPU seconds until the first request."""
        self._serve()
        return median(self.trainings.start() for _ in range(measure.sized(3, 1)))

    def reference(self) -> tuple[processes.Cost, int, processes.Cost, int, Recording]:
        """Return what 24 steps take and how many calls they make: the training's, and the reference's schedule."""
        self._serve()
        recording = self.trainings.record(epochs=LONG_EPOCHS)
        phases = list(reference_schedule.phases(recording, epochs=LONG_EPOCHS))
        path = _written(self._folder / "phases.json", phases)
        self._serve(latency=0.05)
        tool = self.trainings.run(width=8, epochs=LONG_EPOCHS)
        theirs = self._client("reference_client.py", path, 8)
        return tool, len(recording.calls), theirs, sum(map(len, phases)), recording

    def _client(self, script: str, path: Path, *words: object) -> processes.Cost:
        command = [sys.executable, str(WORKLOAD / script), str(path), self._wire.url, *map(str, words)]
        return processes.measured(command, cwd=self._folder)

    def _serve(self, **settings: Any) -> None:
        self._wire.clear()
        self._wire.change(**{**CALM, **settings})


def main(names: list[str]) -> None:
    """Measure the rows called ``names``, or all."""
    unknown = set(names) - {*ROWS, *OTHERS}
    if unknown:
        sys.exit(f"no such rows: {', '.join(sorted(unknown))}; there are {', '.join((*ROWS, *OTHERS))}")
    wanted = names or [*measure.sized([*ROWS], FEW), *OTHERS]
    with tempfile.TemporaryDirectory() as folder, processes.pinned(processes.SERVER), wire_server(process=True) as wire:
        bench = Bench(Path(folder), wire)
        table, figures = _table(bench, [name for name in wanted if name in ROWS])
        if "start" in wanted:
            figures["startup_cpu_s"] = round(bench.start(), 2)
            table.append(("start", "", "", f"{figures['startup_cpu_s']} s of CPU to the first request"))
        if "reference_24" in wanted:
            _reference(bench, table, figures)
    _print(bench.plan, table, figures)


def _table(bench: Bench, names: list[str]) -> tuple[list[tuple[str, ...]], dict[str, float]]:
    table: list[tuple[str, ...]] = [("row", "training s", "floor s", "ratio", "CPU ms/call", "SDK's", "requests")]
    figures: dict[str, float] = {}
    peak = 0.0
    for name in names:
        done = bench.row(ROWS[name])
        tool, floor = (_cpu(side) / bench.plan.calls * 1000 for side in (done.tool, done.floor))
        walls = (f"{_wall(done.tool):.2f}", f"{_wall(done.floor):.2f}", f"{done.ratio:.2f}")
        table.append((name, *walls, f"{tool:.2f}", f"{floor:.2f}", str(done.requests)))
        figures[f"ratio_{name}"] = round(done.ratio, 3)
        peak = max(peak, *(cost.rss_mb for cost in done.tool))
        if name == CPU_ROW:
            figures |= {"cpu_ms_per_call": round(tool, 2), "cpu_ms_per_call_sdk": round(floor, 2)}
    if names:
        figures["peak_rss_mb"] = round(peak, 1)
    return table, figures


def _reference(bench: Bench, table: list[tuple[str, ...]], figures: dict[str, float]) -> None:
    tool, calls, theirs, reference_calls, recording = bench.reference()
    wall = tool.wall_s / theirs.wall_s
    table.append(("reference_24", f"{tool.wall_s:.2f}", f"{theirs.wall_s:.2f}", f"{wall:.2f}"))
    measured = sum(scope.startswith("step") for scope in recording.measured)
    table.append(("", f"{calls} calls", f"{reference_calls}", f"{calls / reference_calls:.2f}"))
    table.append(("", f"{measured} of 24 steps had a candidate"))
    figures |= {
        "wall_vs_reference_24": round(wall, 3),
        "calls_vs_reference_24": round(calls / reference_calls, 3),
        "candidates_24": measured,
    }


def _print(plan: Plan, table: list[tuple[str, ...]], figures: dict[str, float]) -> None:
    width = max(map(len, table))
    title = f"Training against its floor: {plan.calls} calls, {plan.longest} of them one after the other"
    measure.report(title, [(*row, *("",) * (width - len(row))) for row in table], figures)


def _wall(costs: list[processes.Cost]) -> float:
    return median(cost.wall_s for cost in costs)


def _cpu(costs: list[processes.Cost]) -> float:
    return median(cost.cpu_s for cost in costs)


def _written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
