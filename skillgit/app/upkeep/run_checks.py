"""Whether the history of a run keeps its invariants, and says what its commits and its evidence alone say again.

The first is what ``skillgit fsck`` asks of each run, the second is ``skillgit replay``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from skillgit.app.recorded.recomputed_gates import Recomputed, recompute_gates
from skillgit.app.recorded.run_record import edit_schedule, least_coverage
from skillgit.app.upkeep import commit_checks, event_checks
from skillgit.app.upkeep.commit_checks import NameChecks, text_problems
from skillgit.app.upkeep.event_checks import count_problems, sequence_problems, trailer_problems
from skillgit.app.upkeep.evidence_checks import evidence_problems, lacking_files, plan_problems, unpublished_problem
from skillgit.app.upkeep.round_checks import joining_problems, rival_problems
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Metric
from skillgit.domain.event import (
    Accepted,
    Edited,
    Rejected,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_address,
    version_of,
)
from skillgit.domain.event_keys import other_lines
from skillgit.domain.evidence_names import PATCH, SCREENING
from skillgit.domain.proposal import Origin
from skillgit.domain.run_state import RunState, advance, begin
from skillgit.errors import HistoryError, InvariantError, RevisionNotFoundError, SkillError, SkillgitError
from skillgit.index import index_check
from skillgit.store import history, history_reader, integrity, refs, trailers
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import read_chain, read_evidence
from skillgit.store.integrity import GitError, IntegrityProblem
from skillgit.store.repair import unpublished
from skillgit.store.repo import Repo, message_of

_SHORT = 12


def check_run(repo: Repo, run: str, *, budget: Callable[[int], int] | None = None) -> list[IntegrityProblem]:
    """Return what is wrong with ``run``; ``budget`` maps a step to its configured edit budget, if that is known."""
    tips = repo.tips(run)
    if not tips and not repo.damaged_refs(run):
        raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    try:
        # The chain goes first: a run that is being trained may only have more events than evidence, never fewer.
        chain, branches = read_chain(repo, run), history.sources(repo, run, tips)
    except (HistoryError, RevisionNotFoundError) as error:
        return [IntegrityProblem(sentence=error.message)]
    ref_problems = [*_damaged_refs(repo, run)]
    if not branches:
        if not ref_problems and (late := unpublished(repo, run, [], chain)) is not None:
            return [unpublished_problem(late)]
        return ref_problems or [IntegrityProblem(sentence=_without_branch(run, tips))]
    try:
        records = history_reader.read_run(repo, run)
    except (HistoryError, RevisionNotFoundError, SkillError) as error:
        if repo.raw.is_shallow:
            return [IntegrityProblem(sentence=error.message)]
        unreadable = dict.fromkeys(problem for branch in branches for problem in _unreadable(repo, branch.tip))
        return list(unreadable) or [IntegrityProblem(sentence=error.message)]
    versions, contents, name_checks = history.versions(records), set[str](), NameChecks(repo)
    problems = [*ref_problems, *_fold_problems(run, records, budget)]
    guidance = frozenset(record.commit for record in records if isinstance(record.event, SlowProposed))
    first = records[0].event
    # An import knows no digests of items.
    is_import = isinstance(first, RunStarted) and not first.splits
    for record in records:
        of_event = _event_problems(repo, record, is_import=is_import, is_training=budget is not None)
        of_content = _content_problems(repo, record, versions, contents, is_import=is_import)
        of_parents = _parent_problems(record, guidance, versions)
        sentences = (*of_parents, *of_event, *name_checks.problems(record), *of_content)
        problems.extend(IntegrityProblem(commit=record.commit, sentence=sentence) for sentence in sentences)
    problems.extend(text_problems(repo, records))
    of_plan = (*plan_problems(repo, records), *rival_problems(records))
    problems.extend(IntegrityProblem(commit=record.commit, sentence=sentence) for record, sentence in of_plan)
    problems.extend(_branch_problems(branches, records))
    problems.extend(evidence_problems(repo, run, records, tips, chain))
    problems.extend(_derived_problems(repo, run, records, tips))
    return problems


def _without_branch(run: str, tips: Mapping[str, str]) -> str:
    branch = refs.short(refs.run_branch(run))
    versions = [ref.number for name in tips if (ref := refs.parse(name)) and ref.kind is refs.RefKind.TAG]
    newest = refs.version_tag(run, max(versions)) if versions else refs.best_branch(run)
    hint = f"; git branch {branch} {refs.short(newest)} brings it back up to there" if newest in tips else ""
    return f"it has refs, and its branch {branch} is gone{hint}"


def _damaged_refs(repo: Repo, run: str) -> Iterator[IntegrityProblem]:
    for name in repo.damaged_refs(run):
        ref = refs.parse(name)
        if ref is not None and ref.kind not in {refs.RefKind.TAG, refs.RefKind.BEST}:
            sentence = f"the file of {refs.short(name)} holds no commit; git reflog {refs.short(name)} may say which"
            yield IntegrityProblem(sentence=sentence)


def _unreadable(repo: Repo, tip: str) -> Iterator[IntegrityProblem]:
    if repo.dead_ends.get(tip, False) is None:
        yield IntegrityProblem(commit=tip, sentence="no event on the way back from here starts the run")
        return
    try:
        for commit in history_reader.first_parents(repo, tip):
            if not trailers.has_trailers(message_of(commit)):
                continue
            try:
                event = history_reader.decoded(repo, commit).event
            except HistoryError as error:
                yield IntegrityProblem(commit=str(commit.id), sentence=error.message)
                continue
            if isinstance(event, RunStarted):
                return
        yield IntegrityProblem(
            commit=str(commit.id), sentence="the branch goes back to here, and no event starts the run"
        )
    except (HistoryError, RevisionNotFoundError, GitError) as error:
        yield IntegrityProblem(sentence=getattr(error, "message", str(error)))


def _fold_problems(
    run: str, records: Sequence[Recorded], budget: Callable[[int], int] | None
) -> Iterator[IntegrityProblem]:
    """Yield what the events say that contradicts the events before them; after a contradiction nothing follows."""
    state: RunState | None = None
    rules: set[tuple[Metric, float]] = set()
    for record in records:
        event = record.event
        if event.run != run:
            yield IntegrityProblem(commit=record.commit, sentence=f"an event of run {event.run} is on run {run}")
        try:
            if state is None:
                if not isinstance(event, RunStarted):
                    raise InvariantError(f"the run begins with {event.kind}", hint="skillgit fsck")  # noqa: TRY301 - one way out
                state = begin(event)
                continue
            sentences = _follow_problems(state, record, rules)
            yield from (IntegrityProblem(commit=record.commit, sentence=sentence) for sentence in sentences)
            state = advance(state, event)
        except InvariantError as error:
            yield IntegrityProblem(commit=record.commit, sentence=error.message)
            return
        if isinstance(event, Accepted | Rejected | Skipped):
            sentences = commit_checks.budget_problems(event, budget)
            yield from (IntegrityProblem(commit=record.commit, sentence=sentence) for sentence in sentences)


def _follow_problems(state: RunState, record: Recorded, rules: set[tuple[Metric, float]]) -> Iterator[str]:
    """Yield what ``record`` says that does not follow from ``state``; ``rules`` are those of the gates so far."""
    event = record.event
    yield from event_checks.score_problems(state, record)
    yield from sequence_problems(state, event, rules)
    yield from joining_problems(state, event)
    if isinstance(event, RunFinished):
        yield from event_checks.final_score_problems(state, event)
    verdict = getattr(event, "verdict", None)
    if verdict is not None:
        rules.add((verdict.metric, verdict.soft_weight))


def _parent_problems(record: Recorded, guidance: frozenset[str], versions: Mapping[int, str]) -> Iterator[str]:
    """Yield what is wrong with the parents of ``record``; ``guidance`` are the commits of the slow line."""
    event, parents = record.event, record.parents
    merges = isinstance(event, Accepted) and event.origin is Origin.MERGE
    if merges and len(parents) != commit_checks.MERGE:
        yield f"a merge of another line has two parents, and this commit has {len(parents)}"
    lines = other_lines(event) if isinstance(event, Accepted) and event.origin is Origin.STEP else ()
    if parents[1:] != tuple(versions.get(version, "") for version in lines) and lines:
        names = " and ".join(map(version_label, lines))
        yield f"it was made of {names} besides the version before it, and its other parents are not these"
    if len(parents) > 1 and not merges and not lines and not isinstance(event, SlowMerged | Edited):
        yield f"the commit has {len(parents)} parents, though its event merges nothing"
    if isinstance(event, Rejected) and parents != (versions.get(event.base, ""),):
        base = version_label(event.base)
        yield f"it was proposed on {base}, and its parent is not the commit of {base}"
    if isinstance(event, SlowMerged) and not (len(parents) == commit_checks.MERGE and parents[1] in guidance):
        yield "a slow merge has the run and the slow line as parents, and this commit has others"
    if isinstance(event, SlowProposed) and not (parents and (parents[0] in guidance or parents[0] == versions.get(0))):
        yield "its parent is neither the guidance before it nor v0"


def _event_problems(repo: Repo, record: Recorded, *, is_import: bool, is_training: bool) -> Iterator[str]:
    yield from trailer_problems(repo, record)
    yield from count_problems(record.event, is_import=is_import)
    if not is_import:
        yield from lacking_files(repo, record, is_training=is_training)


def _content_problems(
    repo: Repo, record: Recorded, versions: Mapping[int, str], contents: set[str], *, is_import: bool
) -> Iterator[str]:
    """Yield what is wrong with the content of ``record``'s commit and evidence; ``contents`` are objects seen here."""
    missing = list(integrity.missing_objects(repo, record, contents))
    if missing:
        yield from missing
        return
    try:
        yield from commit_checks.tree_problems(repo, record, versions)
        if not record.evidence or not any(integrity.missing_files(repo, record.evidence, contents)):
            yield from commit_checks.evidence_problems(repo, record, versions, is_import=is_import)
    except (GitError, KeyError, ValueError, RecursionError) as error:
        yield f"git cannot read what it builds on: {error}"


