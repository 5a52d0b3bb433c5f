"""History is read here: runs, their events, the skills of their versions.

A run is one walk along its accepted line and its slow line, back to the event that started it, plus one look at each
rejected candidate. What lies before the start is someone else's history and is not touched.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.event import SlowProposed
from skillgit.domain.event_order import event_at
from skillgit.domain.protected_regions import slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import HistoryError, RevisionNotFoundError, TrailerError
from skillgit.store import accepted_line, commit_message, history, refs, trailers, tree
from skillgit.store.accepted_line import first_parents as first_parents  # noqa: PLC0414 - part of reading history
from skillgit.store.repo import REPAIR, message_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo


@contextmanager
def bulk_reading() -> Iterator[None]:
    """Let a block, and processes that it forks, read objects without hashing or keeping them."""
    _hash_and_keep(is_enabled=False)
    try:
        yield
    finally:
        _hash_and_keep(is_enabled=True)


def _hash_and_keep(*, is_enabled: bool) -> None:
    pygit2.settings.enable_strict_hash_verification(is_enabled)
    pygit2.settings.enable_caching(is_enabled)


MEMORY = "META.md"
"""The file on the slow line that holds what the optimizer remembers."""


def tips(repo: Repo) -> dict[str, str]:
    return repo.tips()


def runs(repo: Repo) -> list[str]:
    """Return the names of all runs, including those that only a remote-tracking branch has."""
    return history.run_names(repo.tips())


def read_run(repo: Repo, run: str) -> list[Recorded]:
    """Return the events of ``run`` in their order; a RevisionNotFoundError without such a run."""
    return read_new(repo, run, {})


def read_new(repo: Repo, run: str, since: Mapping[str, str], now: Mapping[str, str] | None = None) -> list[Recorded]:
    """Return the events of ``run``, in their order, that are not reached from the tips ``since``.

    Where a tip is no ancestor of what its ref points to now, the whole branch is returned. ``now`` are the refs of the
    run, if the caller has them.
    """
    branches = history.sources(repo, run, repo.tips(run) if now is None else now)
    if not branches:
        raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    boundary = frozenset(since.values())
    chain, stop = accepted_line.links(repo, branches[0], boundary, slow_text)
    on_line = {str(link.commit.id) for link in chain}
    records = {record.commit: record for branch in branches[1:] for record in _side(repo, branch, boundary)}
    # A branch that someone moved may lead to an event that another one has already.
    sides = [record for commit, record in records.items() if commit not in on_line]
    before = _place_before(repo, run, chain, stop)
    if stop is not None and any(
        link.decoded is None and accepted_line.changes_skill(link.commit, before.skill) for link in chain
    ):
        # The step of an edit depends on everything before it.
        fresh = {*(str(link.commit.id) for link in chain), *(record.commit for record in sides)}
        return [record for record in read_new(repo, run, {}, now) if record.commit in fresh]
    return sorted((*accepted_line.placed(chain, before, sides), *sides), key=lambda record: record.order)


def _place_before(
    repo: Repo, run: str, chain: list[accepted_line.Link], stop: str | None
) -> accepted_line.LinePosition:
    """Return the position of the run before the commits of ``chain``, which follow the commit ``stop``."""
    first = chain[0].decoded if chain else None
    if stop is None or not chain:
        return accepted_line.LinePosition(run=run, skill=first.event.skill if first is not None else "")
    return accepted_line.place_of(repo, stop)


def _side(repo: Repo, branch: history.Source, boundary: frozenset[str]) -> list[Recorded]:
    """Return the events of a branch beside the run's line that are not reached from ``boundary``."""
    if branch.ref.kind is refs.RefKind.REJECTED:
        return [] if branch.tip in boundary else [read_commit(repo, branch.tip)]
    records: list[Recorded] = []
    for commit in first_parents(repo, branch.tip):
        if str(commit.id) in boundary:
            break
        content = accepted_line.decoded(commit, slow_text)
        if not isinstance(content.event, SlowProposed):
            break
        records.append(accepted_line.recorded(commit, content, content.event.base))
    return records[::-1]


def read_commit(repo: Repo, oid: str) -> Recorded:
    """Return the event of the commit ``oid``; that of a person's edit is looked up in the history of its run."""
    commit = repo.commit(oid)
    if not trailers.has_trailers(message_of(commit)):
        return _edit(repo, oid)
    content = accepted_line.decoded(commit, slow_text)
    at = event_at(content.event)
    return accepted_line.recorded(commit, content, accepted_line.place_of(repo, oid).version if at is None else at)


def _edit(repo: Repo, oid: str) -> Recorded:
    run = accepted_line.place_of(repo, oid).run
    edit = next((record for record in read_run(repo, run) if record.commit == oid), None)
    if edit is None:
        raise TrailerError(
            f"commit {oid[:12]} is no event of run {run}", hint="skillgit log shows the commits that are"
        )
    return edit


def message(repo: Repo, oid: str) -> str:
    return message_of(repo.commit(oid))


def skill_at(repo: Repo, oid: str, path: str) -> Skill:
    """Return the skill in the folder ``path`` of the commit ``oid``; a HistoryError if an object of it is damaged."""
    try:
        return tree.read_skill(repo.commit(oid).tree, path)
    except (pygit2.GitError, KeyError) as error:
        raise HistoryError(f"git cannot read {path} of commit {oid[:12]}: {error}", hint=REPAIR) from error


def resolve(repo: Repo, name: str) -> str:
    """Return the commit that git calls ``name``; a RevisionNotFoundError if there is none."""
    try:
        obj = repo.raw.revparse_single(name)
        return str(obj.peel(pygit2.Commit).id)
    except (KeyError, ValueError, pygit2.GitError) as error:
        raise RevisionNotFoundError(f"there is no revision '{name}'", hint="skillgit log") from error


def slow_text(root: pygit2.Tree, skill: str, *, with_memory: bool = True) -> commit_message.SlowText:
    """Return guidance and memory in the tree ``root`` of a commit on the slow line."""
    document = tree.read_file(root, f"{skill}/{DOCUMENT}") or b""
    memory = (tree.read_file(root, MEMORY) if with_memory else None) or b""
    return commit_message.SlowText(
        guidance=slow_guidance(document.decode(errors="replace")), memory=memory.decode(errors="replace")
    )
