"""What the target does on one question: it answers, and may review its answer with everything before its eyes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.plugin.backend import system, user
from skillgit_envs.answer_tag import extract, in_tag
from skillgit_envs.searchqa.prompt import review_prompt, system_prompt, user_prompt

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Target


async def ask(item: Item, skill: Skill, target: Target, max_turns: int = 1) -> Trajectory:
    """Ask the target the question of ``item``; from the second turn on, to review what it answered.

    Each turn is a question of its own that shows search results and question again. The first review that holds an
    answer is the last one. A review without an answer leaves the one before as it was.

    Args:
        item: The item.
        skill: The skill.
        target: The target model.
        max_turns: Replies at most.

    Raises:
        BackendError: A call failed for good.
    """
    prompt = system(system_prompt(skill))
    task = user_prompt(str(item.content["question"]), str(item.content["context"]))
    turns: list[Turn] = []
    question, answer, answered = task, "", False
    while True:
        reply = await target.chat([prompt, user(question)])
        turns += [Turn(role="user", content=question), Turn(role="assistant", content=reply.text)]
        tagged = in_tag(reply.text) is not None
        if tagged or not answered:
            answer, answered = extract(reply.text), tagged
        reviewed = tagged and len(turns) > 2  # noqa: PLR2004 - the first turn is a question and a reply
        if reviewed or len(turns) >= 2 * max_turns:
            return Trajectory(item_id=item.id, turns=tuple(turns), answer=answer)
        question = review_prompt(task, answer)