def _branch_problems(branches: Sequence[history.Source], records: Sequence[Recorded]) -> Iterator[IntegrityProblem]:
    at = {record.commit: record for record in records}
    for branch in branches:
        record = at.get(branch.tip)
        if branch.ref.kind is refs.RefKind.REJECTED and record is not None and record.branch != branch.ref.local:
            actual, expected_name = refs.short(branch.ref.local), refs.short(record.branch)
            yield IntegrityProblem(commit=branch.tip, sentence=f"{actual} holds the candidate of {expected_name}")


def _derived_problems(
    repo: Repo, run: str, records: Sequence[Recorded], tips: Mapping[str, str]
) -> Iterator[IntegrityProblem]:
    if refs.run_branch(run) not in tips:
        # A clone: what it lacks is made with the first event that is written here.
        return
    waiting = {
        record.commit for record in takewhile(lambda record: isinstance(record.event, Edited), reversed(records))
    }
    for update in history.derived_updates(run, records, tips):
        if update.new in waiting and update.name not in tips:
            # A person's commit: the event that follows it brings its tag.
            continue
        tip, name = tips.get(update.name, ""), refs.short(update.name)
        if update.new is None and _is_lost(repo, run, update.name, tip):
            branch = refs.short(refs.run_branch(run))
            sentence = f"{branch} does not lead to {name} any more; git branch -f {branch} {name} brings it back"
            yield IntegrityProblem(commit=tip, sentence=sentence)
            continue
        if update.new is None:
            sentence = f"{name} is a version that the run does not have"
        elif not tip:
            sentence = f"{name} is missing; it belongs to commit {update.new[:_SHORT]}"
        else:
            sentence = f"{name} points to commit {tip[:_SHORT]}, not to {update.new[:_SHORT]}"
        yield IntegrityProblem(commit=update.new or tip, sentence=sentence, repairable=True)


