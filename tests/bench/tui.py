"""``make bench-tui``: how soon the screens open, and what keys cost at 100 and at 100,000 events.

``python tests/bench/tui.py opening`` measures a part: ``opening``, ``keys``, ``one_run``, ``long``, ``handlers``. All
of it happens in a pseudo terminal of 104 by 30. The cost of a key is the CPU of the whole process until everything that
it asked for has been read and painted; what git's own processes use is not among it. From key to paint is the time that
a person waits until the screen shows that a key was pressed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import measure
from bench.histories.fast_import import write_history
from bench.histories.long_skill import write_long
from bench.screens.terminal import finished, painted

from skillgit.index import refresh
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Figures = dict[str, float]
Rows = list[tuple[str, str, str]]

ROUNDS = measure.sized(9, 1)
SESSIONS = measure.sized(3, 1)
SMALL, LARGE = measure.sized((100, 100_000), (30, 40))
RUNS = measure.sized(100, 3)
"""Runs of the larger history."""
LINES = measure.sized(5_000, 50)
HITCH = 16.0
"""Milliseconds after which a handler holds up a picture at 60 of them a second."""
_TESTS = Path(__file__).parents[1]
_EMPTY = """
from textual.app import App
from textual.widgets import Label
class Empty(App):
    def compose(self): yield Label("empty")
