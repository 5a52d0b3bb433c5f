"""Prompts as files beside an environment's code, and the place of the skill in them."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, assert_never

from skillgit.domain.protected_regions import frontmatter

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill


class PromptWording(StrEnum):
    """In which words the target is asked."""

    OWN = "own"
    REFERENCE = "reference"
    """For the same things in the same order as the reference implementation asks; the words are ours."""


@cache
def prompt_file(package: str, name: str, wording: PromptWording = PromptWording.OWN) -> str:
    """Return the text of ``prompts/<name>.md`` in the folder of ``package``, or of ``prompts/reference/<name>.md``."""
    folder = files(package) / "prompts"
    folder = folder if wording is PromptWording.OWN else folder / wording
    return (folder / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def with_skill(prompt: str, skill: Skill, wording: PromptWording = PromptWording.OWN) -> str:
    """Return ``prompt`` with the skill, without its frontmatter, in the place of ``{skill}``.

    A skill whose text is blank is left out.
    """
    text = skill.document[len(frontmatter(skill.document)) :].strip()
    match wording:
        case PromptWording.OWN:
            section = f'<skill name="{skill.name}">\n{text}\n</skill>\n\n'
        case PromptWording.REFERENCE:
            section = f"## Skill\n{text}\n\n"
        case _:
            assert_never(wording)
    return prompt.replace("{skill}", section if text else "").rstrip("\n")


def sections(**texts: str) -> str:
    """Return texts that are not empty, each below its name, as the reference shows them."""
    return "\n\n".join(f"## {name.replace('_', ' ').capitalize()}\n{text}" for name, text in texts.items() if text)