def _is_lost(repo: Repo, run: str, tag: str, commit: str) -> bool:
    """Say whether ``commit``, which ``tag`` points to, is the version of ``run`` that the tag names.

    If it is not part of the history, the line was moved back, and the tag may be all that is left of it.
    """
    try:
        event = history_reader.read_commit(repo, commit).event
    except SkillgitError:
        return False
    return refs.version_tag(event.run, version_of(event) or 0) == tag and event.run == run


INDEX = "the index differs from what these commits say; skillgit fsck --repair rebuilds it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    commit: str
    kind: str
    label: str  # what it is called, as `v7` or `r17`
    title: str
    gate: bool
    patch: bool  # whether its patch was applied to its base again
    screening: bool  # whether its screening was counted again
    differing: tuple[str, ...]
    lacking: tuple[str, ...]  # what could not be made again, and for want of what


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    run: str
    events: tuple[Replayed, ...]
    differing: tuple[str, ...]
    index: bool  # whether the index says what one that is built anew says
    history: str  # digest of all commits in their order; equal for two copies of the run exactly if these are equal

    @property
    def same(self) -> bool:
        """Whether everything came out as it is recorded."""
        return self.index and not self.differing and not any(event.differing for event in self.events)


def replay(context: Context, run: str | None) -> Replay:
    """Make a run again, offline, and compare.

    Everything is folded again, every edit budget and tree is computed again, and with the evidence that is here every
    mean, every gate decision and every patch.
    """
    with open_workspace(context) as workspace:
        repo, name = workspace.repo, find_run(workspace, run)
        records = history_reader.read_run(repo, name)
        problems = check_run(repo, name, budget=edit_schedule(workspace, name))
        gates = {gate.commit: gate for gate in recompute_gates(repo, records, least_coverage(repo, records))}
        commits = {record.commit for record in records}
        sentences: dict[str, list[str]] = {}
        for problem in problems:
            sentences.setdefault(problem.commit if problem.commit in commits else "", []).append(problem.sentence)
        return Replay(
            run=name,
            events=tuple(
                _replayed(
                    repo, recorded_event, gates.get(recorded_event.commit), sentences.get(recorded_event.commit, [])
                )
                for recorded_event in records
            ),
            differing=tuple(sentences.get("", ())),
            index=name not in index_check.differing_runs(workspace.index),
            history=history_digest(records),
        )


