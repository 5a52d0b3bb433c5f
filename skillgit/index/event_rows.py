"""How events and their evidence become rows: what each table holds of them.

Evidence may come from strangers and may be damaged: anything malformed is left out, never an error.

Everything here but the numbers of events is a function of the events alone, never of the order in which they arrived,
so that an index that grew event by event equals one that was built at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, fsum
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary, Gauge
from skillgit.domain.event import (
    NOBODY,
    Accepted,
    Edited,
    Event,
    Gated,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_origin,
    version_of,
)
from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.outcomes import known_tokens
from skillgit.domain.proposal import EditRecord, PatchCounts, Screening
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import InvariantError
from skillgit.index.schema import AMOUNTS
from skillgit.index.version_queries import Before, Versions

if TYPE_CHECKING:
    from skillgit.store.commit_message import Recorded


SELECTION, CONFIG, SPLITS, ENVIRONMENT = "selection.json", "config.json", "splits.json", "environment.json"
PLANNED = (CONFIG, SPLITS, ENVIRONMENT)
NEEDED = (SELECTION, *PLANNED)
"""The files of an evidence tree that the index reads."""
WITH_OUTCOMES = tuple(kind for kind in EventKind if TRAITS[kind].has_outcomes)
"""The events whose evidence holds outcomes of items."""

OutcomeRow = tuple[str, str, float | None, float | None, str, int | None]
PlanRow = tuple[str, str, float, int]


def outcomes(files: Mapping[str, bytes]) -> list[OutcomeRow]:
    """Return item, task type, hard and soft score and reason of failure of every item of the selection split."""
    rows = _document(files, SELECTION)
    by_item = {row[0]: row for row in map(_outcome, rows if isinstance(rows, list) else []) if row is not None}
    return list(by_item.values())


def plan(files: Mapping[str, bytes]) -> PlanRow | None:
    """Return environment, metric, weight of the soft score and number of steps; None without a configuration."""
    config = _document(files, CONFIG)
    if not isinstance(config, dict):
        return None
    environment = _document(files, ENVIRONMENT)
    name = environment.get("name") if isinstance(environment, dict) else None
    metric = _at(config, "evaluation", "gate_metric")
    weight = _number(_at(config, "evaluation", "gate_mixed_weight"))
    return (
        str(name or _at(config, "env", "name") or ""),
        metric if metric in {"hard", "soft", "mixed"} else "",
        0.5 if weight is None else weight,
        _steps(config, _document(files, SPLITS)),
    )


def _steps(config: dict[str, object], splits: object) -> int:
    epochs, batch = _at(config, "train", "num_epochs"), _at(config, "train", "batch_size")
    micro = _at(config, "train", "accumulation")
    train = splits.get("train") if isinstance(splits, dict) else None
    if not (isinstance(epochs, int) and isinstance(batch, int) and isinstance(train, list) and batch > 0 <= epochs):
        return 0
    return epochs * ceil(len(train) / (batch * micro if isinstance(micro, int) and micro > 0 else batch))


def _outcome(row: object) -> OutcomeRow | None:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        return None
    item, task_type = row["id"], str(row.get("task_type", ""))
    if "failed" in row:
        return item, task_type, None, None, str(row["failed"]) or "failed", None
    hard, soft = _number(row.get("hard")), _number(row.get("soft"))
    return None if hard is None or soft is None else (item, task_type, hard, soft, "", known_tokens(row))


def _document(files: Mapping[str, bytes], name: str) -> object:
    try:
        return loads(files.get(name, b"null"))
    except (ValueError, RecursionError):
        return None


def _at(document: dict[str, object], section: str, key: str) -> object:
    inside = document.get(section)
    return inside.get(key) if isinstance(inside, dict) else None


def _number(value: object) -> float | None:
    # neither a truth value nor a number that is none
    if (type(value) is float or type(value) is int) and 0.0 <= value <= 1.0:
        return float(value)
    return None


Row = tuple[Any, ...]

_SHORT = 12
_SURROGATE = re.compile("[\ud800-\udfff]")
_amounts = attrgetter(*AMOUNTS)
_TABLES = ("event", "candidate", "spent", "edit", "evaluation", "item_outcome", "flip", "search", "gauge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    outcomes: list[OutcomeRow]
    plan: PlanRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What rows are made from besides their events."""

    seed: Callable[[Recorded], str]  # returns the text of the skill that a run starts from, for searching
    # returns what the evidence of an event says, given its kind and the evidence tree; None if it is not here, or not
    # looked at yet
    proof: Callable[[str, str], Proof | None] = lambda _kind, _tree: None
    before: Before = field(default_factory=Before)  # what the index has of the run already


