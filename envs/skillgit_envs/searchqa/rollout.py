"""What the target does on one question: it is asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.plugin.backend import system, user
from skillgit_envs.answer_tag import extract
from skillgit_envs.searchqa.prompt import system_prompt, user_prompt

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Target


async def ask(item: Item, skill: Skill, target: Target) -> Trajectory:
    """Ask the target the question of ``item``.

    Raises:
        BackendError: The call failed for good.
    """
    question = user_prompt(str(item.content["question"]), str(item.content["context"]))
    reply = await target.chat([system(system_prompt(skill)), user(question)])
    return Trajectory(
        item_id=item.id,
        turns=(Turn(role="user", content=question), Turn(role="assistant", content=reply.text)),
        answer=extract(reply.text),
    )
