"""Read a skill from a folder of ordinary files, for the seed skills that environments ship."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillgit.domain.skill import Skill
from skillgit.errors import SkillError

if TYPE_CHECKING:
    from pathlib import Path


def read_skill(folder: Path) -> Skill:
    """Return the skill in ``folder``, which gives it its name; hidden files and byte code are left out.

    Raises:
        SkillError: It is no folder, or holds no ``SKILL.md``.
    """
    if not folder.is_dir():
        raise SkillError(f"there is no skill folder {folder}", hint="a skill is a folder with a SKILL.md")
    paths = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    kept = {
        relative.as_posix(): path
        for relative, path in paths.items()
        if not any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
    }
    return Skill(
        name=folder.resolve().name,
        files={relative: path.read_bytes() for relative, path in kept.items()},
        executable=frozenset(relative for relative, path in kept.items() if os.access(path, os.X_OK)),
    )
