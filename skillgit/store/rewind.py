"""Stepping a run back to its last whole event, where a disk lost what was written last.

The events that are lost can be made again, as they were in progress once: what was paid for is in the ledger. So only
events at the end go, and none whose objects are all here.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.run_state import fold
from skillgit.errors import SkillgitError
from skillgit.store import history, history_reader, refs
from skillgit.store.evidence import dropped_trees, read_chain, rebuilt_chain
from skillgit.store.git_activity import until_kept
from skillgit.store.integrity import missing_files, missing_objects
from skillgit.store.lock import repo_lock
from skillgit.store.seals import evidence_elsewhere, is_own
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

REASON = "skillgit: fsck --repair"
"""What reflogs say of refs that a repair moves."""
DERIVED = frozenset({refs.RefKind.TAG, refs.RefKind.BEST})
_REFLOG_LINE = re.compile(r"^[0-9a-f]{40} ([0-9a-f]{40}) ", re.MULTILINE)
_BRANCHES = {refs.RefKind.RUN, refs.RefKind.SLOW, refs.RefKind.REJECTED}
_CHECKED = {*_BRANCHES, refs.RefKind.EVIDENCE}
_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBack:
    """Where a run can be taken back to."""

    events: tuple[Recorded, ...]  # its events up to there; the last one is whole
    losses: tuple[Recorded, ...]  # the events after it that can still be read, but lack objects
    # refs that lead to no event, or do not exist any more, by their full names; with tracking refs
    unreadable: tuple[str, ...]

    @property
    def remotes(self) -> tuple[str, ...]:
        """The other repositories that have, or had, what is lost here."""
        return tuple(sorted({ref.remote for name in self.unreadable if (ref := refs.parse(name)) and ref.remote}))


def plan_step_back(repo: Repo, run: str) -> StepBack | None:
    """Return where to take ``run`` back to; None if its end is whole, or whole events would be lost.

    Set damaged objects aside before.
    """
    if repo.raw.is_shallow:
        return None
    tips = _refs_of(repo, run)
    now = {name: tip for name, tip in tips.items() if tip and not _is_cut(repo, tip)}
    unreadable = tuple(sorted(tips.keys() - now.keys()))
    for name in unreadable:
        if earlier := _before(repo, run, name):
            now[name] = earlier[0]
    try:
        records = history_reader.read_new(repo, run, {}, now)
        tail = _damaged_end(repo, run, records)
        head = records[: len(records) - len(tail)]
        fold(record.event for record in head)
    except (SkillgitError, pygit2.GitError, KeyError):
        return None
    if not (tail or unreadable) or not head or not all(_has_skill(repo, record, set()) for record in head):
        return None
    return StepBack(events=tuple(head), losses=tuple(tail), unreadable=unreadable)


def step_back(repo: Repo, run: str, plan: StepBack) -> list[str]:
    """Take ``run`` back to where ``plan`` says; return what was done. Hold the run's lock."""
    with repo_lock(repo):
        for name in repo.damaged_refs(run):
            ref = refs.parse(name)
            if name in plan.unreadable or (ref is not None and ref.run == run and ref.kind in DERIVED):
                (repo.common_dir / name).unlink(missing_ok=True)
    tips = repo.tips(run)
    chain = partial(_evidence, repo, run, plan, tips)
    derived_moves = history.derived_updates(run, plan.events, tips)
    updates = [*_branches(run, plan, tips), *until_kept(repo, chain), *derived_moves]
    update_refs(repo, updates, reason=REASON, write=chain)
    last = plan.events[-1]
    sentences = [f"stepped back to the last whole event, {last.event.kind} (commit {last.commit[:_SHORT]})"]
    sentences += moved_refs(updates)
    sentences += [
        f"{remote} has what is lost here: 'skillgit pull {remote}' brings it back, and training on makes other commits"
        for remote in plan.remotes
    ]
    return sentences


def _refs_of(repo: Repo, run: str) -> dict[str, str]:
    """Return the refs that lead to events of ``run`` and its evidence, with their commits; empty for lost ones."""
    tips = dict.fromkeys(repo.damaged_refs(run), "") | repo.tips(run)
    for name in (refs.run_branch(run), refs.slow_branch(run)):
        if name not in tips and earlier_tips(repo, name):
            # git removes the reflog of a branch that is deleted
            tips[name] = ""
    return {
        name: tip
        for name, tip in tips.items()
        if (ref := refs.parse(name)) is not None and ref.run == run and ref.kind in _CHECKED
    }


def moved_refs(updates: Iterable[RefUpdate]) -> Iterator[str]:
    """Yield sentences that say where refs moved."""
    for update in updates:
        name = refs.short(update.name)
        yield f"removed {name}" if update.new is None else f"moved {name} to commit {update.new[:_SHORT]}"


