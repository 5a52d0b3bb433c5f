"""Bringing a version to ``main``: one merge commit, and the work trees that have ``main`` checked out follow it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import FileMode

from skillgit.errors import ConflictError, RevisionNotFoundError
from skillgit.store import refs
from skillgit.store.binary import git
from skillgit.store.line import changes_skill, first_parents
from skillgit.store.repo import Repo
from skillgit.store.transaction import RefUpdate, update_refs
from skillgit.store.tree import with_folder

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.store.binary import Answer

TRAILER = "Promoted"
"""``Skillgit-Promoted: <run>/v<N>``: a promotion is no event of a run, and this is its one trailer."""

_PROMOTED = re.compile(rf"^Skillgit-{TRAILER}: (?P<name>\S+)$", re.MULTILINE)
_IN_THE_WAY = re.compile(r"^error: [^']*'(?P<path>[^']+)'", re.MULTILINE)
_LOOKED_BACK = 10_000
"""Commits of ``main`` that are looked through for the last change of a skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The newest commit on ``main`` that changed a skill folder.

    Attributes:
        commit: The commit.
        subject: The first line of its message.
        promoted: The version that it promoted, as ``<run>/v<N>``; empty for a change by hand.
    """

    commit: str
    subject: str
    promoted: str


def main_tip(repo: Repo) -> str:
    """Return the commit that ``main`` points to.

    Raises:
        RevisionNotFoundError: There is no ``main``.
    """
    tip = repo.tip(refs.MAIN)
    if tip is None:
        raise RevisionNotFoundError("the repository has no branch main", hint="skillgit init")
    return tip


def last_change(repo: Repo, path: str, within: int = _LOOKED_BACK) -> LastChange | None:
    """Return the newest commit on ``main`` that changed the folder ``path``; None if none of the newest ones did.

    Args:
        repo: The repository.
        path: The skill folder.
        within: How many commits to look through.
    """
    tip = repo.tip(refs.MAIN)
    for looked, commit in enumerate(first_parents(repo, tip) if tip else ()):
        if looked >= within:
            return None
        if changes_skill(commit, path) or (not commit.parent_ids and _folder(commit, path) is not None):
            match = _PROMOTED.search(commit.message)
            subject = commit.message.partition("\n")[0]
            return LastChange(commit=str(commit.id), subject=subject, promoted=match["name"] if match else "")
    return None


def holds(repo: Repo, path: str, version: str) -> bool:
    """Say whether ``main`` has the folder ``path`` of the commit ``version``."""
    tip = repo.tip(refs.MAIN)
    return tip is not None and _folder(repo.commit(tip), path) == _folder(repo.commit(version), path)


def _folder(commit: pygit2.Commit, path: str) -> pygit2.Oid | None:
    try:
        return commit.tree[path].id
    except KeyError:
        return None


def promote(repo: Repo, path: str, version: str, message: str, *, time: datetime, reason: str) -> str:
    """Merge the folder ``path`` of the commit ``version`` into ``main``; return the merge commit.

    The tree is that of ``main`` with this one folder replaced. Work trees that have ``main`` checked out take it in as
    with ``git merge``: nothing that is not committed is overwritten.

    Args:
        repo: The repository.
        path: The skill folder.
        version: The commit of the version.
        message: The commit message.
        time: When.
        reason: What is said in the reflog.

    Raises:
        ConcurrentWriteError: ``main`` moved meanwhile.
        ConflictError: A work tree has changes that would be lost, or a file is in the way; nothing was written.
    """
    tip = main_tip(repo)
    new = _merged(repo, tip, path, version)
    identity = repo.identity()
    signature = pygit2.Signature(identity.name, identity.email, int(time.timestamp()), 0)
    commit = str(repo.raw.create_commit(None, signature, signature, message, new.id, [tip, version]))
    trees = _work_trees(repo)
    for tree in trees:
        _check(tree, _follow(tree, tip, commit, "--dry-run"))
    update_refs(repo, [RefUpdate(name=refs.MAIN, new=commit, expected=tip)], identity=identity, reason=reason)
    for tree in trees:
        _check(tree, _follow(tree, tip, commit), moved=True)
    return commit


def check_work_trees(repo: Repo, path: str, version: str) -> None:
    """Refuse a promotion that a work tree could not follow.

    Raises:
        ConflictError: One has changes that would be lost.
    """
    tip = main_tip(repo)
    new = _merged(repo, tip, path, version)
    for tree in _work_trees(repo):
        _check(tree, _follow(tree, tip, str(new.id), "--dry-run"))


def _merged(repo: Repo, tip: str, path: str, version: str) -> pygit2.Tree:
    """Return the tree of ``tip`` with the folder ``path`` of ``version``."""
    old, top = repo.commit(tip).tree, path.partition("/")[0]
    if top in old and old[top].filemode != FileMode.TREE:
        raise ConflictError(f"'{top}' on main is a file, not a folder", hint="rename it")
    folder = _folder(repo.commit(version), path)
    if folder is None:
        raise RevisionNotFoundError(f"{version[:12]} has no '{path}'", hint=f"git ls-tree -r {version[:12]}")
    return with_folder(repo, old, path, folder)


def _work_trees(repo: Repo) -> list[Repo]:
    """Return the work trees that have ``main`` checked out, linked ones included."""
    listed = git(repo, "worktree", "list", "--porcelain").out.decode(errors="surrogateescape")
    found: list[Repo] = []
    for entry in listed.split("\n\n"):
        facts = dict(line.partition(" ")[::2] for line in entry.split("\n") if line)
        place = Path(facts.get("worktree", ""))
        if facts.get("branch") == refs.MAIN and "bare" not in facts and place.is_dir():
            found.append(Repo.discover(place))
    return found


def _follow(tree: Repo, old: str, new: str, *options: str) -> Answer:
    git(tree, "update-index", "-q", "--refresh")
    return git(tree, "read-tree", "-m", "-u", *options, old, new)


def _check(tree: Repo, answer: Answer, *, moved: bool = False) -> None:
    if answer.code == 0:
        return
    match = _IN_THE_WAY.search(answer.error)
    said = f"'{match['path']}' differs" if match else answer.error.partition("\n")[0] or "git read-tree failed"
    if moved:
        raise ConflictError(
            f"main has the version now, but the work tree {tree.workdir} cannot take it in: {said}",
            hint="git stash, then git reset --keep main",
        )
    raise ConflictError(
        f"the work tree {tree.workdir} has main checked out, and changes in it would be lost: {said}",
        hint="nothing was written; commit the changes or put them away: git stash",
    )
