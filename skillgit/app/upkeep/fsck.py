"""``skillgit fsck``: whether history keeps its invariants, and the repair of what follows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from shlex import quote

from skillgit.app.history.status import unfinished
from skillgit.app.recorded.recomputed_gates import Recomputed, recompute_gates
from skillgit.app.recorded.run_record import edit_schedule, least_coverage
from skillgit.app.setup.recorded_setup import refused_settings
from skillgit.app.skill_format import frontmatter
from skillgit.app.upkeep.evidence_checks import trajectory_problems
from skillgit.app.upkeep.run_checks import check_run, note_problems
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.event import CANDIDATES
from skillgit.domain.evidence_names import PATCH, SCREENING
from skillgit.domain.finding import REPAIR, Finding, Severity
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import ConflictError, HistoryError, RevisionNotFoundError, SkillError, SkillgitError
from skillgit.index import index_check, queries, refresh
from skillgit.store import history, history_reader, integrity, refs
from skillgit.store import repair as repairs
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import read_evidence
from skillgit.store.lock import RunLock
from skillgit.store.repair import StepBack, plan_step_back, step_back
from skillgit.store.repo import Repo
from skillgit.store.seals import folders_elsewhere
from skillgit.store.trunk import trunk

_ELSEWHERE = frozenset({refs.RefKind.TAG, refs.RefKind.DROPPED, refs.RefKind.PLAN, refs.RefKind.NOTES})
"""The refs that do not show that a run is one of this repository: a clone of its accepted line may have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemadeRun:
    """What of a run was made again from its commits and evidence, without a model; what differs is a problem."""

    run: str
    events: int
    gates: int
    patches: int
    screenings: int
    lacking: tuple[str, ...]  # what could not be made again, of which event, and for want of what
    history: str  # digest of all commits in their order; equal for two copies of the run exactly if these are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    runs: int
    commits: int
    problems: tuple[Finding, ...]  # what is wrong, and remarks; after a repair, what is left of it
    mended: tuple[str, ...] = ()
    remade: tuple[RemadeRun, ...] = ()  # of a deep check

    @property
    def sound(self) -> bool:
        return all(problem.severity is Severity.REMARK for problem in self.problems)


def fsck(context: Context, run: str | None, deep: bool = False, *, repair: bool = False) -> Checked:  # noqa: FBT001, FBT002 - as agreed
    """Check ``run`` or all; ``deep`` asks gates again and compares the index, ``repair`` repairs what follows."""
    repo = Repo.discover(context.directory)
    repairs_made = list[str]()
    if repair:
        aside = [damage for damage in integrity.damaged_files(repo) if damage.loose]
        repairs_made += [f"{damage.sentence}; set aside as {integrity.set_aside(repo, damage)}" for damage in aside]
        repairs_made += [*repairs.remove_locks(repo), *repairs.mend_packed(repo)]
    if problems := tuple(_file_problems(repo)):
        # Any reader of such a file may wait for ever.
        return Checked(runs=0, commits=0, problems=problems, mended=tuple(repairs_made))
    # before any look at the workspace, which replaces an index that cannot be read without a word
    fault = index_check.fault(repo) if repair else None
    index_problems = _rebuild_index(repo, fault, repairs_made) if fault is not None else []
    sight = list(integrity.sight_problems(repo))
    remade: list[RemadeRun] | None = [] if deep else None
    with Workspace(context) as workspace:
        names = _names(workspace) if run is None else [_known(workspace, run)]
        scope = None if run is None else names
        if repair and not sight:
            repairs_made += [sentence for name in names for sentence in _mended_run(workspace, name)]
            workspace.index.refresh()
        findings = [*sight, *_repository_problems(repo)]
        for problem in note_problems(workspace.repo):  # those on commits of other runs only where all are asked for
            row = queries.row_of_commit(workspace.index, problem.commit)
            owner = row.run if row is not None else ""
            findings += [replace(problem, run=owner)] if scope is None or owner in scope else []
        with workspace.repo.still():
            of_runs = ((name, problem) for name in names for problem in _problems(workspace, name, remade))
            findings += [replace(problem, run=name) for name, problem in of_runs]
        stale = sorted(index_check.differing_runs(workspace.index)) if deep else []
        stale = [name for name in stale if scope is None or name in scope]
        commits = sum(queries.events_of(workspace.index, name) for name in names)
    if repair and stale:
        findings += _rebuild_index(repo, index_check.IndexFault.STALE, repairs_made)
    else:
        sentence = "the index differs from what git holds"
        index_problems += [Finding(run=name, sentence=sentence, hint=REPAIR) for name in stale]
    findings += index_problems
    return Checked(
        runs=len(names),
        commits=commits,
        problems=tuple(findings),
        mended=tuple(repairs_made),
        remade=tuple(remade or ()),
    )


