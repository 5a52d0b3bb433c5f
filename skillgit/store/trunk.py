"""Which branch is the trunk: where seeds begin, promoted versions go, and what proposals are made for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from skillgit.store import refs
from skillgit.store.repo import Repo

_HEADS, _ORIGIN = "refs/heads/", "refs/remotes/origin/"
_PROPOSALS = f"{_HEADS}propose/"
_MOVE = re.compile(r"checkout: moving from (?P<left>\S+) to ")
"""What git writes into the log of HEAD when it goes elsewhere."""
_USUAL = ("main", "master", "trunk", "develop")


def trunk(repo: Repo) -> str:
    """Return the trunk of ``repo``, as ``refs/heads/NAME``; it may have no commit yet.

    The branch that HEAD is on. Branches of runs and proposals are never the trunk: where HEAD is on one of them, or
    on none, it is the first of these that exists here or on ``origin``: the branch that HEAD was on last,
    ``init.defaultBranch``, the branch of ``origin/HEAD``, the only branch there is, one with a usual name.
    """
    here = head_branch(repo)
    if here and repo.tip(here) is not None:
        return here
    return (
        _first_there(repo, _candidates(repo, is_left=not here))
        or here
        or f"{_HEADS}{repo.config('init.defaultBranch') or _USUAL[0]}"
    )


def usual_trunk(repo: Repo) -> str:
    """Return the branch that would be the trunk if HEAD were on none; empty without one."""
    return _first_there(repo, _candidates(repo, is_left=False))


def _first_there(repo: Repo, names: Iterable[str]) -> str:
    there = (name for name in names if repo.tip(name) is not None or repo.tip(_on_origin(name)) is not None)
    return next(there, "")


def trunk_tip(repo: Repo) -> str | None:
    """Return the commit of the trunk, as ``origin`` has it where it is not here; None if it has none yet."""
    name = trunk(repo)
    return repo.tip(name) or repo.tip(_on_origin(name))


def trunk_revision(repo: Repo) -> str:
    """Return what names the trunk on a command line: the branch, or that of ``origin`` where it is not here."""
    name = trunk(repo)
    is_elsewhere = repo.tip(name) is None and trunk_tip(repo) is not None
    return refs.short(_on_origin(name) if is_elsewhere else name)


def _on_origin(name: str) -> str:
    return name.replace(_HEADS, _ORIGIN, 1)


def head_branch(repo: Repo) -> str:
    """Return the branch that HEAD is on; empty if it is on none that could be a trunk."""
    target = repo.raw.lookup_reference("HEAD").target
    return target if isinstance(target, str) and is_plain(target) else ""


def is_plain(name: str) -> bool:
    """Say whether the ref ``name`` is a branch of people's: neither one of a run nor one of a proposal."""
    return name.startswith(_HEADS) and not name.startswith(_PROPOSALS) and refs.parse(name) is None


def left_branches(repo: Repo) -> Iterator[str]:
    """Yield the branches that HEAD has left, the last one first."""
    for entry in repo.raw.lookup_reference("HEAD").log():
        if match := _MOVE.match(entry.message or ""):  # git writes an entry without words for a new work tree
            yield f"{_HEADS}{match['left']}"


def _candidates(repo: Repo, *, is_left: bool) -> Iterator[str]:
    if is_left:
        yield from (name for name in left_branches(repo) if is_plain(name) and repo.tip(name) is not None)
    if default := repo.config("init.defaultBranch"):
        yield f"{_HEADS}{default}"
    origin = repo.raw.references.get(f"{_ORIGIN}HEAD")
    if origin is not None and isinstance(origin.target, str):
        yield origin.target.replace(_ORIGIN, _HEADS, 1)
    plain = [name for name in repo.raw.references if is_plain(name)]
    if len(plain) == 1:
        yield plain[0]
    yield from (f"{_HEADS}{name}" for name in _USUAL)
