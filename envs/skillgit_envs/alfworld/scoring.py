"""The score of ALFWorld: a game is won when the goal of its PDDL problem holds, and that is all that counts.

The rule is that of TextWorld's PDDL environment, which ALFWorld reports success rates from.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Scored
from skillgit.errors import EnvironmentFaultError
from skillgit_envs.alfworld.rollout import NO_COMMAND, RESULT

if TYPE_CHECKING:
    from skillgit.domain.trajectory import Trajectory

SCORER = 1
"""Raised whenever the same game may get another score."""
_NOTHING = "Nothing happens."


def score(trajectory: Trajectory) -> tuple[Scored, str]:
    """Return 1 for a game that was won and 0 for any other, as hard and soft score, and what can be said of it.

    Raises:
        EnvironmentFaultError: The trajectory tells no result.
    """
    if RESULT not in trajectory.products:
        raise EnvironmentFaultError("the game told no result", hint="roll it out again")
    result: dict[str, Any] = json.loads(trajectory.products[RESULT])
    won = float(result["won"])
    return Scored(hard=won, soft=won), _feedback(result)


def _feedback(result: dict[str, Any]) -> str:
    commands, observations = result["commands"], result["observations"]
    task = observations[0].rpartition("Your task is to:")[2].strip().rstrip(".")
    if result["won"]:
        return f"done in {len(commands)} steps: {task}"
    told = [f"not done after {len(commands)} steps, of which {result['max_steps']} are allowed: {task}"]
    idle = sum(observation == _NOTHING for observation in observations[1:])
    silent = observations[1:].count(NO_COMMAND)
    repeated = len(commands) - len(set(commands))
    told += [f"{idle} commands changed nothing"] if idle else []
    told += [f"{silent} replies had no command"] if silent else []
    told += [f"{repeated} commands repeat an earlier one"] if repeated else []
    return "; ".join(told)
