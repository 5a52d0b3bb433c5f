"""The remotes of a repository as git's configuration names them, and notes of two repositories joined."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError, NotFoundError, UsageError
from skillgit.store import refs
from skillgit.store.binary import command, git
from skillgit.store.lock import repo_lock
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.store.binary import Answer
    from skillgit.store.repo import Repo


_USUAL = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Another repository under a short name.

    Attributes:
        name: The name.
        url: Where it is fetched from.
        push_url: Where it is pushed to.
    """

    name: str
    url: str
    push_url: str


def remotes(repo: Repo) -> tuple[Remote, ...]:
    """Return the remotes in the order of their names."""
    found = (
        Remote(name=str(one.name), url=str(one.url), push_url=str(one.push_url or one.url))
        for one in repo.raw.remotes
        if one.name is not None and one.url is not None
    )
    return tuple(sorted(found, key=lambda one: one.name))


def find_remote(repo: Repo, name: str | None) -> Remote:
    """Return the remote called ``name``; without a name ``origin``, or the only one.

    Raises:
        NotFoundError: There is none, or it is not clear which one is meant.
    """
    known = remotes(repo)
    names = [one.name for one in known]
    wanted = name or (_USUAL if _USUAL in names or len(names) != 1 else names[0])
    found = next((one for one in known if one.name == wanted), None)
    if found is not None:
        return found
    hint = f"skillgit remote add {wanted if '/' not in wanted else _USUAL} URL"
    if known:
        hint = f"remotes: {', '.join(names)}; or {hint}"
    raise NotFoundError(f"there is no remote '{wanted}'", hint=hint)


def add_remote(repo: Repo, name: str, url: str) -> None:
    """Name another repository.

    Raises:
        ConflictError: The name is taken.
        UsageError: It cannot be a name.
    """
    if any(one.name == name for one in remotes(repo)):
        raise ConflictError(f"there is a remote '{name}' already", hint=f"skillgit remote set-url {name} URL")
    if name.startswith("-"):
        # git takes it, and then takes it for an option wherever it is named
        raise UsageError(f"'{name}' cannot be the name of a remote", hint="skillgit remote add NAME URL")
    _done(git(repo, "remote", "add", "--", name, url), "skillgit remote add NAME URL")


def set_url(repo: Repo, name: str, url: str) -> None:
    """Give the remote ``name`` another address.

    Raises:
        NotFoundError: There is no such remote.
        UsageError: Git does not take the address.
    """
    find_remote(repo, name)
    _done(git(repo, "remote", "set-url", "--", name, url), "skillgit remote set-url NAME URL")


def remove_remote(repo: Repo, name: str) -> int:
    """Forget the remote ``name`` and the copies of its refs; return how many those were.

    Raises:
        NotFoundError: There is no such remote.
    """
    find_remote(repo, name)
    branches, hidden = f"refs/remotes/{name}/", f"refs/skillgit/remotes/{name}/"
    listed = git(repo, "for-each-ref", "--format=%(refname) %(objectname)", branches, hidden).out.decode()
    copies = dict(line.split() for line in listed.splitlines())
    _done(git(repo, "remote", "remove", name), "skillgit remote")
    gone = [RefUpdate(name=ref, new=None, expected=oid) for ref, oid in copies.items() if ref.startswith(hidden)]
    update_refs(repo, gone, identity=repo.identity(), reason=f"skillgit: remove remote {name}")
    return len(copies)


def _done(answer: Answer, hint: str) -> None:
    if answer.code != 0:
        said = answer.error.rpartition("\n")[2].removeprefix("fatal: ").removeprefix("error: ")
        raise UsageError(f"git says: {said}", hint=hint)


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
