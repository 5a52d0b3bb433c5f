"""Owns which Python runs inside a sandbox, and which files of this machine every job may read."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, installed

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_SETTINGS = (
    "alternatives fonts ld.so.cache ld.so.conf ld.so.conf.d libreoffice localtime magic mime.types nsswitch.conf "
    "os-release protocols services timezone"
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")
_PACKAGES = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python that jobs can run.

    Attributes:
        packages: Folders of packages; it may find some of them by itself.
    """

    path: str
    packages: tuple[str, ...] = ()


def system_paths() -> tuple[Path, ...]:
    """Return the programs, libraries and settings of this machine that jobs may read."""
    paths = (*(Path(name) for name in _SYSTEM), *(Path("/etc", name) for name in _SETTINGS.split()))
    return tuple(path for path in paths if path.exists())


@cache
def python_paths() -> tuple[Path, ...]:
    """Return the files and folders of this Python: programs, standard library, packages; never the folder around it."""
    roots = dict.fromkeys(Path(prefix) for prefix in (sys.base_prefix, sys.prefix))
    real = Path(sys.executable).resolve()
    parts = [root / part for root in roots if root != Path("/usr") for part in _PARTS]
    candidates = dict.fromkeys((*parts, real.parent, *map(Path, package_folders())))
    return tuple(path for path in candidates if path.exists() and not path.is_relative_to("/usr"))


@cache
def package_folders() -> tuple[str, ...]:
    """Return the folders that packages are installed in."""
    return tuple(dict.fromkeys(path for path in sys.path if Path(path).name in _PACKAGES and Path(path).is_dir()))


@cache
def hidden_paths() -> tuple[Path, ...]:
    """Return the installed packages that no job may read: skillgit and all plug-ins, which bring items with answers."""
    modules = {
        plugin.reference.split(".")[0].split(":")[0]
        for group in (ENVIRONMENTS, BACKENDS)
        for plugin in installed(group)
    }
    folders = [Path(folder) / name for folder in package_folders() for name in sorted({"skillgit", *modules})]
    return tuple(path for path in folders if path.is_dir())


def covering(root: Path, holes: tuple[Path, ...]) -> list[str]:
    """Return paths that together are ``root`` without ``holes``."""
    if root in holes:
        return []
    if not any(hole.is_relative_to(root) for hole in holes):
        return [str(root)]
    return [path for child in sorted(root.iterdir()) for path in covering(child, holes)]


def usable_by(uid: int, path: Path) -> bool:
    """Say whether the user ``uid``, in no group of ours, can reach and read ``path``."""
    real = path.resolve()
    try:
        return _allows(uid, real, stat.S_IROTH) and all(_allows(uid, parent, stat.S_IXOTH) for parent in real.parents)
    except OSError:
        return False


def interpreter_for(uid: int | None) -> Interpreter | None:
    """Return a Python of this one's version that the user ``uid`` can run; None if there is none.

    Args:
        uid: The user; None for the one of this process.
    """
    if uid is None or all(usable_by(uid, path) for path in (Path(sys.executable), Path(os.__file__))):
        return Interpreter(path=sys.executable, packages=package_folders())
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = (Path("/usr/local/bin"), Path("/usr/bin"))
    programs = [folder / name for folder in folders if usable_by(uid, folder / name)]
    packages = tuple(folder for folder in package_folders() if usable_by(uid, Path(folder)))
    return Interpreter(path=str(programs[0]), packages=packages) if programs else None


def _allows(uid: int, path: Path, right: int) -> bool:
    status = path.stat()
    return bool(status.st_mode & (right << 6 if status.st_uid == uid else right))
