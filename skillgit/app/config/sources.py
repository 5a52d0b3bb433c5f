"""Find configuration files: the user's by path, the shipped ones by name."""

from __future__ import annotations

from pathlib import Path

import skillgit
from skillgit.app.config.wording import nearest
from skillgit.errors import ConfigError

_SUFFIXES = ("", ".yaml", ".yml")


def shipped_folder() -> Path:
    """Return the folder of the shipped configurations: inside the package, or at the top of a checkout."""
    package = Path(skillgit.__file__).resolve().parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def shipped() -> tuple[str, ...]:
    """Return the names of the shipped configurations."""
    folder = shipped_folder()
    paths = [path.relative_to(folder) for path in folder.rglob("*.yaml")]
    return tuple(sorted(path.with_suffix("").as_posix() for path in paths if path.parts[0] != "_base_"))


def find(name: str, folder: Path) -> Path:
    """Return the file that ``name`` means: a path that starts at ``folder``, else a shipped configuration.

    Raises:
        ConfigError: There is none.
    """
    for start in (folder, shipped_folder()):
        for suffix in _SUFFIXES:
            path = start / f"{name}{suffix}"
            if path.is_file():
                return path.resolve()
    near = nearest(name, shipped())
    listed = f"configurations that come with skillgit: {', '.join(shipped())}"
    raise ConfigError(f"there is no configuration '{name}'", hint=f"did you mean '{near}'?" if near else listed)


def is_shipped(path: Path) -> bool:
    """Say whether ``path`` is one of the shipped configurations."""
    return path.is_relative_to(shipped_folder().resolve())
