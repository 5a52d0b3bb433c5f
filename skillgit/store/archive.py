"""The attic of a run: refused candidates whose branches were folded into one chain under a hidden ref.

``refs/skillgit/attic/<run>`` holds one commit for each folded candidate, with the parents *(attic before, candidate)*;
the first one has the candidate alone. So every candidate stays reachable, and the subject says which branch it was on.
The commits are signed as their candidates are, so that two clones that fold the same run get the same chain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygit2

from skillgit.errors import HistoryError
from skillgit.store import refs
from skillgit.store.git_activity import until_kept
from skillgit.store.repo import Repo, message_of
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_SUBJECT = re.compile(r"fold (?P<branch>rejected/\S+)\n")
_LINKED = 2
"""Parents of an attic commit that is not the first: the attic before it, and the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    branch: str  # the full name of the branch that it was on
    commit: str


def read_attic(repo: Repo, tip: str) -> list[Folded]:
    """Return the candidates in the chain that ends at ``tip``, oldest first; a HistoryError if it is no attic."""
    candidates: list[Folded] = []
    oid: str | None = tip
    while oid is not None:
        commit = repo.commit(oid)
        parents = [str(parent) for parent in commit.parent_ids]
        match = _SUBJECT.match(message_of(commit))
        branch = f"refs/heads/{match['branch']}" if match else ""
        ref = refs.parse(branch)
        if ref is None or ref.kind is not refs.RefKind.REJECTED or not 1 <= len(parents) <= _LINKED:
            raise HistoryError(f"commit {oid[:12]} of the attic folds no candidate", hint="skillgit fsck")
        candidates.append(Folded(branch=branch, commit=parents[-1]))
        oid = parents[0] if len(parents) == _LINKED else None
    return candidates[::-1]


def foldable(run: str, tips: Mapping[str, str]) -> list[Folded]:
    """Return the local branches with refused candidates of ``run``, in order."""
    own = {name: ref for name in sorted(tips) if (ref := refs.parse(name)) and ref.run == run and not ref.remote}
    return [Folded(branch=name, commit=tips[name]) for name, ref in own.items() if ref.kind is refs.RefKind.REJECTED]


def fold(repo: Repo, run: str) -> list[Folded]:
    """Move all refused candidates of ``run`` from their branches into its attic; return those that moved.

    The attic grows before the branches go: a process that dies in between leaves both, and the next call goes on.
    """
    tips = repo.tips()
    attic = refs.attic_ref(run)
    tip = tips.get(attic)
    moving = foldable(run, tips)
    oids = {entry.branch: entry.commit for entry in read_attic(repo, tip)} if tip else {}
    for entry in moving:
        if oids.get(entry.branch, entry.commit) != entry.commit:
            raise HistoryError(
                f"{refs.short(entry.branch)} is not the candidate that the attic has under that name",
                hint=f"look at both: git show {oids[entry.branch][:12]} {entry.commit[:12]}; then delete the wrong one",
            )

    def write() -> str | None:
        return extended(repo, tip, [entry for entry in moving if entry.branch not in oids])

    new, reason = until_kept(repo, write), f"skillgit: fold {run}"
    if new != tip:
        update_refs(repo, [RefUpdate(name=attic, new=new, old=tip)], reason=reason, write=write)
    guard = RefUpdate(name=attic, new=new, old=new)
    deletions = [RefUpdate(name=entry.branch, new=None, old=entry.commit) for entry in moving]
    if deletions:
        update_refs(repo, [guard, *deletions], reason=reason)
    return moving


def extended(repo: Repo, tip: str | None, candidates: Sequence[Folded]) -> str | None:
    """Append ``candidates`` to the chain that ends at ``tip`` and return its new end; no ref moves."""
    end = tip
    for entry in candidates:
        candidate = repo.commit(entry.commit)
        message = f"fold {refs.short(entry.branch)}\n\n{message_of(candidate).partition(chr(10))[0]}\n"
        end = repo.write_commit(candidate.committer, message, candidate.tree_id, [end, entry.commit])
    return end


def unfold(repo: Repo, run: str) -> list[Folded]:
    """Restore the branch of every candidate in the attic of ``run`` and remove the attic; return the candidates."""
    tips = repo.tips()
    attic = refs.attic_ref(run)
    tip = tips.get(attic)
    if tip is None:
        return []
    candidates = read_attic(repo, tip)
    updates = [
        RefUpdate(name=candidate.branch, new=candidate.commit, old=None)
        for candidate in candidates
        if tips.get(candidate.branch) != candidate.commit
    ]
    guard, reason = RefUpdate(name=attic, new=tip, old=tip), f"skillgit: unfold {run}"
    update_refs(repo, [guard, *updates], reason=reason)
    update_refs(repo, [RefUpdate(name=attic, new=None, old=tip)], reason=reason)
    return candidates


def _chained(repo: Repo, entry: Folded, before: str | None) -> str:
    candidate = repo.commit(entry.commit)
    oid = repo.raw.create_commit(
        None,
        candidate.committer,
        candidate.committer,
        f"fold {refs.short(entry.branch)}\n\n{message_of(candidate).partition(chr(10))[0]}\n",
        candidate.tree_id,
        [*([pygit2.Oid(hex=before)] if before else []), pygit2.Oid(hex=entry.commit)],
    )
    return str(oid)


def _move(repo: Repo, updates: Sequence[RefUpdate], reason: str, write: Callable[[], object] | None = None) -> None:
    update_refs(repo, updates, reason=reason, write=write)
