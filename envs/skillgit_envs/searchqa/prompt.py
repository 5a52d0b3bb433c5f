"""What the target model reads: a system prompt with the skill, a user prompt with search results and question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit_envs.prompt_files import prompt_file, with_skill

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill

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
