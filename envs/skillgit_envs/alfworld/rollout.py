"""One game: the target is asked for a command, the game carries it out, until it is won or the steps are used up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit_envs.alfworld.actions import command_in
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
    for said, observation in zip(replies, observations[1:], strict=True):
        turns += [Turn(role="assistant", content=said), Turn(role="user", content=seen(observation))]
    result = {"won": state.won, "max_steps": max_steps, "commands": commands, "observations": observations}
    return Trajectory(
        item_id=item.id,
        turns=tuple(turns),
        answer=f"{'won' if state.won else 'not won'} in {len(commands)} steps",
        products={RESULT: json.dumps(result).encode()},
    )
