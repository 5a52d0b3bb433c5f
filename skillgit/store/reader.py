"""History is read here: runs, their events, the skills of their versions.

A run is one walk along its accepted line and its slow line, back to the event that started it, plus one look at each
rejected candidate. What lies before the start is somebody else's history and is not touched.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.event import RunStarted, SlowProposed, event_order
from skillgit.domain.skill import DOCUMENT, Skill, slow_guidance
from skillgit.errors import HistoryError, RevisionNotFoundError
from skillgit.store import codec, history, refs, tree
from skillgit.store.record import Recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.domain.event import Event
    from skillgit.store.repo import Repo

MEMORY = "META.md"
"""The file on the slow line that holds what the optimizer remembers."""


def tips(repo: Repo) -> dict[str, str]:
    """Return all refs that skillgit owns or follows, with what they point to."""
    return repo.tips()


def runs(repo: Repo) -> list[str]:
    """Return the names of all runs, those that only a remote-tracking branch knows included."""
    return history.run_names(repo.tips())


def read_run(repo: Repo, run: str) -> list[Recorded]:
    """Return the events of ``run`` in their order.

    Raises:
        RevisionNotFoundError: There is no such run.
        HistoryError: A commit of it cannot be read.
    """
    return read_new(repo, run, {})


def read_new(repo: Repo, run: str, since: Mapping[str, str]) -> list[Recorded]:
    """Return the events of ``run``, in their order, that are not reached from the tips ``since``.

    Where a tip is no ancestor of what its ref points to now, the whole branch is returned.

    Raises:
        RevisionNotFoundError: There is no such run.
        HistoryError: A commit of it cannot be read.
    """
    branches = history.sources(repo, run, repo.tips())
    if not branches:
        raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    known = frozenset(since.values())
    found = [record for branch in branches for record in _line(repo, branch, run, known)]
    return sorted(found, key=lambda record: event_order(record.event))


def _line(repo: Repo, branch: history.Source, run: str, known: frozenset[str]) -> list[Recorded]:
    """Return the events of one branch, oldest first."""
    if branch.ref.kind is refs.Kind.REJECTED:
        return [] if branch.tip in known else [read_commit(repo, branch.tip)]
    found: list[Recorded] = []
    for commit in first_parents(repo, branch.tip):
        if str(commit.id) in known:
            break
        record = _recorded(commit)
        if branch.ref.kind is refs.Kind.SLOW and not isinstance(record.event, SlowProposed):
            break
        found.append(record)
        if isinstance(record.event, RunStarted):
            break
    else:
        raise HistoryError(f"run {run} has no beginning on {refs.short(branch.actual)}", hint="skillgit fsck")
    return found[::-1]


def first_parents(repo: Repo, tip: str) -> Iterator[pygit2.Commit]:
    """Yield the commit ``tip``, its first parent and so on, as far as there is one."""
    oid: str | pygit2.Oid | None = tip
    while oid is not None:
        commit = repo.commit(str(oid))
        yield commit
        parents = commit.parent_ids
        oid = parents[0] if parents else None


def read_commit(repo: Repo, oid: str) -> Recorded:
    """Return the event of the commit ``oid``.

    Raises:
        RevisionNotFoundError: There is no such commit.
        HistoryError: It holds no event, or one that cannot be read.
    """
    return _recorded(repo.commit(oid))


def message(repo: Repo, oid: str) -> str:
    """Return the whole message of the commit ``oid``."""
    return str(repo.commit(oid).message)


def skill_at(repo: Repo, oid: str, path: str) -> Skill:
    """Return the skill in the folder ``path`` of the commit ``oid``.

    Raises:
        RevisionNotFoundError: There is no such commit, or no such folder in it.
        SkillError: The folder is not a skill.
    """
    return tree.read_skill(repo.commit(oid).tree, path)


def resolve(repo: Repo, name: str) -> str:
    """Return the commit that git calls ``name``.

    Raises:
        RevisionNotFoundError: Git knows no commit of that name.
    """
    try:
        found = repo.raw.revparse_single(name)
        return str(found.peel(pygit2.Commit).id)
    except (KeyError, ValueError, pygit2.GitError) as error:
        raise RevisionNotFoundError(f"there is no revision '{name}'", hint="skillgit log") from error


def _recorded(commit: pygit2.Commit) -> Recorded:
    try:
        decoded = codec.decode_with(commit.message, lambda skill: slow_text(commit.tree, skill))
    except HistoryError as error:
        raise type(error)(f"commit {str(commit.id)[:12]}: {error.message}", hint=error.hint) from error
    return recorded(commit, decoded.event, decoded.evidence)


def recorded(commit: pygit2.Commit, event: Event, evidence: str) -> Recorded:
    """Return ``event`` with what its commit says about itself."""
    return Recorded(
        event=event,
        commit=str(commit.id),
        parents=tuple(str(parent) for parent in commit.parent_ids),
        time=datetime.fromtimestamp(commit.commit_time, UTC),
        evidence=evidence,
        tree=str(commit.tree_id),
        branch=refs.branch_of(event),
    )


def slow_text(root: pygit2.Tree, skill: str) -> codec.SlowText:
    """Return guidance and memory as the tree ``root`` of a commit on the slow line holds them."""
    document = tree.read_file(root, f"{skill}/{DOCUMENT}") or b""
    memory = tree.read_file(root, MEMORY) or b""
    return codec.SlowText(
        guidance=slow_guidance(document.decode(errors="replace")), memory=memory.decode(errors="replace")
    )
