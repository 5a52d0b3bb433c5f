"""Where the skill, the search results and the question stand in a target's conversation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.plugin.backend import Message

_SKILL = re.compile(r"<skill\b[^>]*>(?P<body>.*)</skill>", re.DOTALL)
_CONTEXT = re.compile(r"<context>(?P<body>.*?)</context>", re.DOTALL)
_QUESTION = re.compile(r"<question>(?P<body>.*?)</question>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Search results and the question about them."""

    context: str
    question: str


def skill_text(messages: Sequence[Message]) -> str:
    """Return the skill inside the system message, or the whole system message where no skill is marked."""
    text = "\n".join(message.text for message in messages if message.role == "system")
    match = _SKILL.search(text)
    return match.group("body") if match else text


def parse_task(prompt: str) -> Task:
    """Read a task prompt; without marks, the last paragraph is the question and the rest the context."""
    context, question = _CONTEXT.search(prompt), _QUESTION.search(prompt)
    if question is not None:
        rest = prompt[: question.start()] + prompt[question.end() :]
        return Task(
            context=(context.group("body") if context else rest).strip(),
            question=" ".join(question.group("body").split()),
        )
    paragraphs = [part for part in re.split(r"\n\s*\n", prompt.strip()) if part.strip()]
    if not paragraphs:
        return Task(context="", question="")
    return Task(context="\n".join(paragraphs[:-1]), question=" ".join(paragraphs[-1].split()))