def _rebuild_index(repo: Repo, fault: index_check.IndexFault, repairs_made: list[str]) -> list[Finding]:
    with refresh.rebuild(repo) as index:
        if index.on_disk:
            if fault is not index_check.IndexFault.MISSING:  # as in every new clone
                repairs_made.append(f"rebuilt the index, which was {fault}")
            return []
    folder = repo.common_dir / "skillgit"
    return [Finding(sentence=f"the index cannot be written; ls -l {quote(str(folder))} shows who owns or locks it")]


def _file_problems(repo: Repo) -> Iterator[Finding]:
    if text := repairs.packed_damage(repo):
        sentence = f"{text}; git reads no history from it, and a repair keeps the lines that are whole"
        yield Finding(sentence=sentence, hint=REPAIR)
        return
    for damage in integrity.damaged_files(repo):
        yield Finding(
            sentence=f"{damage.sentence}; history is not read until it is repaired", hint=REPAIR if damage.loose else ""
        )


def _repository_problems(repo: Repo) -> Iterator[Finding]:
    """Yield private folders that were moved away, locks that were left, and a trunk that cannot be read."""
    for folder in folders_elsewhere(repo.common_dir):  # one's own from another machine is one, too
        sentence = (
            f"{folder} is another user's or another machine's and is not used; if it is yours, move what you"
            f" want to keep, such as ledger.db, to {folder.with_name('skillgit')}"
        )
        yield Finding(sentence=sentence, severity=Severity.REMARK)
    try:
        locks = repairs.left_locks(repo)
    except ConflictError:
        locks = []  # a read-only repository has no locks
    for path in locks:
        yield Finding(sentence=f"{path} was left by a process that died", hint=REPAIR)
    # what plain git wrote on the trunk is not part of any run
    name = trunk(repo)
    tip, short = repo.tip(name), refs.short(name)
    try:
        if tip is not None:
            repo.commit(tip)
    except SkillgitError as error:
        sentence = f"{short}: {error.message}; its runs are whole, and a promotion needs a later commit on {short}"
        yield Finding(commit=tip or "", sentence=sentence, severity=Severity.REMARK)


def _names(workspace: Workspace) -> list[str]:
    parts = map(refs.parse, (*workspace.repo.tips(), *workspace.repo.damaged_refs()))
    own = {ref.run for ref in parts if ref is not None and ref.kind not in _ELSEWHERE and not ref.remote}
    return sorted({*history_reader.runs(workspace.repo), *own, *repairs.logged_runs(workspace.repo)})


def _known(workspace: Workspace, run: str) -> str:
    return run if run in workspace.index.broken or run in _names(workspace) else find_run(workspace, run)


def _mended_run(workspace: Workspace, run: str) -> list[str]:
    repo, branch = workspace.repo, refs.run_branch(run)
    is_lost = branch in repo.damaged_refs() or (repo.common_dir / "logs" / branch).is_file()
    if branch not in repo.tips() and not is_lost:
        # a clone; its writer's repository is where such a run is repaired
        return []
    with RunLock(repo, run, workspace.context.clock):
        lines = list[str]()
        with suppress(HistoryError, RevisionNotFoundError):  # the check says what of it cannot be read
            lines += repairs.restore_candidates(repo, run)
        if (plan := plan_step_back(repo, run)) is not None:
            lines += step_back(repo, run, plan)
            workspace.index.refresh()
            lines += _bought_again(workspace, run, plan)
        # names that follow from a history that is not sound may be all that is left of the one that was
        elif all(problem.repairable or problem.severity is Severity.REMARK for problem in check_run(repo, run)):
            with suppress(HistoryError, RevisionNotFoundError):  # as above: what cannot be read cannot be repaired
                lines += repairs.repair_run(repo, run)
        return [f"{run}: {line}" for line in lines]


