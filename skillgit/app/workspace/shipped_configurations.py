"""The configurations that come with skillgit: where they are, and their names."""

from __future__ import annotations

from pathlib import Path

import skillgit

USUAL = "tasks/default"
"""The one that trains on the tasks of a skill."""


def shipped_folder() -> Path:
    """Return the folder of the shipped configurations: inside the package, or at the top of a checkout."""
    package = Path(skillgit.__file__).resolve().parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def shipped() -> tuple[str, ...]:
    folder = shipped_folder()
    paths = [path.relative_to(folder) for path in folder.rglob("*.yaml")]
    return tuple(sorted(path.with_suffix("").as_posix() for path in paths if path.parts[0] != "_base_"))


def usual(directory: Path) -> str:
    """Return the name of :data:`USUAL`, or its path where a file below ``directory`` bears the name."""
    is_taken = any((directory / f"{USUAL}{suffix}").is_file() for suffix in ("", ".yaml", ".yml"))
    return shipped_file(USUAL) if is_taken else USUAL


def shipped_file(name: str) -> str:
    """Return the path of the configuration that comes with skillgit as ``name``.

    What a command takes of its own accord is named so: by the name alone it could be a file of a stranger's repository,
    which may name programs.
    """
    return str(shipped_folder() / f"{name}.yaml")
