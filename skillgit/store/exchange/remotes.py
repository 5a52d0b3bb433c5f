"""The remotes of a repository as git's configuration names them, and notes of two repositories joined."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError, NotFoundError, UsageError
from skillgit.store import refs
from skillgit.store.git_binary import command, git
from skillgit.store.lock import repo_lock
from skillgit.store.run_ownership import is_asked
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.store.git_binary import GitResult
    from skillgit.store.repo import Repo


_USUAL = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    name: str
    url: str
    push_url: str


def remotes(repo: Repo) -> tuple[Remote, ...]:
    """Return the remotes in the order of their names."""
    entries = (
        Remote(name=str(remote.name), url=str(remote.url), push_url=str(remote.push_url or remote.url))
        for remote in repo.raw.remotes
        if remote.name is not None and remote.url is not None
    )
    return tuple(sorted(entries, key=lambda remote: remote.name))


def find_remote(repo: Repo, name: str | None) -> Remote:
    """Return the remote called ``name``; without a name ``origin``, or the only one."""
    candidates = remotes(repo)
    names = [remote.name for remote in candidates]
    target = name or (_USUAL if _USUAL in names or len(names) != 1 else names[0])
    match = next((remote for remote in candidates if remote.name == target), None)
    if match is not None:
        return match
    hint = f"skillgit remote add {quote(target) if '/' not in target else _USUAL} URL"
    if candidates:
        hint = f"remotes: {', '.join(names)}; or {hint}"
    raise NotFoundError(f"there is no remote '{target}'", hint=hint)


def may_have_evidence(repo: Repo, run: str) -> bool:
    """Say whether a pull of evidence may bring some of ``run``: its remote was not asked, or went on since."""
    try:
        remote = find_remote(repo, None)
    except NotFoundError:
        return False
    tip = repo.tip(refs.tracking(remote.name, refs.run_branch(run)))
    return tip is not None and not is_asked(repo, run, tip)


def add_remote(repo: Repo, name: str, url: str) -> None:
    if any(remote.name == name for remote in remotes(repo)):
        raise ConflictError(f"there is a remote '{name}' already", hint=f"skillgit remote set-url {quote(name)} URL")
    if name.startswith("-"):
        # git takes it, and then takes it for an option wherever it is named
        raise UsageError(f"'{name}' cannot be the name of a remote", hint="skillgit remote add NAME URL")
    _done(git(repo, "remote", "add", "--", name, url), "skillgit remote add NAME URL")


def set_url(repo: Repo, name: str, url: str) -> None:
    find_remote(repo, name)
    _done(git(repo, "remote", "set-url", "--", name, url), "skillgit remote set-url NAME URL")


def remove_remote(repo: Repo, name: str) -> int:
    """Remove the remote ``name`` and the copies of its refs; return the number of those."""
    find_remote(repo, name)
    branches, hidden = f"refs/remotes/{name}/", f"refs/skillgit/remotes/{name}/"
    output = git(repo, "for-each-ref", "--format=%(refname) %(objectname)", branches, hidden).out.decode()
    copies = dict(line.split() for line in output.splitlines())
    _done(git(repo, "remote", "remove", name), "skillgit remote")
    deletions = [RefUpdate(name=ref, new=None, expected=oid) for ref, oid in copies.items() if ref.startswith(hidden)]
    update_refs(repo, deletions, identity=repo.identity(), reason=f"skillgit: remove remote {name}")
    return len(copies)


def _done(answer: GitResult, hint: str) -> None:
    if answer.code != 0:
        message = answer.error.rpartition("\n")[2].removeprefix("fatal: ").removeprefix("error: ")
        raise UsageError(f"git says: {message}", hint=hint)


_SHORT_NAME = refs.NOTES.removeprefix("refs/notes/")


def join_notes(repo: Repo, theirs: str | None, *, time: datetime) -> bool:
    """Take in the notes that the commit ``theirs`` holds and return whether that changed ours."""
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
    environment: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": identity.name, f"GIT_{who}_EMAIL": identity.email, f"GIT_{who}_DATE": moment}
    options = (f"--git-dir={repo.raw.path}", "notes", f"--ref={_SHORT_NAME}", "merge", "-q")
    process = subprocess.run(  # noqa: S603 - a list
        command(*options, "-s", "cat_sort_uniq", theirs),
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if process.returncode != 0:
        text = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ConflictError(f"git cannot merge the notes of two repositories: {text}", hint="git notes merge --abort")
