"""``main``: where the seed skills of a repository are, and how one is added without disturbing anybody."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import lexists
from shlex import quote
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import CheckoutStrategy, FileMode

from skillgit.errors import ConflictError
from skillgit.store import refs, tree
from skillgit.store.git_activity import until_kept
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.domain.skill import Skill
    from skillgit.store.repo import Repo

ATTRIBUTES = b"*.md diff=markdown\n*.md text eol=lf\n"
"""The ``.gitattributes`` of a repository that begins with a skill."""

_LITERAL = CheckoutStrategy.SAFE | CheckoutStrategy.RECREATE_MISSING | CheckoutStrategy.DISABLE_PATHSPEC_MATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    commit: str
    added: bool  # whether the skill was added now; otherwise it was there


def skills_on_main(repo: Repo) -> tuple[str, ...]:
    tip = repo.tip(refs.MAIN)
    return skills_at(repo, tip) if tip else ()


def skills_at(repo: Repo, commit: str) -> tuple[str, ...]:
    """Return the paths of the skill folders under ``skills/`` at ``commit``."""
    folder = tree.entry_at(repo.commit(commit).tree, "skills")
    if not isinstance(folder, pygit2.Tree):
        return ()
    return tuple(
        f"skills/{entry.name}"
        for entry in folder
        if isinstance(entry, pygit2.Tree) and tree.entry_at(entry, "SKILL.md")
    )


def add_skill(repo: Repo, path: str, skill: Skill, *, time: datetime) -> Seeded:
    """Commit ``skill`` to the folder ``path`` on ``main``, unless something is there already.

    A missing ``main`` begins at HEAD; a repository without commits gets ``.gitattributes`` too. Where the work tree is
    on ``main``, the new files appear in it and in git's index; existing files are left alone.
    """
    tip = repo.tip(refs.MAIN)
    base = tip or (None if repo.raw.head_is_unborn else str(repo.raw.head.target))
    old = repo.commit(base).tree if base else None
    there = old is not None and tree.entry_at(old, path) is not None
    if tip and there:
        return Seeded(commit=tip, added=False)

    def write() -> tuple[pygit2.Tree, str]:
        new = _with_skill(repo, old, path, skill)
        if base and there:
            return new, base
        return new, repo.write_commit(repo.signature(time), f"Add skill {skill.name}\n", new.id, [base])

    new, commit = until_kept(repo, write)
    update = RefUpdate(name=refs.MAIN, new=commit, expected=tip)
    reason = f"skillgit: add skill {skill.name}"
    update_refs(repo, [update], reason=reason, write=write)
    try:
        _follow(repo, old, new)
    except (pygit2.GitError, OSError) as error:
        raise ConflictError(
            f"main has the skill now, but the work tree cannot take it in: {error}",
            hint=f"git checkout main -- {quote(path)}",
        ) from error
    return Seeded(commit=commit, added=not there)


def _with_skill(repo: Repo, old: pygit2.Tree | None, path: str, skill: Skill) -> pygit2.Tree:
    if old is None:
        return tree.with_skill(repo, None, path, skill, {".gitattributes": ATTRIBUTES})
    top = path.partition("/")[0]
    if tree.read_file(old, top) is not None:
        raise ConflictError(f"'{top}' on main is a file, not a folder", hint="rename it")
    return old if tree.entry_at(old, path) is not None else tree.with_skill(repo, old, path, skill)


def _follow(repo: Repo, old: pygit2.Tree | None, new: pygit2.Tree) -> None:
    """Let index and work tree take in what a commit on the checked-out ``main`` added."""
    if repo.workdir is None:
        return
    if repo.raw.head_is_unborn and len(repo.raw.index) == 0:
        # nothing was ever committed or staged, so that no branch is left behind
        repo.raw.set_head(refs.MAIN)
    if repo.raw.head_is_unborn or repo.raw.head.name != refs.MAIN:
        return
    index = repo.raw.index
    changes = new.diff_to_tree(swap=True) if old is None else old.diff_to_tree(new)
    files = [delta.new_file for delta in changes.deltas if delta.new_file.path not in index]
    for file in files:
        index.add(pygit2.IndexEntry(file.path, file.id, FileMode(file.mode)))
    index.write()
    missing = [file.path for file in files if not lexists(repo.workdir / file.path)]
    if missing:
        repo.raw.checkout_index(strategy=_LITERAL, paths=missing)  # type: ignore[no-untyped-call]


def skill_trees(repo: Repo, commit: str) -> dict[str, str]:
    """Return the path of every skill folder under ``skills/`` at ``commit`` with the id of its tree."""
    return {path: skill_tree(repo, commit, path) for path in skills_at(repo, commit)}


def skill_tree(repo: Repo, commit: str, path: str) -> str:
    """Return the id of the tree at ``path`` of ``commit``; empty if the commit or the folder is not here."""
    obj = repo.raw[commit] if repo.has_object(commit) else None
    folder = tree.entry_at(obj.tree, path) if isinstance(obj, pygit2.Commit) else None
    return str(folder.id) if isinstance(folder, pygit2.Tree) else ""