Empty().run()
"""


def main(parts: Sequence[str]) -> None:
    """Measure the parts called so, or all."""
    unknown = set(parts) - PARTS.keys()
    if unknown:
        sys.exit(f"no such parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    figures: Figures = {}
    rows: Rows = [("figure", "value", "")]
    with tempfile.TemporaryDirectory() as folder:
        for part in parts or measure.sized([*PARTS], [name for name in PARTS if name != "one_run"]):
            more, told = PARTS[part](Path(folder))
            figures |= more
            rows += [(name, str(value), "") for name, value in more.items()] + told
    measure.report("Screens in a pseudo terminal", rows, figures)


def opening(folder: Path) -> tuple[Figures, Rows]:
    """Measure the start of the screens against ``skillgit log`` and an empty Textual app, in turn; medians."""
    demo = _demo(folder)
    logged = subprocess.run([measure.SKILLGIT, "log", "--json", "-n", "1"], cwd=demo, capture_output=True, check=True)
    newest = json.loads(logged.stdout)["events"][0]["title"][:7]
    walls: dict[str, list[float]] = {"frame": [], "history": [], "empty": []}
    works: dict[str, list[float]] = {"history": [], "empty": []}
    for number in range(ROUNDS + 1):
        ours = painted([measure.SKILLGIT, "tui"], ["2 History", newest], cwd=demo)
        empty = painted([sys.executable, "-c", _EMPTY], ["empty"], cwd=demo)
        if number:
            walls["frame"].append(ours.wall_ms[0])
            walls["history"].append(ours.wall_ms[1])
            walls["empty"].append(empty.wall_ms[0])
            works["history"].append(ours.cpu_ms)
            works["empty"].append(empty.cpu_ms)
    log = measure.commands({"log": [measure.SKILLGIT, "log", "-n", "20"]}, cwd=demo, rounds=ROUNDS)["log"]
    found = {
        "first_paint_ms": median(walls["frame"]),
        "history_painted_ms": median(walls["history"]),
        "history_painted_cpu_ms": median(works["history"]),
        "empty_textual_ms": median(walls["empty"]),
        "empty_textual_cpu_ms": median(works["empty"]),
        "log_ms": log.wall_ms,
        "log_cpu_ms": log.cpu_ms,
    }
    figures = {name: round(value, 1) for name, value in found.items()}
    figures["open_ratio"] = round(found["history_painted_ms"] / (found["empty_textual_ms"] + found["log_ms"]), 2)
    figures["open_cpu_ratio"] = round(
        found["history_painted_cpu_ms"] / (found["empty_textual_cpu_ms"] + found["log_cpu_ms"]), 2
    )
    return figures, []


def keys(folder: Path) -> tuple[Figures, Rows]:
    """Measure a session with a hundred events in two runs, and with a hundred thousand in a hundred."""
    return _sizes(folder, "many", {SMALL: 2, LARGE: RUNS})


def one_run(folder: Path) -> tuple[Figures, Rows]:
    """Measure it with all events in one run."""
    return _sizes(folder, "one", {SMALL: 1, LARGE: 1})


def _sizes(folder: Path, name: str, runs: dict[int, int]) -> tuple[Figures, Rows]:
    places = {size: folder / f"{name}-{size}" for size in runs}
    for size, place in places.items():
        write_history(place, size, runs=runs[size])
        refresh.rebuild(Repo.discover(place)).close()
    taken: dict[int, list[tuple[str, float]]] = {size: [] for size in runs}
    for _ in range(SESSIONS):
        for size, place in places.items():
            taken[size] += [(key, cost) for key, cost, *_ in _session(place, "browse", folder)["keys"]]
    end = "" if name == "many" else "_one_run"
    figures: Figures = {}
    for size, told in ((SMALL, "100"), (LARGE, "100k")):
        figures |= _spread(f"key_cpu_ms_{told}{end}", [cost for _, cost in taken[size]])
    ratio = figures[f"key_cpu_ms_100k{end}_p95"] / figures[f"key_cpu_ms_100{end}_p95"]
    figures[f"p95_key_ratio_100k_to_100{end}"] = round(ratio, 2)
    return figures, _by_key(taken)


def _by_key(taken: dict[int, list[tuple[str, float]]]) -> Rows:
    """Return the keys that grow most, with the median cost at both sizes."""
    costs = {
        size: {name: median(cost for key, cost in pressed if key == name) for name in dict(pressed)}
        for size, pressed in taken.items()
    }
    grown = sorted(costs[LARGE], key=lambda key: costs[SMALL][key] - costs[LARGE][key])[:6]
    return [(f"key {key}", f"{costs[SMALL][key]:.1f}", f"{costs[LARGE][key]:.1f} ms") for key in grown]


def long(folder: Path) -> tuple[Figures, Rows]:
    """Measure a session with a skill of 5,000 lines of which every version changes a tenth."""
    place = folder / "long"
    write_long(place, LINES)
    told = _session(place, "long", folder)
    figures = _spread("key_cpu_ms_5000_lines", [cost for _, cost, *_ in told["keys"]])
    held = [longest for _, _, longest, _ in told["keys"]]
    return figures | {"longest_hold_ms_5000_lines": round(max(held), 1)}, _slowest(told)


def handlers(folder: Path) -> tuple[Figures, Rows]:
    """Measure every handler of a session with the demo."""
    told = _session(_demo(folder), "browse", folder)
    figures = _spread("key_cpu_ms_demo", [cost for _, cost, *_ in told["keys"]])
    figures |= _spread("key_to_paint_ms_demo", [waited for *_, waited in told["keys"] if waited is not None])
    figures["started_cpu_ms_demo"] = round(told["started_cpu_ms"], 1)
    slowest = max(took for took, name, _ in told["handlers"] if not name.startswith("garbage"))
    over = sum(took > HITCH for took, _, _ in told["handlers"])
    return figures | {"slowest_handler_ms_demo": round(slowest, 1), "handlers_over_16_ms_demo": over}, _slowest(told)


def _slowest(told: dict) -> Rows:
    return [(name, f"{took:.1f}", f"ms of CPU, the most of {times}") for took, name, times in told["handlers"][:12]]


def _spread(name: str, costs: Iterable[float]) -> Figures:
    parts = quantiles(costs, n=20)
    return {f"{name}_p50": round(parts[9], 1), f"{name}_p95": round(parts[18], 1)}


def _session(place: Path, name: str, folder: Path) -> dict:
    """Play a session in a process of its own."""
    output = folder / "session.json"
    command = [sys.executable, "-m", "bench.screens.pressing", str(place), name, str(output)]
    finished(command, cwd=_TESTS, env={"PYTHONPATH": os.pathsep.join((str(_TESTS), os.environ.get("PYTHONPATH", "")))})
    return json.loads(output.read_text(encoding="utf-8"))


def _demo(folder: Path) -> Path:
    """Train the demo once."""
    place = folder / "demo"
    if not place.exists():
        measure.train_demo(place)
    return place


PARTS: dict[str, Callable[[Path], tuple[Figures, Rows]]] = {
    "opening": opening,
    "keys": keys,
    "one_run": one_run,
    "long": long,
    "handlers": handlers,
}


if __name__ == "__main__":
    main(sys.argv[1:])
