"""Train over the wire as a user does: which options reach the server in which dialect, and what a run came to."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from program import git, skillgit

if TYPE_CHECKING:
    from pathlib import Path

    from program import Done

    from wire import Entry, Wire

RUN = "demo"
ENVIRONMENT = {
    **dict.fromkeys(("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "ANTHROPIC_BASE_URL"), ""),
    "OPENAI_API_KEY": "sk-proj-PLANTED0123456789abcdefghijklmnop",
    "ANTHROPIC_API_KEY": "sk-ant-api03-PLANTED0123456789abcdefghijklmnop",
}
"""The keys of a user who has no other settings in the environment."""
DIALECTS = ("chat", "responses", "messages")
_COST = re.compile(r"^Skillgit-(?:Cost|Served|Spent|Evidence): .*$", re.MULTILINE)


def over(wire: Wire, dialect: str) -> tuple[str, ...]:
    """Return the overrides that make target and optimizer answer from ``wire``."""
    if dialect == "messages":
        keys = (
            *("target_backend=claude_chat", "optimizer_backend=claude_chat"),
            *("target=claude-reader-1", "optimizer=claude-analyst-1", f"claude_chat_base_url={wire.url}"),
        )
    else:
        keys = (
            *("target_backend=openai_chat", "optimizer_backend=openai_chat", f"openai_chat_api={dialect}"),
            *("target=reader", "optimizer=analyst"),
            *(f"openai_chat_base_url={wire.url}/v1", "openai_chat_api_key_env=OPENAI_API_KEY"),
        )
    return tuple(word for key in keys for word in ("-o", f"model.{key}"))


def train(repository: Path, *options: str, code: int = 0) -> Done:
    """Train the run, or let it go on."""
    return skillgit("train", "demo", "--run", RUN, *options, cwd=repository, env=ENVIRONMENT, code=code)


def course(repository: Path) -> list[str]:
    """Return what a run came to, in no special order: every commit's tree and its whole message but for what it cost.

    Trees hold the versions of the skill, messages the decisions with scores and the gates' numbers.
    """
    told = git("log", "--branches", "--format=%T %B%x00", cwd=repository).out
    return sorted(_COST.sub("", part).strip() for part in told.split("\0"))


def questions(wire: Wire) -> list[Entry]:
    """Return what models were asked; whatever else a backend wants to know of its server costs nothing."""
    return [entry for entry in wire.log() if entry.role]


def paid_twice(log: list[Entry]) -> list[str]:
    """Return the questions that were answered, whole and to somebody who listened, more than once."""
    counts = Counter(entry.digest for entry in log if entry.delivered)
    return [digest for digest, count in counts.items() if count > 1]
