"""A whole run read the quick way: its usual events as plain values, all others as events.

What it returns tells the same as ``reader.read_new`` does, in the same order, but for what only the optimizer needs:
the memory in slow updates. A run with anything that needs a closer look, such as an edit by hand or a commit that
cannot be read, is left to that.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from skillgit.domain import order
from skillgit.domain.event import RunStarted, SlowProposed, version_of
from skillgit.errors import SkillgitError
from skillgit.store import line, reader, refs, trailers, usual

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pygit2

    from skillgit.domain.order import OrderKey
    from skillgit.store.codec import Decoded, SlowText
    from skillgit.store.history import Source
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo
    from skillgit.store.usual import Facts

_RANKS = {
    usual.ACCEPTED: order.MADE,
    usual.REJECTED: order.REJECTED,
    usual.SKIPPED: order.SKIPPED,
    usual.SLOW_PROPOSED: order.SLOW,
    usual.SLOW_MERGED: order.MADE,
}
_BESIDE_THE_LINE = (usual.REJECTED, usual.SLOW_PROPOSED)
_order = attrgetter("order")


class Sketch(NamedTuple):
    """A usual event as it stands in git; what :class:`~skillgit.store.record.Recorded` is to its event.

    Attributes:
        commit: The commit's id.
        time: When it was committed, in seconds since 1970.
        order: The key that sorts the events of a run; it begins with the version that the run stands at.
        facts: What it tells.
        guidance: The guidance of a slow update; empty for all others.
    """

    commit: str
    time: int
    order: OrderKey
    facts: Facts
    guidance: str = ""


def sketch(commit: str, time: int, at: int, facts: Facts, guidance: str = "") -> Sketch:
    """Return the sketch of an event; ``at`` is the version that the run stands at with it."""
    return Sketch(commit, time, (at, facts.step, _RANKS[facts.kind], 0), facts, guidance)


def sketch_run(repo: Repo, branches: Sequence[Source]) -> list[Recorded | Sketch] | None:
    """Return what happened in the run whose branches these are, its line first; None if it needs a closer look."""
    try:
        found = list(_line(repo, branches[0].tip))
        on_line = {one.commit for one in found}
        sides = {one.commit: one for branch in branches[1:] for one in _side(repo, branch)}
    except (_CloserLook, SkillgitError):
        return None
    found += [one for commit, one in sides.items() if commit not in on_line]
    return sorted(found, key=_order)


class _CloserLook(Exception):  # noqa: N818 - it is no error
    """A run cannot be read the quick way."""


def _line(repo: Repo, tip: str) -> Iterator[Recorded | Sketch]:
    """Yield what happened on the line, oldest first; versions are counted, as ``line.placed`` does."""
    version = -1
    for commit, told in reversed(_walk(repo, tip)):
        if isinstance(told, usual.Facts):
            if told.kind in _BESIDE_THE_LINE:
                raise _CloserLook
            version += told.version is not None
            yield sketch(str(commit.id), commit.commit_time, version, told)
        else:
            if refs.branch_of(told.event) != refs.run_branch(told.event.run):
                raise _CloserLook
            version += version_of(told.event) is not None
            yield line.recorded(commit, told, version)


def _walk(repo: Repo, tip: str) -> list[tuple[pygit2.Commit, Facts | Decoded]]:
    """Return the commits from ``tip`` back to the event that started the run."""
    found: list[tuple[pygit2.Commit, Facts | Decoded]] = []
    for commit in line.first_parents(repo, tip):
        text = commit.message
        facts = usual.read_facts(text)
        if facts is not None:
            found.append((commit, facts))
            continue
        if not trailers.has_trailers(text):
            break
        told = line.decoded(commit, _guidance)
        found.append((commit, told))
        if isinstance(told.event, RunStarted):
            return found
    raise _CloserLook


def _side(repo: Repo, branch: Source) -> Sequence[Recorded | Sketch]:
    """Return what happened on a branch beside the line."""
    return _refused(repo, branch) if branch.ref.kind is refs.Kind.REJECTED else list(_slow_updates(repo, branch.tip))


def _refused(repo: Repo, branch: Source) -> Sequence[Recorded | Sketch]:
    """Return the candidate at the end of a rejected branch."""
    commit = repo.commit(branch.tip)
    facts = usual.read_facts(commit.message)
    if facts is None or facts.base is None or facts.kind not in usual.CANDIDATES:
        return [reader.read_commit(repo, branch.tip)]
    at = facts.base if facts.version is None else facts.version
    return [sketch(branch.tip, commit.commit_time, at, facts)]


def _slow_updates(repo: Repo, tip: str) -> Iterator[Recorded | Sketch]:
    """Yield the slow updates from the commit ``tip`` back to the version that the first one was proposed on."""
    for commit in line.first_parents(repo, tip):
        facts = usual.read_facts(commit.message)
        if facts is None:
            told = line.decoded(commit, _guidance)
            if not isinstance(told.event, SlowProposed):
                return
            yield line.recorded(commit, told, told.event.base)
        elif facts.kind != usual.SLOW_PROPOSED or facts.base is None:
            return
        else:
            guidance = _guidance(commit.tree, facts.skill).guidance
            yield sketch(str(commit.id), commit.commit_time, facts.base, facts, guidance)


def _guidance(root: pygit2.Tree, skill: str) -> SlowText:
    return reader.slow_text(root, skill, with_memory=False)
