"""``fsck``: whether the history of a run keeps its invariants, and the repair of what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.event import (
    Accepted,
    Rejected,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_name,
)
from skillgit.domain.state import advance, begin
from skillgit.errors import HistoryError, InvariantError, RevisionNotFoundError
from skillgit.store import contents, derived, history, reader, refs, scores
from skillgit.store.evidence import kept_trees
from skillgit.store.transaction import update_refs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from skillgit.domain.state import RunState
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong with a run.

    Attributes:
        commit: The commit that it lies in; empty if it lies in no commit.
        sentence: What is wrong, without a full stop.
        repairable: Whether it follows from the rest of the history, so that :func:`repair_run` mends it.
    """

    commit: str
    sentence: str
    repairable: bool = False


def check_run(repo: Repo, run: str, *, budget: Callable[[int], int] | None = None) -> list[Problem]:
    """Return what is wrong with ``run``.

    Args:
        repo: The repository.
        run: The run.
        budget: Step to the edit budget that the run's configuration gives it, if that is known.

    Raises:
        RevisionNotFoundError: There is no such run.
    """
    tips = repo.tips()
    branches = history.sources(repo, run, tips)
    if not branches:
        raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    try:
        records = reader.read_run(repo, run)
    except (HistoryError, RevisionNotFoundError) as error:
        unreadable = [problem for branch in branches for problem in _unreadable(repo, branch.tip)]
        return unreadable or [Problem(commit="", sentence=error.message)]
    versions = derived.versions(records)
    problems = list(_fold_problems(run, records, budget))
    guidance = frozenset(record.commit for record in records if isinstance(record.event, SlowProposed))
    for record in records:
        found = (
            *_parent_problems(record, guidance, versions),
            *contents.tree_problems(repo, record, versions),
            *contents.evidence_problems(repo, record, versions),
        )
        problems.extend(Problem(commit=record.commit, sentence=sentence) for sentence in found)
    problems.extend(_evidence_problems(repo, run, records, tips))
    problems.extend(_derived_problems(run, records, tips))
    return problems


def repair_run(repo: Repo, run: str) -> int:
    """Bring the derived refs of ``run`` to where they have to be; return how many moved.

    Raises:
        HistoryError: The history cannot be read.
        RevisionNotFoundError: There is no such run.
    """
    records = reader.read_run(repo, run)
    updates = derived.derived_updates(run, records, repo.tips())
    if updates:
        update_refs(repo, updates, identity=repo.identity(), reason="skillgit: fsck --repair")
    return len(updates)


def _unreadable(repo: Repo, tip: str) -> Iterator[Problem]:
    """Yield the commits from ``tip`` back to the start of the run that hold no readable event."""
    try:
        for commit in reader.first_parents(repo, tip):
            try:
                event = reader.read_commit(repo, str(commit.id)).event
            except HistoryError as error:
                yield Problem(commit=str(commit.id), sentence=error.message)
                continue
            if isinstance(event, RunStarted):
                return
    except RevisionNotFoundError as error:
        yield Problem(commit="", sentence=error.message)


def _fold_problems(run: str, records: Sequence[Recorded], budget: Callable[[int], int] | None) -> Iterator[Problem]:
    """Yield what the events say that contradicts the events before them; after a contradiction nothing follows."""
    state: RunState | None = None
    for record in records:
        event = record.event
        if event.run != run:
            yield Problem(commit=record.commit, sentence=f"an event of run {event.run} stands in run {run}")
        try:
            if state is None:
                if not isinstance(event, RunStarted):
                    raise InvariantError(f"the run begins with {event_name(event)}", hint="skillgit fsck")  # noqa: TRY301 - one way out
                state = begin(event)
                continue
            yield from (Problem(commit=record.commit, sentence=told) for told in scores.score_problems(state, record))
            state = advance(state, event)
        except InvariantError as error:
            yield Problem(commit=record.commit, sentence=error.message)
            return
        if isinstance(event, Accepted | Rejected | Skipped):
            told = contents.budget_problems(event, budget)
            yield from (Problem(commit=record.commit, sentence=sentence) for sentence in told)


def _parent_problems(record: Recorded, guidance: frozenset[str], versions: Mapping[int, str]) -> Iterator[str]:
    """Yield what is wrong with the parents of ``record``; ``guidance`` are the commits of the slow line."""
    event, parents = record.event, record.parents
    if isinstance(event, Rejected) and parents != (versions.get(event.base, ""),):
        yield f"it was proposed on v{event.base}, and its parent is not the commit of v{event.base}"
    if isinstance(event, SlowMerged) and not (len(parents) == contents.MERGE and parents[1] in guidance):
        yield "a slow merge has the run and the slow line as parents, and this commit has others"
    if isinstance(event, SlowProposed) and not (parents and (parents[0] in guidance or parents[0] == versions.get(0))):
        yield "its parent is neither the guidance before it nor v0"


def _evidence_problems(repo: Repo, run: str, records: Sequence[Recorded], tips: Mapping[str, str]) -> Iterator[Problem]:
    """Yield evidence that is lost, or that git would drop; a repository without the evidence ref has none, rightly."""
    place = refs.evidence_ref(run)
    if place not in tips:
        return
    kept = kept_trees(repo, run)
    for record in records:
        if not record.evidence or record.evidence in kept:
            continue
        if repo.has_object(record.evidence):
            sentence = f"its evidence is not kept by {refs.short(place)}, so that git gc will drop it"
        else:
            sentence = "its evidence is lost"
        yield Problem(commit=record.commit, sentence=sentence)


def _derived_problems(run: str, records: Sequence[Recorded], tips: Mapping[str, str]) -> Iterator[Problem]:
    if refs.run_branch(run) not in tips:
        # A clone: what it lacks is made with the first event that is written here.
        return
    for update in derived.derived_updates(run, records, tips):
        found, name = tips.get(update.name, ""), refs.short(update.name)
        if update.new is None:
            sentence = f"{name} is a version that the run does not have"
        elif not found:
            sentence = f"{name} is missing; it belongs to commit {update.new[:_SHORT]}"
        else:
            sentence = f"{name} points to commit {found[:_SHORT]}, not to {update.new[:_SHORT]}"
        yield Problem(commit=update.new or found, sentence=sentence, repairable=True)
