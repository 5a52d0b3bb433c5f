"""Builds the prompts that targets and optimizers get, with the code that builds them in a run."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from skillgit.domain.skill import Skill
from skillgit.engine.prompt_sections import conversation, marked, prompt, tagged
from skillgit.plugin.backend import Request, system, user
from skillgit_backends.offline import OfflineBackend
from skillgit_backends.offline.text import Briefing
from skillgit_envs.answers import extract
from skillgit_envs.searchqa import feedback, system_prompt, user_prompt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillgit.plugin.backend import Message

HEAD = (
    "---\nname: searchqa\ndescription: Answers.\n---\n\n# Answering\n\nAnswer the question from the search results.\n"
)

__all__ = ["HEAD", "ask_analyst", "ask_reader", "attempt", "complete", "prompt", "read", "skill", "tagged"]


def skill(*rules: str, slow: str = "") -> Skill:
    body = HEAD + "".join(f"{'' if number else chr(10)}- {rule}\n" for number, rule in enumerate(rules))
    guidance = f"\n<!-- skillgit:slow -->\n{slow}\n<!-- /skillgit:slow -->\n" if slow else ""
    return Skill("searchqa", {"SKILL.md": (body + guidance).encode()})


def complete(model: str, messages: Sequence[Message]) -> str:
    request = Request(model=model, messages=tuple(messages))
    return asyncio.run(OfflineBackend({}).complete(request)).text


def context(*documents: tuple[str, str]) -> str:
    return " ".join(f"[DOC] [TLE] {title} [PAR] {body}" for title, body in documents)


def ask_reader(question: str, documents: Sequence[tuple[str, str]], *rules: str, slow: str = "") -> str:
    messages = [system(system_prompt(skill(*rules, slow=slow))), user(user_prompt(question, context(*documents)))]
    return extract(complete("reader", messages))


def ask_analyst(name: str, *sections: str) -> dict[str, Any]:
    return json.loads(complete("analyst", conversation(name, None, sections)))


def attempt(
    item: str,
    question: str,
    documents: Sequence[tuple[str, str]],
    answer: str,
    golds: Sequence[str],
    *,
    tag: str = "trajectory",
) -> str:
    parts = [
        tagged("turn", user_prompt(question, context(*documents)), role="user"),
        tagged("turn", f"<answer>{answer}</answer>", role="assistant"),
        tagged("answer", answer),
        tagged("feedback", feedback(answer, golds)),
    ]
    attributes = {"id": item, "task_type": "person", "hard": 0, "soft": 0.5} if tag == "trajectory" else {}
    return tagged(tag, "\n".join(parts), **attributes)


def read(parts: Iterable[str], outcome: str = "failure") -> str:
    shown = list(parts)
    return tagged("trajectories", "\n".join(shown), outcome=outcome, count=len(shown))


def briefing(text: str) -> Briefing:
    """Return sections as the offline models get them, with the tags that the engine's prompts have."""
    return Briefing(marked(text))