def _bought_again(workspace: Workspace, run: str, plan: StepBack) -> Iterator[str]:
    """Yield what going on with ``run`` buys again, by what the ledger keeps of the events that are lost."""
    entries = unfinished(workspace, [run]) or ()
    for entry in entries:
        calls = _calls(entry.cost.calls)
        yield f"{entry.what} is made again; the ledger keeps {calls} of it, which are not bought again"
    cost = sum(record.event.cost.calls for record in plan.losses)
    if (lacking := cost - sum(entry.cost.calls for entry in entries)) > 0:
        yield f"the ledger lacks {_calls(lacking)} of the {cost} that what is lost had cost; they are bought again"
    elif not entries:
        yield "the ledger keeps no call of what is lost; going on buys again what it takes to make it"


def _calls(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def _problems(workspace: Workspace, run: str, remade: list[RemadeRun] | None) -> Iterator[Finding]:
    """Yield what is wrong with ``run``; what is made again for a deep check is added to ``remade``."""
    repo = workspace.repo
    if (plan := plan_step_back(repo, run)) is not None:
        last = plan.events[-1]
        sentence = f"what comes after {last.event.kind} is damaged; the run can go on from there"
        yield Finding(commit=last.commit, sentence=sentence, hint=REPAIR)
    problems = check_run(repo, run, budget=edit_schedule(workspace, run))
    yield from problems
    try:
        if refs.run_branch(run) in repo.tips(run):
            commits = {problem.commit for problem in problems}
            for name, oid in repairs.lost_candidates(repo, run).items():
                if oid not in commits:
                    sentence = f"{refs.short(name)} is gone, and its reflog says where it stood"
                    yield Finding(commit=oid, sentence=sentence, hint=REPAIR)
        records = history_reader.read_run(repo, run)
        if refusals := refused_settings(workspace, run):
            sentence = f"it began elsewhere, and its configuration sets {refusals}, which only you may set"
            yield Finding(commit=records[0].commit, sentence=sentence, severity=Severity.REMARK)
        for version, commit in history.versions(records).items():
            if text := _frontmatter_problem(repo, commit, records[0].event.skill):
                yield Finding(commit=commit, sentence=f"{version_label(version)}: {text}")
        sentences = {(problem.commit, problem.sentence) for problem in problems}
        if remade is not None:
            gates = list(recompute_gates(repo, records, least_coverage(repo, records)))
            remade.append(_remade(repo, run, records, gates))
            again = [(record.commit, sentence) for record, sentence in trajectory_problems(repo, records)]
            again += [(gate.commit, sentence) for gate in gates for sentence in gate.differing]
            for commit, sentence in again:
                if (commit, sentence) not in sentences:
                    yield Finding(commit=commit, sentence=sentence)
    except SkillgitError:
        # said already, by the commits that cannot be read
        return


def _remade(repo: Repo, run: str, records: Sequence[Recorded], gates: Sequence[Recomputed]) -> RemadeRun:
    patches = screenings = 0
    by_commit = {gate.commit: gate for gate in gates}
    lacking = list[str]()
    for record in records:
        event, gate = record.event, by_commit.get(record.commit)
        name = event.address.label
        if gate is not None and gate.lacking:
            lacking.append(f"{name}: gate, without {gate.lacking}")
        if event.kind in CANDIDATES:
            has_patch = bool(read_evidence(repo, record.evidence, (PATCH,)))
            patches += has_patch
            lacking += [] if has_patch else [f"{name}: patch, without {PATCH}"]
        if event.screening is not None:
            has_screening = bool(read_evidence(repo, record.evidence, (SCREENING,)))
            screenings += has_screening
            lacking += [] if has_screening else [f"{name}: screening, without {SCREENING}"]
    return RemadeRun(
        run=run,
        events=len(records),
        gates=sum(not gate.lacking for gate in gates),
        patches=patches,
        screenings=screenings,
        lacking=tuple(lacking),
        history=history_digest(records),
    )


def history_digest(records: Sequence[Recorded]) -> str:
    """Return the SHA-256 of the ids of all commits of a run, a line each, in the order of its events."""
    return hashlib.sha256("".join(f"{record.commit}\n" for record in records).encode()).hexdigest()


def _frontmatter_problem(repo: Repo, commit: str, path: str) -> str:
    try:
        text = history_reader.skill_at(repo, commit, path).files.get(DOCUMENT)
    except (SkillgitError, KeyError):
        return ""
    try:
        frontmatter.read((text or b"").decode())
    except UnicodeDecodeError:
        return f"{DOCUMENT} is not UTF-8"
    except SkillError as error:
        return error.message
    return ""
