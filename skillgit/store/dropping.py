"""Dropping evidence on purpose: the chain goes on without it, and what was dropped stays written down.

``refs/skillgit/dropped/<run>`` is a chain whose newest commit has the one file ``trees``: a line for each evidence tree
that is no longer kept, with the commit of its event. So evidence that was dropped can be told from evidence that is
lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.event import Inherited, SlowMerged
from skillgit.domain.state import fold
from skillgit.errors import InvariantError, SkillgitError
from skillgit.store import derived, refs, tree
from skillgit.store.at_work import until_kept
from skillgit.store.evidence import evidence_commit, kept_trees
from skillgit.store.problem import Problem
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_LIST = "trees"
_LINE = re.compile(r"[0-9a-f]{40} [0-9a-f]{40}")
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What was dropped, or would be.

    Attributes:
        records: The events whose evidence it is.
        size: Bytes of the files that nothing in the evidence of this run holds any more, before compression.
    """

    records: tuple[Recorded, ...]
    size: int


def dropped_trees(repo: Repo, run: str) -> frozenset[str]:
    """Return the evidence trees of ``run`` that were dropped on purpose; none where the list cannot be read."""
    listed = _listed(repo, run) or ""
    return frozenset(line.partition(" ")[0] for line in listed.splitlines())


def _listed(repo: Repo, run: str) -> str | None:
    """Return the list of what was dropped; an empty one without a ref, None if the ref leads to no list."""
    try:
        tip = repo.tip(refs.dropped_ref(run))
        content = b"" if tip is None else tree.read_file(repo.commit(tip).tree, _LIST)
    except (SkillgitError, KeyError, ValueError, pygit2.GitError):
        return None
    return None if content is None else content.decode(errors="replace")


def dropping_problems(repo: Repo, run: str, records: Sequence[Recorded], kept: Collection[str]) -> Iterator[Problem]:
    """Yield where the list of dropped evidence is none, or names evidence that is never dropped.

    Args:
        repo: The repository.
        run: The run.
        records: Its events.
        kept: The evidence trees that its hidden ref keeps.
    """
    listed, name = _listed(repo, run), refs.short(refs.dropped_ref(run))
    if listed is None:
        sentence = f"{name} leads to no commit with the file '{_LIST}', which says what evidence was dropped"
        yield Problem(commit="", sentence=sentence)
        return
    lines = listed.splitlines()
    for line in lines:
        if _LINE.fullmatch(line) is None:
            yield Problem(commit="", sentence=f"{name} has a line that names no evidence: '{line[:_SHOWN]}'")
    if not lines:
        return
    try:
        staying = spared(records, inherited=False)
    except InvariantError:
        # the events contradict each other, which is told where they are folded
        return
    trees = {line.partition(" ")[0] for line in lines}
    for one in records:
        if not one.evidence or one.commit not in staying:
            continue
        if f"{one.evidence} {one.commit}" in lines or (one.evidence in trees and one.evidence not in kept):
            sentence = (
                f"{name} names its evidence, and that of the first, the best and the last version is never dropped"
            )
            yield Problem(commit=one.commit, sentence=sentence)


def spared(records: Sequence[Recorded], *, inherited: bool = True) -> frozenset[str]:
    """Return the commits whose evidence stays: configuration and items, and what the first, best and last version got.

    Whatever is proposed on the run later on is compared with those. A version may inherit its score from one that was
    neither when evidence was dropped; without ``inherited`` such ones are left out.

    Raises:
        InvariantError: The events contradict each other.
    """
    state = fold(record.event for record in records)
    versions, commits = {0, state.best, state.version}, derived.versions(records)
    for version in tuple(versions) if inherited else ():
        found = state.versions[version].evaluation
        while isinstance(found, Inherited):
            versions.add(found.version)
            found = state.versions[found.version].evaluation
    staying = {record.commit for record in records if getattr(record.event, "version", None) in versions}
    merges = [record for record in records if record.commit in staying and isinstance(record.event, SlowMerged)]
    return frozenset({*staying, *(parent for merge in merges for parent in merge.parents), commits[0]})


