"""What ``fsck --repair`` repairs: refs that follow from the history, files that dead processes left, a run's lost end.

Where a disk lost what was written last, a run steps back to its last whole event. The events that are lost can be made
again, as they were in progress once: what was paid for is in the ledger. So only events at the end go, and none whose
objects are all here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pygit2

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.run_state import fold
from skillgit.errors import HistoryError, RevisionNotFoundError, SkillError, SkillgitError
from skillgit.files import write_file
from skillgit.store import history, history_reader, refs
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import EvidenceLink, dropped_trees, read_chain, rebuilt_chain
from skillgit.store.git_binary import git_is_at_work
from skillgit.store.integrity import missing_files, missing_objects
from skillgit.store.lock import repo_lock
from skillgit.store.repo import Repo
from skillgit.store.seals import evidence_elsewhere, is_own
from skillgit.store.transaction import RefUpdate, file_mark, update_refs, write_refs

_REASON = "skillgit: fsck --repair"
"""What reflogs say of refs that a repair moves."""
_DERIVED = frozenset({refs.RefKind.TAG, refs.RefKind.BEST})
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
            if name in plan.unreadable or (ref is not None and ref.run == run and ref.kind in _DERIVED):
                (repo.common_dir / name).unlink(missing_ok=True)
    tips = repo.tips(run)
    derived_moves = history.derived_updates(run, plan.events, tips)

    def write() -> list[RefUpdate]:
        return [*_branches(run, plan, tips), *_evidence(repo, run, plan, tips), *derived_moves]

    updates = write_refs(repo, write, reason=_REASON)
    last, back = plan.events[-1], "brings it back, and training on makes other commits"
    return [
        f"stepped back to the last whole event, {last.event.kind} (commit {last.commit[:_SHORT]})",
        *_moved_refs(updates),
        *(f"{remote} has what is lost here: 'skillgit pull {remote}' {back}" for remote in plan.remotes),
    ]


def _refs_of(repo: Repo, run: str) -> dict[str, str]:
    """Return the refs that lead to events of ``run`` and its evidence, with their commits; empty for lost ones."""
    tips = dict.fromkeys(repo.damaged_refs(run), "") | repo.tips(run)
    for name in (refs.run_branch(run), refs.slow_branch(run)):
        if name not in tips and _earlier_tips(repo, name):  # git removes the reflog of a branch that is deleted
            tips[name] = ""
    references = {name: refs.parse(name) for name in tips}
    return {name: tips[name] for name, ref in references.items() if ref and ref.run == run and ref.kind in _CHECKED}


def _moved_refs(updates: Iterable[RefUpdate]) -> Iterator[str]:
    for update in updates:
        name = refs.short(update.name)
        yield f"removed {name}" if update.new is None else f"moved {name} to commit {update.new[:_SHORT]}"


def _is_cut(repo: Repo, tip: str) -> bool:
    """Say whether ``tip`` or a commit before it is missing; one that is here and unreadable could not be recovered."""
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
    earlier = [tip for tip in _earlier_tips(repo, name) if not _is_cut(repo, tip)]
    if earlier:
        return earlier
    records = {record.commit: record for record in _readable(repo, run, _witnesses(repo, run)) if record.branch == name}
    whole = [record for record in records.values() if not _is_cut(repo, record.commit)]
    return [record.commit for record in sorted(whole, key=lambda record: record.order, reverse=True)]


def _readable(repo: Repo, run: str, commits: Iterable[str]) -> Iterator[Recorded]:
    """Yield those of ``commits`` that are events of ``run`` and can be read."""
    for oid in commits:
        try:
            record = history_reader.read_commit(repo, oid)
        except (SkillgitError, pygit2.GitError, KeyError):
            continue
        if record.event.run == run:
            yield record


def _earlier_tips(repo: Repo, name: str) -> list[str]:
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
        if ref is not None and ref.run == run and ref.kind in _DERIVED:
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


_PATIENCE_S = 1.0
"""How long a lock file has to stay unchanged while skillgit does not write, to count as left over."""
_PACKED = re.compile(rb"#.*|(?:[0-9a-f]{40} refs/[^\s\0]+|\^[0-9a-f]{40}) *")


def packed_damage(repo: Repo) -> str:
    """Return what is wrong with the file in which git keeps most refs; empty if nothing is, or there is none."""
    bad = sum(not good for _, good in _packed_lines(repo))
    return f"packed-refs has {bad} line{'s' * (bad != 1)} that git cannot read" if bad else ""


def mend_packed(repo: Repo) -> list[str]:
    """Keep the readable lines of ``packed-refs`` and set the whole file aside; return what was repaired."""
    with repo_lock(repo):
        if not (damage := packed_damage(repo)):
            return []
        path, folder = repo.common_dir / "packed-refs", repo.private_dir / "damaged"
        folder.mkdir(exist_ok=True)
        aside = folder / f"packed-refs-{time.time_ns()}"
        write_file(aside, path.read_bytes())
        write_file(path, b"".join(line + b"\n" for line, good in _packed_lines(repo) if good))
    return [f"{damage}; kept the others and set the file aside as {aside}; other branches and tags of it are lost here"]


def _packed_lines(repo: Repo) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of ``packed-refs``, each with whether git can read it; one without an end may have been longer.

    The peeled line after an unreadable ref is removed too.
    """
    try:
        content = (repo.common_dir / "packed-refs").read_bytes()
    except OSError:
        return
    good = True
    *lines, rest = content.split(b"\n")
    for line in lines:
        good = _PACKED.fullmatch(line) is not None and (good or not line.startswith(b"^"))
        yield line, good
    if rest:
        yield rest, False


