"""The files of a skill besides ``SKILL.md``: what a target is given of them, and which ones the optimizer may edit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.edit import Op
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.engine.method_settings import Companions
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN
from skillgit.engine.prompts import FILES, prompt
from skillgit.engine.trajectory_elision import LEAST, elide
from skillgit.errors import ConfigError
from skillgit.plugin.backend import system

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.domain.edit import Edit
    from skillgit.domain.skill import Skill
    from skillgit.engine.method_settings import TargetSettings
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
    """Refuse to train files of ``skill`` that cannot be trained."""
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


TAG = "companion"


def delivered(skill: Skill, settings: TargetSettings) -> Skill:
    """Return ``skill`` as a target gets it: with the texts that its ``SKILL.md`` names at the end of that.

    A file counts as named if its path inside the skill folder is in the text: in a link, in code or in a sentence.
    What those files name in turn is not followed. They share ``max_companion_tokens`` in the order in which they
    are named; what is cut says so, and those that have no room are listed.
    """
    if settings.companions is Companions.NONE or len(skill.files) == 1:
        return skill
    room = settings.max_companion_tokens * CHARACTERS_PER_TOKEN
    parts: list[str] = []
    left_out: list[str] = []
    for path, text in named_texts(skill):
        if room < min(LEAST, len(text)):
            left_out.append(path)
            continue
        part = elide(text, room)
        room -= len(part)
        parts.append(f'<{TAG} path="{path}">\n{part.strip(chr(10))}\n</{TAG}>')
    if left_out:
        parts.append(f"[... {', '.join(left_out)} left out: too long ...]")
    if not parts:
        return skill
    return skill.with_text(DOCUMENT, "\n\n".join([skill.document.rstrip("\n"), *parts]) + "\n")


def named_texts(skill: Skill) -> list[tuple[str, str]]:
    """Return path and text of the other text files that ``SKILL.md`` names, in the order in which it does."""
    body = skill.document.removeprefix(frontmatter(skill.document))
    mentions = [
        (match.start(), path, text)
        for path, text in skill.text_files()
        if path != DOCUMENT and (match := _mention(path).search(body)) is not None
    ]
    return [(path, text) for _, path, text in sorted(mentions)]


def _mention(path: str) -> re.Pattern[str]:
    """Return what finds ``path`` where it is no part of another path; a folder's placeholder may be before it."""
    return re.compile(rf"(?:(?<![\w./\-])(?:\./)?|(?<=\}}/)){re.escape(path)}(?![\w/\-]|\.\w)")
