"""Whether git itself works in a repository now, as far as this machine tells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.repo import Repo

_PROCESSES = Path("/proc")


def git_is_at_work(repo: Repo) -> bool:
    """Say whether a process of git's runs in a folder of ``repo``; False where processes cannot be looked at."""
    inside = [folder.resolve() for folder in (repo.workdir, repo.common_dir) if folder is not None]
    return any(folder.is_relative_to(own) for folder in _folders_of_git() for own in inside)


def _folders_of_git() -> Iterator[Path]:
    """Yield the folders that processes of git's run in; those of other people are left out."""
    for process in _PROCESSES.glob("[0-9]*"):
        try:
            name = (process / "comm").read_text().strip()
            if name == "git" or name.startswith("git-"):
                yield (process / "cwd").readlink()
        except OSError:
            # it has ended, or is somebody else's
            continue
