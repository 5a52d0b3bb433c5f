"""The files of a skill besides ``SKILL.md``: which ones the optimizer may edit, and what it is told of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.edit import Op
from skillgit.engine.prompts import FILES, prompt
from skillgit.errors import ConfigError
from skillgit.plugin.backend import system

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.domain.edit import Edit
    from skillgit.domain.skill import Skill
    from skillgit.engine.session import Session
    from skillgit.plugin.backend import Message


def told_of_files(session: Session, messages: Sequence[Message]) -> list[Message]:
    """Return a prompt that asks for edits, with what holds for other files where ``SKILL.md`` is not the only one."""
    files = session.settings.optimizer.trainable
    if not files.beyond_document:
        return list(messages)
    first, *rest = messages
    patterns = "\n".join(f"- `{pattern}`" for pattern in files.patterns)
    return [system(f"{first.text.rstrip()}\n\n{prompt(FILES).replace('{patterns}', patterns)}"), *rest]


def file_lint(session: Session) -> Callable[[Skill, Edit], str]:
    """Return what says why a step may not make an edit to a file of a skill; an empty string lets it pass.

    Whether the edit applies is another question.
    """
    files = session.settings.optimizer.trainable

    def lint(skill: Skill, edit: Edit) -> str:
        if files.covers(edit.file):
            return ""
        if edit.file in skill.files:
            return f"optimizer.files does not name '{edit.file}'"
        # Without the setting, there is no talk of files that could be made.
        is_allowed = files.beyond_document and edit.op is Op.APPEND
        advice = f", and optimizer.files lets no step make it: {', '.join(files.patterns)}" if is_allowed else ""
        return f"the skill has no text file '{edit.file}'{advice}"

    return lint


def check_files(session: Session, skill: Skill) -> None:
    """Refuse to train files of ``skill`` that cannot be trained.

    Raises:
        ConfigError: A pattern names no text file of the seed skill, and would allow no new one.
    """
    files = session.settings.optimizer.trainable
    if not files.beyond_document:
        return
    texts = [path for path, _ in skill.text_files()]
    for path in files.patterns:
        if path in skill.files and path not in texts:
            raise ConfigError(
                f"optimizer.files has '{path}', which is no text in skill '{skill.name}'", hint="only text is trained"
            )
    if not any(files.covers(path) for path in texts):
        raise ConfigError(
            f"optimizer.files names no file of skill '{skill.name}': {', '.join(files.patterns)}",
            hint=f"it has {', '.join(texts[:8])}",
        )
