"""Notes of two repositories become one: the lines of both, each once."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError
from skillgit.store import refs
from skillgit.store.binary import command
from skillgit.store.lock import repo_lock
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.store.repo import Repo

_SHORT_NAME = refs.NOTES.removeprefix("refs/notes/")


def join_notes(repo: Repo, theirs: str | None, *, time: datetime) -> bool:
    """Take in the notes that the commit ``theirs`` holds and return whether that changed ours.

    Raises:
        ConflictError: Git cannot merge them.
    """
    ours = repo.tip(refs.NOTES)
    if theirs is None or ours == theirs:
        return False
    if ours is None:
        update = RefUpdate(name=refs.NOTES, new=theirs, expected=None)
        update_refs(repo, [update], identity=repo.identity(), reason="skillgit: notes of another repository")
        return True
    if repo.reaches(ours, theirs):
        return False
    with repo_lock(repo):
        # git moves the ref without a look at what it was; the lock keeps our own writers away meanwhile
        _merge(repo, theirs, time)
    return repo.tip(refs.NOTES) != ours


def _merge(repo: Repo, theirs: str, time: datetime) -> None:
    identity, moment = repo.identity(), f"{int(time.timestamp())} +0000"
    signed: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        signed |= {f"GIT_{who}_NAME": identity.name, f"GIT_{who}_EMAIL": identity.email, f"GIT_{who}_DATE": moment}
    place = (f"--git-dir={repo.raw.path}", "notes", f"--ref={_SHORT_NAME}", "merge", "-q")
    done = subprocess.run(  # noqa: S603 - a list
        command(*place, "-s", "cat_sort_uniq", theirs),
        env=os.environ | signed,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ConflictError(f"git cannot merge the notes of two repositories: {said}", hint="git notes merge --abort")