@dataclass(slots=True, kw_only=True)
class Rows:
    """Rows of events of one run."""

    run: str
    tables: dict[str, list[Any]]
    # events and scores of versions that are in the index already and had none
    measurements: list[Row] = field(default_factory=list)
    plan: PlanRow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the kinds of events have, under one name each."""

    version: int | None = None
    base: int | None = None
    joined: int | None = None
    measures: int | None = None
    merge: bool = False
    verdict: Verdict | None = None
    patch: PatchCounts | None = None
    edits: tuple[EditRecord, ...] = ()
    evaluations: tuple[EvaluationSummary, ...] = ()
    removals: tuple[str, ...] = ()
    additions: tuple[str, ...] = ()
    outcome: str = ""
    screening: Screening | None = None


def rows_of(run: str, records: Sequence[Recorded], beside: Beside, first: int = 1) -> Rows:
    """Return the rows of ``records``, the events of ``run`` in their order, numbered from ``first`` on."""
    _check_run(run, records)
    rows = Rows(run=run, tables={name: [] for name in _TABLES})
    event, candidate, spending, edit, evaluation, outcome, flip, search, gauge = (rows.tables[name] for name in _TABLES)
    versions = Versions(beside.before)
    for number, record in enumerate(records, first):
        parts, proof = _parts(record.event), beside.proof(record.event.kind, record.evidence)
        event.append(_event_row(number, record, parts, is_loaded=proof is not None))
        if parts.verdict is not None or parts.patch is not None:
            candidate.append(_candidate_row(number, parts))
        if not isinstance(record.event, SlowMerged | Edited):
            spending.extend((number, part.role, part.stage, *_amounts(part.cost)) for part in record.event.cost.parts)
        edit.extend(_edit_rows(number, parts))
        evaluation.extend(_evaluation_rows(number, parts))
        if isinstance(record.event, Accepted | Rejected | SlowProposed | Reverted | Measured):
            flip.extend(_flip_rows(number, record.event.fixed, record.event.broken))
        if isinstance(record.event, RunStarted) and record.event.gauge != Gauge():
            gauge.append((run, str(record.event.gauge.metric), record.event.gauge.soft_weight))
        search.append(_search_row(number, record, parts, beside.seed))
        if proof is not None:
            outcome.extend((number, *row) for row in proof.outcomes)
            if isinstance(record.event, RunStarted):
                rows.plan = proof.plan
        versions.take(number, record.event)
    rows.tables["version"], rows.measurements = versions.rows, versions.measured
    rows.tables["tally"] = list(_tally_rows(run, event, spending, beside.before.tally()))
    return rows


def _check_run(run: str, records: Iterable[Recorded]) -> None:
    """Refuse events of another run, as a copied branch has them."""
    for record in records:
        if record.event.run != run:
            sentence = f"an event of run {record.event.run} is on run {run}: commit {record.commit[:_SHORT]}"
            raise InvariantError(sentence, hint="skillgit fsck")


def _parts(event: Event) -> _Parts:
    """Return what ``event`` has of what the tables hold: any kind of event may have any of it."""
    changes = tuple(getattr(event, "changes", ()))
    old_lines, new_lines = (tuple(change.text for change in changes if change.sign == sign) for sign in "-+")
    guidance = (event.guidance,) if isinstance(event, SlowProposed) else ()
    evaluations = event.evaluations if isinstance(event, RunFinished) else (getattr(event, "evaluation", None),)
    return _Parts(
        version=version_of(event),
        base=getattr(event, "base", None),
        joined=getattr(event, "joined", None),
        measures=event.version if isinstance(event, Measured) else None,
        merge=isinstance(event, SlowMerged),
        verdict=event.verdict if isinstance(event, Gated) else None,
        patch=getattr(event, "patch", None),
        edits=getattr(event, "edits", ()),
        evaluations=tuple(evaluation for evaluation in evaluations if isinstance(evaluation, EvaluationSummary)),
        removals=old_lines,
        additions=new_lines + guidance,
        outcome=str(event.outcome) if isinstance(event, RunFinished) else "",
        screening=getattr(event, "screening", None),
    )


def _event_row(number: int, record: Recorded, parts: _Parts, *, is_loaded: bool) -> tuple[Any, ...]:
    event, (at, step, rank, intervention) = record.event, record.order
    of = event.of if isinstance(event, Accepted | Rejected) else ""
    author = event.author if isinstance(event, Edited) else ""
    union = event.taken_up_by if isinstance(event, Skipped) else None
    position = (event.kind, at, rank, step, intervention, event.epoch, parts.version, parts.base, parts.joined, union)
    texts = (event.title, event_origin(event).value, of, author, event.skill)
    facts = (int(record.time.timestamp()), parts.outcome, record.evidence, int(is_loaded))
    models, cost = (NOBODY, Cost()) if isinstance(event, SlowMerged | Edited) else (event.models, event.cost)
    names = (models.target, models.optimizer, models.judge)
    return (number, event.run, record.commit, *position, *texts, *facts, *names, *_amounts(cost))


_MODELS, _COSTS = slice(-3 - len(AMOUNTS), -len(AMOUNTS)), slice(-len(AMOUNTS), None)


def _tally_rows(run: str, events: list[Row], spending: list[Row], before: Mapping[Row, Row]) -> Iterable[Row]:
    """Yield the rows of the tally that these events change; ``before`` is key to sums of the events before."""
    groups: dict[Row, list[Row]] = {}
    divided, models = {row[0] for row in spending}, {row[0]: row[_MODELS] for row in events}
    for row in events:
        groups.setdefault((run, *row[_MODELS], int(row[0] in divided), "", ""), []).append(row[_COSTS])
    for row in spending:
        groups.setdefault((run, *models[row[0]], 2, row[1], row[2]), []).append(row[_COSTS])
    for key, rows in groups.items():
        *sums, usd_rest, seconds_rest = before.get(key, (0,) * (len(AMOUNTS) + 2))
        columns = dict(zip(AMOUNTS, zip(sums, *rows, strict=True), strict=True))
        usd, usd_rest = _exact_sum(columns["usd"], usd_rest)
        seconds, seconds_rest = _exact_sum(columns["seconds"], seconds_rest)
        exact = {"usd": usd, "seconds": seconds}
        yield (
            *key,
            *(exact[name] if name in exact else sum(columns[name]) for name in columns),
            usd_rest,
            seconds_rest,
        )


def _exact_sum(values: Sequence[float], rest: float) -> tuple[float, float]:
    """Return the sum of ``values`` and ``rest``, and by how much it was rounded."""
    try:
        total = fsum((*values, rest))
        return total, fsum((*values, rest, -total))
    except OverflowError:  # a stranger's amounts
        return sum(values), 0.0


def _candidate_row(number: int, parts: _Parts) -> tuple[Any, ...]:
    gate: tuple[Any, ...] = (None,) * 13
    if (verdict := parts.verdict) is not None:
        words = (str(verdict.decision), str(verdict.policy), str(verdict.metric), verdict.soft_weight)
        numbers = (verdict.score, verdict.current, verdict.best, verdict.fixed, verdict.broken, verdict.p)
        gate = (*words, *numbers, *_stop(parts))
    counts: tuple[Any, ...] = (None,) * 5
    if (patch := parts.patch) is not None:
        counts = (patch.merged, patch.ranked, patch.applied, patch.skipped, patch.budget)
    outrun = None if verdict is None else verdict.outrun
    tokens = (None, None) if verdict is None else (verdict.tokens, verdict.tokens_before)
    screening = parts.screening
    screening_counts: tuple[Any, ...] = (None,) * 4
    if screening is not None:
        screening_counts = (screening.failing, screening.fixed, screening.solved, screening.broken)
    return (number, *gate, *counts, outrun, *screening_counts, *tokens)


def _stop(parts: _Parts) -> tuple[int | None, int | None, int]:
    """Return a candidate's items, how many were saved, and whether it was stopped; a version is not a candidate."""
    if parts.merge or parts.measures is not None or not parts.evaluations:
        return (None, None, 0)
    evaluation = parts.evaluations[0]
    return (evaluation.n, evaluation.unneeded - evaluation.spare, int(evaluation.stopped))


