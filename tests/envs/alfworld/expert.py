"""A program for the tests, run in a process of its own, for TextWorld is loaded into it and changed.

It reads a JSON object from its input: ``openings`` (as the environment sends them to a game), ``steps`` and ``mode``.
The planner wins games; ``plain`` and ``quick`` give commands in a fixed stride to TextWorld as it is, and as we changed
it; ``build`` makes games of recipes; ``check`` lets gymnasium check them. It writes what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

SCRATCH = tempfile.TemporaryDirectory()
os.environ["ALFWORLD_DATA"] = str(Path(SCRATCH.name) / "data")

from skillgit_envs.alfworld import engine  # noqa: E402
from skillgit_envs.alfworld.engine import GameEnv  # noqa: E402
from skillgit_envs.alfworld.games import Recipe  # noqa: E402
from skillgit_envs.alfworld.generator import build  # noqa: E402 - alfworld makes a folder when it is imported

STRIDE = 7


def game_of(opening: dict[str, Any]) -> dict[str, Any]:
    return opening["game"] if "game" in opening else build(Recipe.parse(opening["recipe"], "a test"))


def won_by_the_planner(opening: dict[str, Any], steps: int) -> dict[str, Any]:
    game = GameEnv(game_of(opening), steps, planner=True)
    observation, info = game.reset()
    game._game.unwrapped.request_infos.policy_commands = False
    seen, commands, won = [observation], info["plan"], info["won"]
    for command in commands:
        observation, _, won, cut, info = game.step(command)
        seen.append(observation)
        if won or cut:
            break
    return {"won": won, "seen": seen, "commands": commands}


def walked(opening: dict[str, Any], steps: int) -> list[Any]:
    game = GameEnv(game_of(opening), steps)
    observation, info = game.reset()
    seen: list[Any] = [observation, info]
    for number in range(steps):
        commands = info["commands"]
        command = commands[number * STRIDE % len(commands)] if number % STRIDE else "dance"
        observation, reward, won, cut, info = game.step(command)
        seen.append([command, observation, reward, won, cut, info])
        if won or cut:
            break
    return seen


def checked(opening: dict[str, Any]) -> list[str]:
    """Return the complaints of gymnasium's own checker."""
    from gymnasium.utils.env_checker import check_env  # noqa: PLC0415

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(GameEnv(game_of(opening)), skip_render_check=True)
    return [str(warning.message) for warning in caught]


def main() -> None:
    task = json.load(sys.stdin)
    mode, steps = task["mode"], task.get("steps", 50)
    if mode != "plain":
        folder = Path(SCRATCH.name) / "parsed"
        folder.mkdir()
        engine.install(folder, planner=mode == "planner")
    play = {"planner": won_by_the_planner, "build": lambda opening, _: game_of(opening)}.get(mode, walked)
    if mode == "check":
        play = lambda opening, _: checked(opening)  # noqa: E731
    json.dump([play(opening, steps) for opening in task["openings"]], sys.stdout)


if __name__ == "__main__":
    main()