def logged_runs(repo: Repo) -> list[str]:
    """Return the runs whose branch has a reflog, which git removes with a branch that is deleted."""
    folder = repo.common_dir / "logs" / refs.run_branch("")
    return [path.name for path in folder.glob("*") if path.is_file() and refs.parse(refs.run_branch(path.name))]


def lost_candidates(repo: Repo, run: str) -> dict[str, str]:
    """Return branch to commit for refused candidates that only a reflog or the evidence names; not damaged refs."""
    tips, logs = repo.tips(run), repo.common_dir / "logs"
    attic = tips.get(refs.attic_ref(run))
    branches = {*tips, *repo.damaged_refs(run), *(history.read_attic(repo, attic) if attic else ())}
    log_names = {path.relative_to(logs).as_posix() for path in (logs / "refs/heads/rejected" / run).glob("*")}
    commits = [tip for name in sorted(log_names - branches) for tip in _earlier_tips(repo, name)]
    candidates: dict[str, str] = {}
    for record in _readable(repo, run, (*commits, *(link.event for link in read_chain(repo, run) if link.event))):
        if record.event.kind is EventKind.REJECTED and record.branch not in branches:
            candidates.setdefault(record.branch, record.commit)
    return candidates


def restore_candidates(repo: Repo, run: str) -> list[str]:
    """Bring back the branches that :func:`lost_candidates` names; return what was repaired. Hold the run's lock."""
    candidates = lost_candidates(repo, run)
    updates = [RefUpdate(name=name, new=oid, old=None) for name, oid in sorted(candidates.items())]
    if updates:
        update_refs(repo, updates, reason=_REASON)
    return [f"brought {refs.short(name)} back, at commit {oid[:_SHORT]}" for name, oid in sorted(candidates.items())]


def unpublished(repo: Repo, run: str, records: Sequence[Recorded], chain: Sequence[EvidenceLink]) -> Recorded | None:
    """Return the event that a process died before it made visible: its evidence is kept, and it follows the others."""
    if not chain or not chain[0].event or any(chain[0].event == record.commit for record in records):
        return None
    record = next(_readable(repo, run, [chain[0].event]), None)
    if record is None:
        return None
    try:
        fold([*(earlier.event for earlier in records), record.event])
    except SkillgitError:
        return None
    tip = repo.tip(record.branch)
    follows = tip is None or tip in record.parents[:1]
    return record if follows and _has_skill(repo, record, set()) else None


def lost_event(repo: Repo, run: str, records: Sequence[Recorded]) -> Recorded | None:
    """Return the newest event of the line that tags or evidence name; None if it is in ``records``, or the tip."""
    line, late = refs.run_branch(run), unpublished(repo, run, records, read_chain(repo, run))
    commits = {record.commit for record in (*records, *([late] if late is not None else []))}
    events = _readable(repo, run, {oid: None for oid in _witnesses(repo, run) if oid not in commits})
    newest = max((each for each in events if each.branch == line), key=lambda each: each.order, default=None)
    return None if newest is None or newest.commit == repo.tip(line) else newest


def bring_back(repo: Repo, run: str, commit: str) -> str:
    """Return what moves the branch of ``run`` back to its event ``commit``, and keeps what is on it now."""
    line, tip, goal = refs.short(refs.run_branch(run)), repo.tip(refs.run_branch(run)), commit[:_SHORT]
    if tip is None:
        return f"git branch {line} {goal} brings it back"
    return f"git branch {run}-{tip[:7]} {line} keeps what is there, then git branch -f {line} {goal} brings it back"


def read_whole(repo: Repo, run: str) -> list[Recorded]:
    """Return the events of ``run`` to go on with it, none of a new one; a HistoryError if its branch lacks some.

    A person may have amended, reset or deleted the branch, or picked a commit with trailers onto it.
    """
    records, fault = list[Recorded](), None
    try:
        records = history_reader.read_run(repo, run) if run in history_reader.runs(repo) else []
        if records:
            fold(record.event for record in records)
    except HistoryError as error:
        fault = error
    if (newest := lost_event(repo, run, records if fault is None else [])) is not None:
        repo.check_movable(newest.branch)
        sentence = f"{refs.short(newest.branch)} does not go on from {newest.event.address.label}"
        raise HistoryError(f"{sentence}, the newest event of the run", hint=bring_back(repo, run, newest.commit))
    if fault is not None:
        raise fault
    if records and (edit := records[-1]).event.kind is EventKind.EDITED:
        try:
            history_reader.skill_at(repo, edit.commit, edit.event.skill)
        except (SkillError, RevisionNotFoundError) as error:
            sentence = f"{edit.event.address.label}, committed by hand, has no skill: {error.message}"
            raise HistoryError(sentence, hint=bring_back(repo, run, edit.parents[0])) from error
    return records


