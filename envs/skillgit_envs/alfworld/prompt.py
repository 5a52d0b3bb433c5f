"""What the target reads: the skill once, in the system prompt, then what it sees and what it can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.plugin.backend import assistant, system, user
from skillgit_envs.prompt_files import prompt_file, with_skill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.skill import Skill
    from skillgit.plugin.backend import Message

REPLY_CHARACTERS = 2000
"""So much of an earlier reply is shown again."""


def system_prompt(skill: Skill, max_steps: int) -> str:
    """Return the system prompt: the role, the skill, and how to play."""
    return with_skill(prompt_file(__package__, "system").replace("{max_steps}", str(max_steps)), skill)


def seen(observation: str, commands: Sequence[str] = ()) -> str:
    """Return what the target sees, followed by the commands that are possible, if they are to be shown."""
    text = f"<observation>\n{observation}\n</observation>"
    return f"{text}\n\n<commands>\n{chr(10).join(commands)}\n</commands>" if commands else text


def shortened(reply: str) -> str:
    """Return a reply as the conversation keeps it: whole, or without the middle of a long thought."""
    if len(reply) <= REPLY_CHARACTERS:
        return reply
    part = REPLY_CHARACTERS // 2
    return f"{reply[:part]}\n[... {len(reply) - 2 * part} characters left out ...]\n{reply[-part:]}"


def conversation(
    instructions: str, observations: Sequence[str], replies: Sequence[str], commands: Sequence[str], history: int
) -> list[Message]:
    """Return the messages that ask for the next command.

    Args:
        observations: What was seen, the task first; one more than there are replies.
        commands: What is possible now; only the last message lists it.
        history: How many of the last replies are shown; 0 shows all.
    """
    first = max(len(replies) - history, 0) if history else 0
    opening = seen(observations[0], commands if not replies else ())
    if first:
        gap = f"[... {first} {'command' if first == 1 else 'commands'} left out ...]"
        last = first == len(replies)
        opening = f"{opening}\n\n{gap}\n\n{seen(observations[first], commands if last else ())}"
    messages = [system(instructions), user(opening)]
    for index in range(first, len(replies)):
        options = commands if index == len(replies) - 1 else ()
        messages += [assistant(replies[index]), user(seen(observations[index + 1], options))]
    return messages