def plan_drop(
    repo: Repo, records: Sequence[Recorded], *, before: datetime, spared: Collection[str], run: str
) -> Dropped:
    """Return what :func:`drop` would drop.

    Args:
        repo: The repository.
        records: The events of the run.
        before: Evidence of events from then on stays.
        spared: Commits whose evidence stays whatever its age.
        run: The run.
    """
    kept = kept_trees(repo, run)
    old = tuple(one for one in records if one.evidence in kept and one.time < before and one.commit not in spared)
    gone = {one.evidence for one in old}
    staying = _blobs(repo, {one.evidence for one in records if one.evidence in kept - gone})
    freed = _blobs(repo, gone) - staying
    return Dropped(records=old, size=sum(_size(repo, blob) for blob in freed))


def drop(repo: Repo, run: str, records: Sequence[Recorded], plan: Dropped, clock: Callable[[], datetime]) -> None:
    """Rewrite the evidence chain of ``run`` without what ``plan`` names, and write that down in the same change.

    Hold the lock of the run.

    Raises:
        ConcurrentWriteError: Somebody else moved the chain; nothing was changed.
    """
    tips = repo.tips()
    gone = {one.commit for one in plan.records}
    kept = kept_trees(repo, run)
    chain, notice, time = refs.evidence_ref(run), refs.dropped_ref(run), clock()

    def write() -> tuple[str | None, str]:
        staying = [one for one in records if one.commit not in gone and one.evidence in kept]
        return rebuilt_chain(repo, staying), _told(repo, run, plan, tips.get(notice), time)

    new, told = until_kept(repo, write)
    updates = [
        RefUpdate(name=chain, new=new, expected=tips.get(chain)),
        RefUpdate(name=notice, new=told, expected=tips.get(notice)),
    ]
    # What is dropped is written down before it goes: a process that dies in between has dropped nothing.
    for update in reversed(updates):
        update_refs(repo, [update], identity=repo.identity(), reason=f"skillgit: drop evidence of {run}", write=write)


def rebuilt_chain(repo: Repo, records: Sequence[Recorded]) -> str | None:
    """Write the evidence chain of ``records`` anew and return its end; it is the same as their writer wrote."""
    end: str | None = None
    for one in records:
        if one.evidence:
            end = evidence_commit(repo, one, repo.commit(one.commit).committer, end)
    return end


def _told(repo: Repo, run: str, plan: Dropped, before: str | None, time: datetime) -> str:
    """Write the commit that names everything that was dropped so far."""
    listed = (tree.read_file(repo.commit(before).tree, _LIST) or b"").decode().splitlines() if before else []
    listed += [f"{one.evidence} {one.commit}" for one in plan.records]
    files = {_LIST: "".join(f"{line}\n" for line in dict.fromkeys(listed)).encode()}
    identity = repo.identity()
    signature = pygit2.Signature(identity.name, identity.email, int(time.timestamp()), 0)
    count = len(plan.records)
    message = f"evidence of {count} event{'' if count == 1 else 's'} of {run} dropped\n"
    made = repo.raw.create_commit(
        None, signature, signature, message, tree.write_files(repo, files).id, [before] if before else []
    )
    return str(made)


def _blobs(repo: Repo, trees: Collection[str]) -> set[str]:
    """Return the files in ``trees``."""
    found: set[str] = set()
    waiting, seen = list(trees), set(trees)
    while waiting:
        folder = repo.raw.get(waiting.pop())
        if not isinstance(folder, pygit2.Tree):
            continue
        for entry in folder:
            oid = str(entry.id)
            if entry.type_str == "blob":
                found.add(oid)
            elif oid not in seen:
                seen.add(oid)
                waiting.append(oid)
    return found


def _size(repo: Repo, blob: str) -> int:
    found = repo.raw.get(blob)
    return found.size if isinstance(found, pygit2.Blob) else 0
