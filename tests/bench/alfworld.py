"""``make bench-alfworld``: how fast games start and step, alone and side by side; no model is asked.

Each game is a shipped one and is walked by a fixed stride through the possible commands. The first round of games
parses them; later ones find them parsed, as the rollouts of a training do after the first.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure

from skillgit_envs import alfworld
from skillgit_envs.alfworld.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Sequence

SIDE_BY_SIDE = measure.sized((1, 2, 4, 8, 16), (1, 2))
STEPS = measure.sized(30, 3)
STRIDE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Games that were played at once.

    Attributes:
        games: How many.
        start_s: Seconds until a game has started, the mean.
        steps_per_s: Steps of all games together, per second.
        wall_s: Seconds until all were over.
    """

    games: int
    start_s: float
    steps_per_s: float
    wall_s: float


async def play(simulator: Simulator, opening: dict[str, Any]) -> tuple[float, int]:
    """Play one game and return the seconds that its start took and its number of steps."""
    began = time.perf_counter()
    async with simulator.game() as game:
        state = await game.start(opening, STEPS)
        started, steps = time.perf_counter() - began, 0
        while not state.over:
            state = await game.step(state.commands[steps * STRIDE % len(state.commands)])
            steps += 1
    return started, steps


async def together(simulator: Simulator, openings: Sequence[dict[str, Any]]) -> Round:
    """Play games at once."""
    began = time.perf_counter()
    played = await asyncio.gather(*(play(simulator, opening) for opening in openings))
    wall, steps = time.perf_counter() - began, sum(steps for _, steps in played)
    return Round(
        games=len(openings),
        start_s=sum(start for start, _ in played) / len(played),
        steps_per_s=steps / wall,
        wall_s=wall,
    )


async def measured() -> tuple[float, Round, list[Round]]:
    """Return the seconds until the first game has started, the round that parses, and the others."""
    rows = json.loads((Path(alfworld.__file__).parent / "data" / "train" / "items.json").read_text(encoding="utf-8"))
    openings = [{"recipe": row["recipe"]} for row in rows[: max(SIDE_BY_SIDE)]]
    simulator = Simulator()
    try:
        first, _ = await play(simulator, openings[0])
        cold = await together(simulator, openings)
        return first, cold, [await together(simulator, openings[:count]) for count in SIDE_BY_SIDE]
    finally:
        simulator.close()


def main() -> None:
    """Measure and report."""
    measure.need("textworld", "alfworld")
    first, cold, rounds = asyncio.run(measured())
    rows = [("games at once", "start of a game", "steps/s", "all over")]
    named = [("new", cold), *((str(found.games), found) for found in rounds)]
    rows += [
        (name, f"{found.start_s * 1000:.0f} ms", f"{found.steps_per_s:.0f}", f"{found.wall_s:.1f} s")
        for name, found in named
    ]
    figures = {"first_game_s": round(first, 2)}
    for name, found in named:
        figures |= {
            f"start_ms_{name}": round(found.start_s * 1000, 1),
            f"steps_per_s_{name}": round(found.steps_per_s, 1),
        }
    measure.report(f"alfworld: {STEPS} steps a game; the first game of all starts after {first:.1f} s", rows, figures)


if __name__ == "__main__":
    main()
