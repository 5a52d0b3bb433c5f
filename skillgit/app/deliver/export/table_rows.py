"""The rows of the tables of a run; what an event does not have is absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import NOBODY, Inherited, event_origin, event_step, version_of
from skillgit.domain.skill import DOCUMENT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from skillgit.store.commit_message import Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTableRow:
    """One event. Scores are those of the selection split; ``score``, ``current`` and ``best`` what the gate compared.

    Attributes:
        time: When it was committed, in UTC.
        score: The candidate's score; absent where no more than a bound is known.
        bound: The highest that the score could have been, where the evaluation ended early; absent otherwise.
        unneeded: How many of them the decision did not need.
        soft: Mean score with partial credit.
        inherited: The version that the score was taken over from.
        usd: US dollars.
    """

    run: str
    commit: str
    time: datetime
    kind: str
    origin: str
    epoch: int
    step: int
    version: int | None
    base: int | None
    title: str
    decision: str | None
    policy: str | None
    metric: str | None
    score: float | None
    bound: float | None
    current: float | None
    best: float | None
    fixed: int | None
    broken: int | None
    p: float | None
    n: int | None
    scored: int | None
    unneeded: int | None
    hard: float | None
    soft: float | None
    inherited: int | None
    merged: int | None
    ranked: int | None
    applied: int | None
    skipped: int | None
    budget: int | None
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    unpriced: int
    seconds: float
    target: str
    optimizer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """One version.

    Attributes:
        time: When it was committed, in UTC.
        hard: Mean strict score on the selection split; absent if nobody measured it.
        soft: Mean score with partial credit.
        inherited: The version that the score was taken over from.
        test_hard: Mean strict score on the test split at the end of the run.
        test_soft: Mean score with partial credit on it.
    """

    run: str
    version: int
    commit: str
    time: datetime
    kind: str
    epoch: int
    step: int
    title: str
    hard: float | None
    soft: float | None
    n: int | None
    scored: int | None
    inherited: int | None
    test_hard: float | None
    test_soft: float | None
    best: bool
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTableRow:
    """What one version did on one item of the selection split.

    Attributes:
        hard: The strict score; absent if it failed to evaluate.
        soft: The score with partial credit.
        failed: Why it failed to evaluate; empty if it did not.
    """

    run: str
    version: int
    item: str
    task_type: str
    hard: float | None
    soft: float | None
    failed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTableRow:
    """One applied edit of a candidate.

    Attributes:
        version: The version that it became; absent if it was refused.
        place: Its place in the patch, from 1.
        anchor: Where it was done; empty if the evidence is not here.
        content: The new text; empty if the evidence is not here.
    """

    run: str
    commit: str
    step: int
    version: int | None
    decision: str
    place: int
    op: str
    file: str
    support: int
    source: str
    anchor: str
    content: str


def event_row(record: Recorded) -> EventTableRow:
    event = record.event
    verdict, patch = getattr(event, "verdict", None), getattr(event, "patch", None)
    evaluation = getattr(event, "evaluation", None)
    score = evaluation if isinstance(evaluation, EvaluationSummary) else None
    is_stopped = score is not None and score.stopped
    models, cost = getattr(event, "models", NOBODY), getattr(event, "cost", Cost())
    return EventTableRow(
        run=event.run,
        commit=record.commit,
        time=record.time,
        kind=event.kind,
        origin=event_origin(event).value,
        epoch=event.epoch,
        step=event_step(event),
        version=version_of(event),
        base=getattr(event, "base", None),
        title=event.title,
        decision=verdict.decision.value if verdict else None,
        policy=verdict.policy if verdict else None,
        metric=verdict.metric.value if verdict else None,
        score=verdict.score if verdict and not is_stopped else None,
        bound=verdict.score if verdict and is_stopped else None,
        **{name: getattr(verdict, name, None) for name in ("current", "best", "fixed", "broken", "p")},
        **{name: getattr(score, name, None) for name in ("n", "scored", "unneeded", "hard", "soft")},
        inherited=evaluation.version if isinstance(evaluation, Inherited) else None,
        **{name: getattr(patch, name, None) for name in ("merged", "ranked", "applied", "skipped", "budget")},
        calls=cost.calls,
        tokens_in=cost.tokens_in,
        tokens_out=cost.tokens_out,
        usd=cost.usd,
        unpriced=cost.unpriced,
        seconds=cost.seconds,
        target=models.target,
        optimizer=models.optimizer,
    )


def version_row(
    record: Recorded,
    files: Mapping[str, bytes],
    summary: EvaluationSummary | None,
    test: EvaluationSummary | None,
    *,
    best: bool,
) -> VersionRow:
    """Return the row of the version that ``record`` made.

    Args:
        summary: Its score on the selection split, taken over or not.
    """
    event = record.event
    evaluation = getattr(event, "evaluation", None)
    return VersionRow(
        run=event.run,
        version=version_of(event) or 0,
        commit=record.commit,
        time=record.time,
        kind=event.kind,
        epoch=event.epoch,
        step=event_step(event),
        title=event.title,
        hard=summary.hard if summary else None,
        soft=summary.soft if summary else None,
        n=summary.n if summary else None,
        scored=summary.scored if summary else None,
        inherited=evaluation.version if isinstance(evaluation, Inherited) else None,
        test_hard=test.hard if test else None,
        test_soft=test.soft if test else None,
        best=best,
        bytes=sum(map(len, files.values())),
        lines=len(files.get(DOCUMENT, b"").decode(errors="replace").splitlines()),
    )
