"""How events and their evidence become rows: what each table holds of them.

Evidence may come from strangers and may be damaged: anything malformed is left out, never an error.

Everything here but the numbers of events is a function of the events alone, never of the order in which they arrived,
so that an index that grew event by event equals one that was built at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import ceil, fsum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from skillgit.domain.evaluation import Gauge
from skillgit.domain.event import FACTS, Event
from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.domain.outcomes import known_tokens
from skillgit.domain.proposal import PatchCounts
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import InvariantError
from skillgit.index.schema import AMOUNTS, columns_of, fact_columns
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
_COUNTS = frozenset(entry.name for entry in fields(PatchCounts))
_amounts = attrgetter(*AMOUNTS)
_FACTS = fact_columns(Event)
_facts = attrgetter(*(FACTS[name].column for name in _FACTS))
_edit_columns = attrgetter(*[*columns_of("edit")][2:])
_CANDIDATE = [
    ("screening", name.removeprefix("screen_"))
    if name.startswith("screen_")
    else ("stop" if name in {"items", "saved", "stopped"} else "patch" if name in _COUNTS else "verdict", name)
    for name in [*columns_of("candidate")][1:]
]
"""The columns of a candidate behind its event, each with the fact that has the attribute."""
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


def rows_of(run: str, records: Sequence[Recorded], beside: Beside, first: int = 1) -> Rows:
    """Return the rows of ``records``, the events of ``run`` in their order, numbered from ``first`` on."""
    _check_run(run, records)
    rows = Rows(run=run, tables={name: [] for name in _TABLES})
    event, candidate, spending, edit, evaluation, outcome, flip, search, gauge = (rows.tables[name] for name in _TABLES)
    versions = Versions(beside.before)
    for number, record in enumerate(records, first):
        fact, proof = record.event, beside.proof(record.event.kind, record.evidence)
        event.append(_event_row(number, record, is_loaded=proof is not None))
        if fact.verdict is not None or fact.patch is not None:
            candidate.append(_candidate_row(number, fact))
        spending.extend((number, part.role, part.stage, *_amounts(part.cost)) for part in fact.cost.parts)
        edit.extend((number, position, *_edit_columns(entry)) for position, entry in enumerate(fact.edits))
        evaluation.extend(_evaluation_rows(number, fact))
        flip.extend(_flip_rows(number, fact.fixed, fact.broken))
        if fact.gauge != Gauge():
            gauge.append((run, str(fact.gauge.metric), fact.gauge.soft_weight))
        search.append(_search_row(number, record, beside.seed))
        if proof is not None:
            outcome.extend((number, *row) for row in proof.outcomes)
            if fact.kind is EventKind.RUN_STARTED:
                rows.plan = proof.plan
        versions.take(number, fact)
    rows.tables["version"], rows.measurements = versions.rows, versions.measured
    rows.tables["tally"] = list(_tally_rows(run, event, spending, beside.before.tally()))
    return rows


def _check_run(run: str, records: Iterable[Recorded]) -> None:
    """Refuse events of another run, as a copied branch has them."""
    for record in records:
        if record.event.run != run:
            sentence = f"an event of run {record.event.run} is on run {run}: commit {record.commit[:_SHORT]}"
            raise InvariantError(sentence, hint="skillgit fsck")


def _event_row(number: int, record: Recorded, *, is_loaded: bool) -> Row:
    event = record.event
    values = zip(_FACTS.values(), _facts(event), strict=True)
    facts = ("" if kind is str and value is None else value for kind, value in values)
    names = (event.models.target, event.models.optimizer, event.models.judge)
    position = (record.at, event.rank, int(record.time.timestamp()), record.evidence, int(is_loaded))
    return (number, record.commit, event.kind, *position, *facts, *names, *_amounts(event.cost))


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


def _candidate_row(number: int, event: Event) -> Row:
    sources = {"verdict": event.verdict, "patch": event.patch, "screening": event.screening, "stop": _stop(event)}
    return (number, *(getattr(sources[source], name, None) for source, name in _CANDIDATE))


class _Stop(NamedTuple):
    items: int | None = None  # the items of a candidate
    saved: int | None = None  # how many of them were saved
    stopped: int = 0  # whether its evaluation was stopped


def _stop(event: Event) -> _Stop | None:
    """Return when a candidate's evaluation ended; a version is not a candidate."""
    if event.verdict is None:
        return None
    summary = event.summary
    if event.kind in {EventKind.SLOW_MERGED, EventKind.MEASURED} or summary is None:
        return _Stop()
    return _Stop(summary.n, summary.unneeded - summary.spare, int(summary.stopped))


def _flip_rows(number: int, fixes: Iterable[str], breaks: Iterable[str]) -> Iterable[tuple[int, str, int]]:
    rose = {**dict.fromkeys(breaks, 0), **dict.fromkeys(fixes, 1)}
    # an item's name is a stranger's: SQLite refuses half a surrogate pair
    return [(number, item, is_gain) for item, is_gain in rose.items() if not _SURROGATE.search(item)]


def _evaluation_rows(number: int, event: Event) -> Iterable[Row]:
    own = (event.summary,) if event.summary is not None else ()
    for position, summary in enumerate((*own, *event.evaluations)):
        version = event.version if summary.version is None else summary.version
        counts = (summary.n, summary.scored, summary.hard, summary.soft, summary.seed)
        yield (number, position, summary.split, version, summary.item_set, *counts)


def _search_row(number: int, record: Recorded, seed: Callable[[Recorded], str]) -> tuple[int, str, str, str]:
    event = record.event
    removals, additions = ([change.text for change in event.changes if change.sign == sign] for sign in "-+")
    body = "\n".join((event.why, *removals))
    is_start = event.kind is EventKind.RUN_STARTED
    text = seed(record) if is_start else "\n".join([*additions, *filter(None, [event.guidance])])
    return number, event.title, body, text
