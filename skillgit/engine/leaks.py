"""The leak lint: candidate text that quotes answers, checks or held-out inputs never reaches a version."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from skillgit.domain.changed_lines import changed_lines
from skillgit.domain.edit_words import QUARANTINED
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import build_index, find_leak
from skillgit.plugin.environment import secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillgit.domain.edit import Edit, EditReport
    from skillgit.domain.leaks import Leak, SecretIndex
    from skillgit.domain.skill import Skill
    from skillgit.engine.session import Session


class LeakLint:
    """Keeps the index of a session's secrets, which is made when it is needed first."""

    __slots__ = ("_index",)

    def __init__(self) -> None:
        self._index: SecretIndex | None = None

    def index(self, session: Session) -> SecretIndex:
        """Return the index of the secrets of all items of ``session``."""
        if self._index is None:
            environment = session.task.environment
            self._index = build_index(
                (item.id, split, secrets_of(environment, item)) for split in Split for item in session.task.items[split]
            )
        return self._index

    def prepare(self, session: Session) -> None:
        """Make the index in a thread, while models are waited for."""
        if session.settings.evaluation.leak_lint and self._index is None:
            asyncio.get_running_loop().run_in_executor(None, self.index, session)


def leak_in(session: Session, skill: Skill, text: str) -> Leak | None:
    """Return the secret that ``text``, meant for ``skill``, quotes; None without one or without the lint."""
    if not session.settings.evaluation.leak_lint or not text.strip():
        return None
    known = "\n".join([*(content for _, content in skill.text_files()), session.task.environment.taxonomy()])
    return find_leak(session.leaks.index(session), text, known)


def edit_lint(session: Session, skill: Skill) -> Callable[[Edit], str]:
    """Return what says of an edit to ``skill`` why it is quarantined; an empty string lets it pass."""

    def lint(edit: Edit) -> str:
        leak = leak_in(session, skill, edit.content)
        return "" if leak is None else str(leak)

    return lint


def leak_between(session: Session, skill: Skill, candidate: Skill) -> Leak | None:
    """Return the secret that the lines which ``candidate`` adds to ``skill`` quote."""
    added = "\n".join(change.text for change in changed_lines(skill, candidate) if change.sign == "+")
    return leak_in(session, skill, added)


def told(session: Session, skill: Skill, reports: Iterable[EditReport], text: str) -> str:
    """Return ``text`` for a commit message.

    Once an edit is quarantined, the words around it quote the same secret more often than not: paragraphs that quote
    one are replaced by the item's id.
    """
    if not any(report.detail.startswith(QUARANTINED) for report in reports):
        return text

    def kept(paragraph: str) -> str:
        leak = leak_in(session, skill, paragraph)
        return paragraph if leak is None else f"(left out: {leak})"

    return "\n\n".join(kept(paragraph) for paragraph in text.split("\n\n"))
