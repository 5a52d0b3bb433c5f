"""How events and their evidence become rows: what each table holds of them.

Evidence may come from strangers and may be damaged: anything malformed is left out, never an error.

Everything here but the numbers of events is a function of the events alone, never of the order in which they arrived,
so that an index that grew event by event equals one that was built at once.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from math import ceil, fsum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Gauge
from skillgit.domain.event import FACTS, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.outcomes import known_tokens
from skillgit.domain.proposal import PatchCounts
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import InvariantError
from skillgit.index.schema import AMOUNTS, TALLY_KEY, columns_of, fact_columns

if TYPE_CHECKING:
    from skillgit.store.commit_message import Recorded  # it takes longer to load than lists of events to be read

SELECTION, CONFIG, SPLITS, ENVIRONMENT = "selection.json", "config.json", "splits.json", "environment.json"
PLANNED = (CONFIG, SPLITS, ENVIRONMENT)
NEEDED = (SELECTION, *PLANNED)
"""The files of an evidence tree that the index reads."""

OutcomeRow = tuple[str, str, float | None, float | None, str, int | None]
Row = tuple[Any, ...]


def outcomes(files: Mapping[str, bytes]) -> list[OutcomeRow]:
    """Return item, task type, hard and soft score and reason of failure of every item of the selection split."""
    rows = _document(files, SELECTION)
    by_item = {row[0]: row for row in map(_outcome, rows if isinstance(rows, list) else []) if row is not None}
    return list(by_item.values())


def plan_rows(run: str, files: Mapping[str, bytes]) -> list[Row]:
    """Return environment, metric, weight of the soft score and number of steps of ``run``, if they are configured."""
    config = _document(files, CONFIG)
    if not isinstance(config, dict):
        return []
    environment = _document(files, ENVIRONMENT)
    name = environment.get("name") if isinstance(environment, dict) else None
    metric = _at(config, "evaluation", "gate_metric")
    weight = _number(_at(config, "evaluation", "gate_mixed_weight"))
    return [
        (
            run,
            str(name or _at(config, "env", "name") or ""),
            metric if metric in {"hard", "soft", "mixed"} else "",
            0.5 if weight is None else weight,
            _steps(config, _document(files, SPLITS)),
        )
    ]


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
_TABLES = ("event", "candidate", "spent", "edit", "evaluation", "item_outcome", "flip", "search", "gauge", "plan")


Scores = tuple[int | None, float | None, float | None, int | None, int | None]
"""The event that measured a version, its hard and soft score, its items, and how many of them have a score."""

_UNMEASURED: Scores = (None, None, None, None, None)


class Before:
    """What the index has of a run already: nothing without a connection to it."""

    def __init__(self, connection: sqlite3.Connection | None = None, run: str = "") -> None:
        self._connection, self._run = connection, run

    def scores(self, version: int) -> Scores | None:
        """Return the scores of a version; None if there is no such version."""
        query = "SELECT measured_by, hard, soft, n, scored FROM version WHERE run = ? AND version = ?"
        return next(iter(self._rows(query, version)), None)

    def proposal(self, epoch: int) -> int | None:
        """Return the event that proposed the slow update of an epoch; None if there is none."""
        query = "SELECT id FROM event WHERE run = ? AND kind = 'slow-proposed' AND epoch = ?"
        return next((number for (number,) in self._rows(query, epoch)), None)

    def tally(self) -> dict[Row, Row]:
        """Return the sums of what the run cost, by their keys."""
        key = len(TALLY_KEY)
        return {row[:key]: row[key:] for row in self._rows("SELECT * FROM tally WHERE run = ?")}

    def _rows(self, query: str, *values: int) -> Iterable[Any]:
        return () if self._connection is None else self._connection.execute(query, (self._run, *values))


class Versions:
    """The versions that events make, taken one after the other.

    Attributes:
        measured: Scores, run and number of versions that are in the index already and had no scores.
    """

    def __init__(self, before: Before) -> None:
        self.rows: list[list[Any]] = []
        self.measured: list[tuple[Any, ...]] = []
        self._before = before
        self._scores: dict[int, Scores] = {}
        self._rows_by_version: dict[int, list[Any]] = {}
        self._proposals: dict[int, int] = {}

    def take(self, number: int, event: Event) -> None:
        """Take in ``event``, numbered ``number``; an InvariantError if its version exists already."""
        if event.kind is EventKind.SLOW_PROPOSED:
            self._proposals.setdefault(event.epoch, number)
        elif event.kind is EventKind.MEASURED:
            self._measure(number, event)
        elif event.new_version is not None:
            source, scores = self._source(number, event)
            self._make(event.run, event.new_version, number, scores, source)

    def _make(self, run: str, version: int, number: int, scores: Scores, source: int | None = None) -> None:
        if version in self._rows_by_version or self._before.scores(version) is not None:
            # copied with its commit, as git cherry-pick does
            raise InvariantError(f"run {run} makes {version_label(version)} twice", hint="skillgit fsck")
        row = [run, version, number, scores[0], source, *scores[1:]]
        self.rows.append(row)
        self._rows_by_version[version], self._scores[version] = row, scores

    def _measure(self, number: int, event: Event) -> None:
        evaluation = event.evaluation
        scores = (number, evaluation.hard, evaluation.soft, evaluation.n, evaluation.scored)
        self._scores[event.version] = scores
        row = self._rows_by_version.get(event.version)
        if row is None:
            self.measured.append((*scores, event.run, event.version))
        else:
            row[3:] = [number, None, *scores[1:]]

    def _source(self, number: int, event: Event) -> tuple[int | None, Scores]:
        if event.evaluation is None:
            return None, _UNMEASURED
        if (source := event.inherited) is not None:
            return source, self._scores.get(source) or self._before.scores(source) or _UNMEASURED
        summary = event.evaluation
        measured_by = self._proposal(event.epoch) if event.kind is EventKind.SLOW_MERGED else number
        return None, (measured_by, summary.hard, summary.soft, summary.n, summary.scored)

    def _proposal(self, epoch: int) -> int | None:
        number = self._proposals.get(epoch)
        return self._before.proposal(epoch) if number is None else number


class Rows(NamedTuple):
    """Rows of events of one run."""

    tables: dict[str, list[Any]]
    # events and scores of versions that are in the index already and had none
    measurements: list[Row]


Read = Callable[["Recorded"], Mapping[str, bytes] | None]
"""Returns the :data:`NEEDED` evidence of an event; None if it is not here, or not looked at yet."""


def rows_of(
    run: str,
    records: Sequence[Recorded],
    seed: Callable[[Recorded], str],
    first: int = 1,
    *,
    read: Read = lambda _: None,
    before: Before | None = None,
) -> Rows:
    """Return the rows of ``records``, the events of ``run`` in their order, numbered from ``first`` on.

    Args:
        seed: Returns the text of the skill that a run starts from, for searching.
    """
    _check_run(run, records)
    before = before or Before()
    rows: dict[str, list[Any]] = {name: [] for name in _TABLES}
    versions = Versions(before)
    for number, record in enumerate(records, first):
        fact, files = record.event, read(record)
        rows["event"].append(_event_row(number, record, is_loaded=files is not None))
        if fact.verdict is not None or fact.patch is not None:
            rows["candidate"].append(_candidate_row(number, fact))
        rows["spent"] += ((number, part.role, part.stage, *_amounts(part.cost)) for part in fact.cost.parts)
        rows["edit"] += ((number, position, *_edit_columns(entry)) for position, entry in enumerate(fact.edits))
        rows["evaluation"] += _evaluation_rows(number, fact)
        rows["flip"] += _flip_rows(number, fact.fixed, fact.broken)
        if fact.gauge != Gauge():
            rows["gauge"].append((run, str(fact.gauge.metric), fact.gauge.soft_weight))
        rows["search"].append(_search_row(number, record, seed))
        if files is not None:
            rows["item_outcome"] += ((number, *row) for row in outcomes(files))
            if fact.kind is EventKind.RUN_STARTED:
                rows["plan"] += plan_rows(run, files)
        versions.take(number, fact)
    rows["version"] = versions.rows
    rows["tally"] = list(_tally_rows(run, rows["event"], rows["spent"], before.tally()))
    return Rows(rows, versions.measured)


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
    with_parts, models = {row[0] for row in spending}, {row[0]: row[_MODELS] for row in events}
    for row in events:
        groups.setdefault((run, *row[_MODELS], int(row[0] in with_parts), "", ""), []).append(row[_COSTS])
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