def _is_cut(repo: Repo, tip: str) -> bool:
    """Say whether ``tip``, or a commit that it leads back to by first parents, is missing.

    One that is here and makes no sense is no loss that could be recovered.
    """
    oid: str | pygit2.Oid | None = tip
    oids: list[str] = []
    while oid is not None and str(oid) not in repo.whole:
        if not repo.has_object(str(oid)):
            return True
        oids.append(str(oid))
        commit = repo.raw[oid]
        oid = next(iter(commit.parent_ids), None) if isinstance(commit, pygit2.Commit) else None
    repo.whole.update(oids)
    return False


def _has_skill(repo: Repo, record: Recorded, present: set[str]) -> bool:
    return all(map(repo.has_object, record.parents)) and not any(missing_objects(repo, record, present))


def _before(repo: Repo, run: str, name: str) -> list[str]:
    """Return earlier tips of the branch ``name``, by its reflog, else by tags and evidence; the best one first."""
    ref = refs.parse(name)
    if ref is None or ref.remote or ref.kind not in _BRANCHES:
        return []
    earlier = [tip for tip in earlier_tips(repo, name) if not _is_cut(repo, tip)]
    if earlier:
        return earlier
    records: dict[str, Recorded] = {}
    for oid in _witnesses(repo, run):
        try:
            record = history_reader.read_commit(repo, oid)
        except (SkillgitError, pygit2.GitError, KeyError):
            continue
        if record.event.run == run and record.branch == name and not _is_cut(repo, oid):
            records[oid] = record
    return sorted(records, key=lambda oid: records[oid].order, reverse=True)


def earlier_tips(repo: Repo, name: str) -> list[str]:
    """Return the earlier tips of the ref ``name`` by its reflog, the last one first."""
    try:
        text = (repo.common_dir / "logs" / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [oid for oid in reversed(_REFLOG_LINE.findall(text)) if oid.strip("0")]


def _witnesses(repo: Repo, run: str) -> Iterator[str]:
    """Yield the commits that tags, the best branch and the evidence of ``run`` name, as far as they can be read."""
    for name, tip in repo.tips(run).items():
        ref = refs.parse(name)
        if ref is not None and ref.run == run and ref.kind in DERIVED:
            yield tip
    with suppress(SkillgitError):
        yield from (link.event for link in read_chain(repo, run) if link.event)


def _damaged_end(repo: Repo, run: str, records: Sequence[Recorded]) -> list[Recorded]:
    """Return the last events of ``records`` up to the first, from the end, whose objects are all here."""
    chain = refs.evidence_ref(run)
    proves = (
        any(is_own(repo, start=record.commit) for record in records[:1])
        or chain in repo.tips(run)
        or chain in repo.damaged_refs(run)
    )
    elsewhere = evidence_elsewhere(repo, run)
    drops, present = dropped_trees(repo, run), set[str]()

    def is_whole(record: Recorded) -> bool:
        if not _has_skill(repo, record, present):
            return False
        if not proves or not record.evidence or record.commit in elsewhere or record.evidence in drops:
            return True
        return not any(missing_files(repo, record.evidence, present))

    return [*takewhile(lambda record: not is_whole(record), reversed(records))][::-1]


def _branches(run: str, plan: StepBack, tips: Mapping[str, str]) -> Iterator[RefUpdate]:
    """Yield the moves of the branches that lead to events, and the end of tracking refs that lead to none."""
    targets = {record.branch: record.commit for record in plan.events}
    for name in sorted({*tips, *plan.unreadable}):
        ref = refs.parse(name)
        if ref is None or ref.run != run or ref.kind not in _CHECKED:
            continue
        if ref.remote and name in plan.unreadable:
            new = None
        elif ref.remote or ref.kind not in _BRANCHES:
            continue
        else:
            new = targets.get(name)
        if tips.get(name) != new:
            yield RefUpdate(name=name, new=new, old=tips.get(name))


def _evidence(repo: Repo, run: str, plan: StepBack, tips: Mapping[str, str]) -> list[RefUpdate]:
    """Write the evidence chain of the events that are kept; return the move to it, if there is one."""
    name = refs.evidence_ref(run)
    if name not in tips and name not in plan.unreadable and not is_own(repo, start=plan.events[0].commit):
        return []
    drops, present = dropped_trees(repo, run), set[str]()
    due = [record for record in plan.events if record.evidence and record.evidence not in drops]
    new = rebuilt_chain(repo, [entry for entry in due if not any(missing_files(repo, entry.evidence, present))])
    return [] if new == tips.get(name) else [RefUpdate(name=name, new=new, old=tips.get(name))]
