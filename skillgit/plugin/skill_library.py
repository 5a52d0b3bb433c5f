"""Installed skills as agents list them: names and descriptions, read leniently from folders of anybody's."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import yaml

from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.skill_listing import LibrarySkill
from skillgit.files import read_plain

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 1 << 20  # bytes of a document; a longer one is no skill


def library_skill(folder: str, document: str, *, is_users: bool = False) -> LibrarySkill:
    """Return what an agent would list of the skill in a folder of this name; what cannot be read is empty."""
    text = document.removeprefix("\ufeff").replace("\r\n", "\n")
    inside = "\n".join(frontmatter(text).rstrip().splitlines()[1:-1])
    fields: Any = None
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
