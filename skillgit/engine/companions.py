"""What a target is given of a skill: ``SKILL.md``, and behind it the other texts that it names.

A coding agent finds the skill's folder and opens a file where ``SKILL.md`` points to it. A model that is asked by chat
opens nothing, so that the files stand in what it reads. Each is put between ``<companion path="…">`` and
``</companion>``, on lines of their own; backends that hand the skill over as a folder make files of them again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.skill import DOCUMENT, frontmatter
from skillgit.engine.elision import LEAST, elide
from skillgit.engine.rendering import CHARACTERS_PER_TOKEN, tagged
from skillgit.engine.settings import Companions

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.engine.settings import TargetSettings

TAG = "companion"


def delivered(skill: Skill, settings: TargetSettings) -> Skill:
    """Return ``skill`` as a target gets it: with the texts that its ``SKILL.md`` names at the end of that.

    A file counts as named if its path inside the skill folder stands in the text: in a link, in code or in a sentence.
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
        parts.append(tagged(TAG, part, path=path))
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
    """Return what finds ``path`` where it is no part of another path; a folder's placeholder may stand before it."""
    return re.compile(rf"(?:(?<![\w./\-])(?:\./)?|(?<=\}}/)){re.escape(path)}(?![\w/\-]|\.\w)")
