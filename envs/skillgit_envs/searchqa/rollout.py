"""One question: what the target reads, and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.plugin.backend import system, user
from skillgit_envs.answer_tag import extract, in_tag
from skillgit_envs.prompt_files import prompt_file, with_skill

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Target


async def ask(item: Item, skill: Skill, target: Target, max_turns: int = 1) -> Trajectory:
    """Ask the target the question of ``item``; from the second turn on, to review what it answered.

    Each turn is a question of its own that shows search results and question again. The first review that holds an
    answer is the last one. A review without an answer leaves the one before as it was.

    Args:
        target: The target model.
        max_turns: Replies at most.

    Raises:
        BackendError: A call failed for good.
    """
    prompt = system(system_prompt(skill))
    task = user_prompt(str(item.content["question"]), str(item.content["context"]))
    turns: list[Turn] = []
    question, answer, has_answer = task, "", False
    while True:
        reply = await target.chat([prompt, user(question)])
        turns += [Turn(role="user", content=question), Turn(role="assistant", content=reply.text)]
        has_tag = in_tag(reply.text) is not None
        if has_tag or not has_answer:
            answer, has_answer = extract(reply.text), has_tag
        is_review = has_tag and len(turns) > 2  # noqa: PLR2004 - the first turn is a question and a reply
        if is_review or len(turns) >= 2 * max_turns:
            return Trajectory(item_id=item.id, turns=tuple(turns), answer=answer)
        question = review_prompt(task, answer)


CONTEXT_CHARACTERS = 6000
_DOCUMENT = "[DOC]"


def system_prompt(skill: Skill) -> str:
    """Return the system prompt: the role, the skill without its frontmatter, and how to answer."""
    return with_skill(prompt_file(__package__, "system"), skill)


def user_prompt(question: str, context: str) -> str:
    """Return the user prompt: as much of the search results as fits, then the question."""
    return f"<context>\n{fit(context)}\n</context>\n\n<question>\n{question}\n</question>"


def review_prompt(task: str, answer: str) -> str:
    """Return the user prompt of a later turn: the task as it was, and the answer so far."""
    return f"{task}\n\n<previous_answer>\n{answer}\n</previous_answer>\n\n{prompt_file(__package__, 'review')}"


def fit(context: str, limit: int = CONTEXT_CHARACTERS) -> str:
    """Return the leading documents of ``context`` that fit into ``limit`` characters, each with its marker.

    If not even the first one fits, it is cut at the last white space before the limit.
    """
    if len(context) <= limit:
        return context
    # A document may end exactly at the limit, so that the next one's marker starts right behind it.
    end = context.rfind(_DOCUMENT, 1, limit + len(_DOCUMENT) + 1)
    while end > 0 and len(context[:end].rstrip()) > limit:
        end = context.rfind(_DOCUMENT, 1, end)
    if end > 0 and context[:end].strip():
        return context[:end].rstrip()
    head = context[:limit]
    blank = max(head.rfind(" "), head.rfind("\n"))
    return head[:blank].rstrip() if blank > limit // 2 else head