def _publish_event(repo: Repo, run: str) -> Iterator[str]:
    """Make the event visible that :func:`unpublished` finds."""
    records = history_reader.read_run(repo, run) if run in history_reader.runs(repo) else []
    record = unpublished(repo, run, records, read_chain(repo, run))
    if record is not None:
        branch = record.branch
        update_refs(repo, [RefUpdate(name=branch, new=record.commit, old=repo.tip(branch))], reason=_REASON)
        yield f"moved {refs.short(branch)} to commit {record.commit[:_SHORT]}, an event that was written and not shown"


def repair_run(repo: Repo, run: str) -> list[str]:
    """Bring the refs of ``run`` that a dead process left behind to where they belong. Hold the run's lock."""
    events = [*_publish_event(repo, run)]
    records = history_reader.read_run(repo, run)
    return [*events, *_mend_derived(repo, run, records), *_mend_evidence(repo, run, records)]


def left_locks(repo: Repo) -> list[str]:
    """Return lock files, under the git folder, that a killed process left; they block their refs."""
    with repo_lock(repo):
        return [path.relative_to(repo.common_dir).as_posix() for path in _left(repo)]


def remove_locks(repo: Repo) -> list[str]:
    """Remove the files that :func:`left_locks` names; return what was repaired."""
    with repo_lock(repo):
        locks = _left(repo)
        for path in locks:
            path.unlink(missing_ok=True)
    return [f"removed {path.relative_to(repo.common_dir).as_posix()}, which a dead process left" for path in locks]


def _left(repo: Repo) -> list[Path]:
    packed_lock = repo.common_dir / "packed-refs.lock"
    paths = [*(repo.common_dir / "refs").rglob("*.lock"), *([packed_lock] if packed_lock.exists() else [])]
    marks = {path: file_mark(path) for path in paths}
    # git may hold locks for as long as a hook takes
    if not marks or git_is_at_work(repo):
        return []
    time.sleep(_PATIENCE_S)
    return sorted(path for path, mark in marks.items() if mark is not None and file_mark(path) == mark)


def _mend_derived(repo: Repo, run: str, records: Sequence[Recorded]) -> Iterator[str]:
    if refs.run_branch(run) not in repo.tips():
        return
    with repo_lock(repo):
        for name in repo.damaged_refs(run):
            ref = refs.parse(name)
            if ref is not None and ref.kind in _DERIVED:
                # it could not be moved
                (repo.common_dir / name).unlink(missing_ok=True)
                yield f"removed the file of {refs.short(name)}, which held no commit"
    tips = repo.tips(run)
    updates = history.derived_updates(run, records, tips)
    if updates:
        update_refs(repo, updates, reason=_REASON)
    yield from _moved_refs(updates)


def _mend_evidence(repo: Repo, run: str, records: Sequence[Recorded]) -> Iterator[str]:
    """Rewrite the chain if it keeps evidence of other runs, or not all of this one's that is here."""
    if repo.tip(refs.evidence_ref(run)) is None and not is_own(repo, start=records[0].commit):
        return
    chain, drops, present = read_chain(repo, run), dropped_trees(repo, run), set[str]()
    trees, commits = {link.tree for link in chain}, {record.commit for record in records}
    due = [entry for entry in records if entry.evidence and (entry.evidence in trees or entry.evidence not in drops)]
    # Another run's evidence is kept by its own ref; that of events which this run has lost may be all that is left.
    strays = [link for link in chain if link.event not in commits]
    own = [*_readable(repo, run, (link.event for link in strays))]
    missing = [
        entry for entry in due if entry.evidence not in trees and not any(missing_files(repo, entry.evidence, present))
    ]
    if not missing and len(own) == len(strays):
        return
    staying = [entry for entry in due if entry.evidence in trees]
    records = sorted((*staying, *missing, *own), key=lambda record: record.order)
    name = refs.evidence_ref(run)
    tip = repo.tip(name)
    write_refs(repo, lambda: [RefUpdate(name=name, new=rebuilt_chain(repo, records), old=tip)], reason=_REASON)
    if missing:
        yield f"{refs.short(name)} keeps the evidence of {len(missing)} more event{'s' * (len(missing) > 1)}"
    if len(own) < len(strays):
        yield f"{refs.short(name)} no longer keeps what is not of run {run}"
