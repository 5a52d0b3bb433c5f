"""``make bench-startup``: what the program costs before it does anything, against git and bare Python in one run."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import measure

ROUNDS = measure.sized(15, 1)
RIVALS = {
    "skillgit --help": "python -c pass",
    "skillgit log -n 20": "git log -n 20",
    "skillgit status": "git status",
    "skillgit diff v1 v3": "git diff v1 v3",
}


def main() -> None:
    """Train the demo once, then measure."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        measure.train_demo(repository)
        timings = measure.commands(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "skillgit --help": [measure.SKILLGIT, "--help"],
                "git log -n 20": ["git", "log", "-n", "20", "run/demo"],
                "skillgit log -n 20": [measure.SKILLGIT, "log", "-n", "20"],
                "git status": ["git", "status"],
                "skillgit status": [measure.SKILLGIT, "status"],
                "git diff v1 v3": ["git", "diff", "demo/v1", "demo/v3"],
                "skillgit diff v1 v3": [measure.SKILLGIT, "diff", "v1", "v3"],
            },
            cwd=repository,
            rounds=ROUNDS,
        )
    rows = [("command", "wall ms", "cpu ms", "over its rival, wall ms")]
    figures: dict[str, float] = {}
    for name, timing in timings.items():
        rival = RIVALS.get(name)
        over = timing.wall_ms - timings[rival].wall_ms if rival else None
        extra = f"{over:.0f} over {rival}" if over is not None else ""
        rows.append((name, f"{timing.wall_ms:.0f}", f"{timing.cpu_ms:.0f}", extra))
        key = name.replace(" ", "_").replace("-", "")
        figures |= {f"{key}_wall_ms": round(timing.wall_ms, 1), f"{key}_cpu_ms": round(timing.cpu_ms, 1)}
        if over is not None and rival is not None:
            figures[f"{key}_ratio"] = round(timing.wall_ms / timings[rival].wall_ms, 2)
    measure.report(f"Start-up, medians of {ROUNDS} interleaved rounds", rows, figures)


if __name__ == "__main__":
    main()
