"""One game: what the model sees and does move by move, and whether it was won."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Scored
from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.errors import EnvironmentFaultError
from skillgit_envs.alfworld.prompt import conversation, seen, shortened, system_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Target
    from skillgit_envs.alfworld.simulator.client import Game


RESULT = "result.json"
"""The product that tells the scorer how the game ended."""
NO_COMMAND = "Nothing happens: there was no command between <action> and </action>."


async def play(
    item: Item,
    skill: Skill,
    target: Target,
    game: Game,
    opening: Mapping[str, Any],
    *,
    max_steps: int,
    history: int,
    show_commands: bool,
) -> Trajectory:
    """Play one game.

    A reply without a command uses up a step, changes nothing, and is told so.

    Raises:
        BackendError: A model call failed for good.
        EnvironmentFaultError: The game cannot be played.
    """
    instructions = system_prompt(skill, max_steps)
    state = await game.start(opening, max_steps)
    observations, replies, commands = [state.observation], list[str](), list[str]()
    while not state.over:
        possible = state.commands if show_commands else ()
        messages = conversation(instructions, observations, replies, possible, history)
        reply = await target.chat(messages)
        replies.append(shortened(reply.text))
        commands.append(command_in(reply.text))
        state = await game.step(commands[-1])
        observations.append(state.observation if commands[-1] else NO_COMMAND)
    turns = [Turn(role="user", content=seen(observations[0]))]
    for text, observation in zip(replies, observations[1:], strict=True):
        turns += [Turn(role="assistant", content=text), Turn(role="user", content=seen(observation))]
    result = {"won": state.won, "max_steps": max_steps, "commands": commands, "observations": observations}
    return Trajectory(
        item_id=item.id,
        turns=tuple(turns),
        answer=f"{'won' if state.won else 'not won'} in {len(commands)} steps",
        products={RESULT: json.dumps(result).encode()},
    )


_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_ACTION = re.compile(r"<action>(?P<command>.*?)(?:</action>|\n|\Z)", re.DOTALL | re.IGNORECASE)
_WRAPPING = " \t\r\n`'\"*.>-"


def command_in(reply: str) -> str:
    """Return the command of a reply, in lower case with single spaces; empty if it has none.

    The first action counts; one in a closed thought does not. A tag that is not closed ends with its line.
    """
    for match in _ACTION.finditer(_THOUGHT.sub("", reply)):
        command = " ".join(match.group("command").lower().split()).strip(_WRAPPING)
        if command:
            return command
    return ""


SCORER = 1
"""Raised whenever the same game may get another score."""
_NOTHING = "Nothing happens."


def score(trajectory: Trajectory) -> tuple[Scored, str]:
    """Return 1 for a game that was won and 0 for any other, as hard and soft score, and what can be said of it.

    Raises:
        EnvironmentFaultError: The trajectory says no result.
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
    parts = [f"not done after {len(commands)} steps, of which {result['max_steps']} are allowed: {task}"]
    idle = sum(observation == _NOTHING for observation in observations[1:])
    silent = observations[1:].count(NO_COMMAND)
    repeats = len(commands) - len(set(commands))
    parts += [f"{idle} commands changed nothing"] if idle else []
    parts += [f"{silent} replies had no command"] if silent else []
    parts += [f"{repeats} commands repeat an earlier one"] if repeats else []
    return "; ".join(parts)