def _flip_rows(number: int, fixes: Iterable[str], breaks: Iterable[str]) -> Iterable[tuple[int, str, int]]:
    rose = {**dict.fromkeys(breaks, 0), **dict.fromkeys(fixes, 1)}
    # an item's name is a stranger's: SQLite refuses half a surrogate pair
    return [(number, item, is_gain) for item, is_gain in rose.items() if not _SURROGATE.search(item)]


def _edit_rows(number: int, parts: _Parts) -> Iterable[tuple[Any, ...]]:
    for position, edit in enumerate(parts.edits):
        yield number, position, str(edit.op), edit.file, edit.support, str(edit.source), edit.anchor


def _evaluation_rows(number: int, parts: _Parts) -> Iterable[tuple[Any, ...]]:
    for position, evaluation in enumerate(parts.evaluations):
        own = parts.version if parts.measures is None else parts.measures
        version = own if evaluation.version is None else evaluation.version
        counts = (evaluation.n, evaluation.scored, evaluation.hard, evaluation.soft, evaluation.seed)
        yield (number, position, str(evaluation.split), version, evaluation.item_set, *counts)


def _search_row(
    number: int, record: Recorded, parts: _Parts, seed: Callable[[Recorded], str]
) -> tuple[int, str, str, str]:
    body = "\n".join((record.event.why, *parts.removals))
    text = seed(record) if isinstance(record.event, RunStarted) else "\n".join(parts.additions)
    return number, record.event.title, body, text