def history_digest(records: Sequence[Recorded]) -> str:
    """Return the SHA-256 of the ids of all commits of a run, a line each, in the order of its events."""
    return hashlib.sha256("".join(f"{record.commit}\n" for record in records).encode()).hexdigest()


def _replayed(repo: Repo, record: Recorded, gate: Recomputed | None, sentences: Sequence[str]) -> Replayed:
    event = record.event
    proposes = isinstance(event, Accepted | Rejected)
    has_patch = proposes and bool(read_evidence(repo, record.evidence, (PATCH,)))
    lacking = [f"gate, without {gate.lacking}"] if gate is not None and gate.lacking else []
    if proposes and not has_patch:
        lacking.append("patch, without patch.json")
    is_screened = isinstance(event, Accepted | Rejected | Skipped) and event.screening is not None
    has_screening = is_screened and bool(read_evidence(repo, record.evidence, (SCREENING,)))
    if is_screened and not has_screening:
        lacking.append(f"screening, without {SCREENING}")
    differing = dict.fromkeys([*sentences, *(gate.differing if gate is not None else ())])
    return Replayed(
        commit=record.commit,
        kind=event.kind,
        label=event_address(event).label,
        title=event.title,
        gate=gate is not None and not gate.lacking,
        patch=has_patch,
        screening=has_screening,
        differing=tuple(differing),
        lacking=tuple(lacking),
    )
