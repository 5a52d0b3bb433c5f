"""Installed skills as agents list them: names and descriptions, read leniently from folders of anybody's."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import yaml

from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.skill_listing import LibrarySkill
from skillgit.domain.untrusted.model_text import clean
from skillgit.errors import SkillError
from skillgit.files import read_plain

DESCRIPTION_LENGTH = 1024  # characters of a description, by the rules of Agent Skills
_LONGEST_HEAD = 64_000  # characters of a frontmatter; YAML takes its time over nested nonsense
_LONGEST = 1 << 20  # bytes of a document; a longer one is not a skill


@runtime_checkable
class InstallsSkills(Protocol):
    """What an environment adds whose target may have to be an agent, which decides which skill to load."""

    @property
    def installs_skills(self) -> bool:
        """Whether the target has to be one, with the options that the environment was made with."""
        ...


def library_skill(folder: str, document: str, *, is_users: bool = False) -> LibrarySkill:
    """Return what an agent would list of the skill in a folder of this name; what cannot be read is empty."""
    text = document.removeprefix("\ufeff").replace("\r\n", "\n")
    inside = "\n".join(frontmatter(text).rstrip().splitlines()[1:-1])
    fields: Any = None
    if len(inside) <= _LONGEST_HEAD:
        with suppress(yaml.YAMLError, RecursionError):
            fields = yaml.load(inside, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts, lists and mappings alone
    values = {key: value for key, value in fields.items() if isinstance(value, str)} if isinstance(fields, dict) else {}
    return LibrarySkill(
        name=values.get("name", "") or folder,
        description=values.get("description", ""),
        folder=folder,
        when=values.get("when_to_use", ""),
        is_users=is_users,
        is_silent=values.get("disable-model-invocation", "").lower() == "true",
    )


def read_library(folder: Path, *, is_users: bool = False) -> dict[str, LibrarySkill]:
    """Return the skills in the folders below ``folder`` by the names of these; links are followed, as agents do."""
    skills: dict[str, LibrarySkill] = {}
    for path in sorted(folder.glob(f"*/{DOCUMENT}")):
        with suppress(OSError):
            document = read_plain(path, most=_LONGEST, follow=True).decode("utf-8", "replace")
            skills[path.parent.name] = library_skill(path.parent.name, document, is_users=is_users)
    return skills


def with_description(document: str, description: str) -> str:
    """Return ``document`` with another description on one line, in quotes; a SkillError where it has none to replace.

    Every byte but those of the value stays.
    """
    block = frontmatter(document)
    start = block.index("\n") + 1 if block else 0
    node = yaml.compose(block[start:].rstrip().removesuffix("---"), Loader=yaml.BaseLoader) if block else None
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    for key, value in pairs:
        if key.value == "description" and isinstance(value, yaml.ScalarNode):
            end = start + value.end_mark.index
            line_end = "\n" if value.style in {"|", ">"} else ""
            # every JSON string is a YAML string too
            text = json.dumps(description, ensure_ascii=False) + line_end
            return document[: start + value.start_mark.index] + text + document[end:]
    raise SkillError(f"{DOCUMENT} has no description to replace", hint="skillgit lint")


def description_fault(document: str, description: str) -> str:
    """Return why ``description`` cannot take the place of the one in ``document``, as a clause; empty if it can."""
    text = " ".join(description.split())
    if not 1 <= len(text) <= DESCRIPTION_LENGTH:
        return f"the description has {len(text)} characters, and 1 to {DESCRIPTION_LENGTH} are allowed"
    if clean(text) != text:
        return "the description holds invisible characters"
    if "---" in text:
        return "the description contains '---', where validators would split the frontmatter"
    after = with_description(document, text)
    is_whole = after.removeprefix(frontmatter(after)) == document.removeprefix(frontmatter(document))
    same_value = library_skill("", after).description == text
    return "" if is_whole and same_value else "the description cannot be written without changing more"


def changes_description_alone(before: str, after: str) -> bool:
    """Say whether the frontmatter of a document is that of another one, or that with a description that may be."""
    new = library_skill("", after).description
    if frontmatter(before) == frontmatter(after):
        return True
    if not frontmatter(before) or description_fault(before, new):
        return False
    return frontmatter(with_description(before, " ".join(new.split()))) == frontmatter(after)
