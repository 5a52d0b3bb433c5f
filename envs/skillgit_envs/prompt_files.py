"""Prompts as files beside an environment's code, and the place of the skill in them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from skillgit.domain.protected_regions import frontmatter

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill


@cache
def prompt_file(package: str, name: str) -> str:
    """Return the text of ``prompts/<name>.md`` in the folder of ``package``."""
    return (files(package) / "prompts" / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def with_skill(prompt: str, skill: Skill) -> str:
    """Return ``prompt`` with the skill, without its frontmatter, in the place of ``{skill}``.

    A skill whose text is blank is left out.
    """
    text = skill.document[len(frontmatter(skill.document)) :].strip()
    section = f'<skill name="{skill.name}">\n{text}\n</skill>\n\n' if text else ""
    return prompt.replace("{skill}", section)
