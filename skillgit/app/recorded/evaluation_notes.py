"""Evaluations after training: the notes on commits, and the outcomes of items in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Literal, TypeGuard

from skillgit.app.recorded.evidence_json import members, parsed
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Scored
from skillgit.index import version_queries
from skillgit.index.own_conditions import Otherwise, OwnConditions
from skillgit.index.rows import LogRow
from skillgit.store import notes

if TYPE_CHECKING:
    from skillgit.app.recorded.score_summary import Scores


OUTCOMES = "outcomes"
"""The kind of a line that tells outcomes and no scores; also the field that holds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedOutcomes:
    split: str
    target: str
    environment: str  # digest of the environment
    outcomes: Mapping[str, Scored]  # item to its outcome
    item_set: str = ""  # digest of the items of the evaluation; empty in a line without scores
    skill: str = ""  # the skill folder that was measured; empty where the commit holds one only, or a run tells
    judge: str = ""  # the model that scored; empty where none was asked, and in lines that do not tell
    setup: str = ""  # digest of what decides an outcome besides item, skill and draw; empty if not told
    served: str = ""  # digest of the server that answered; empty for a provider that fixes what names mean

    def counts_for(self, run: OwnConditions) -> bool:
        """Say whether its items are those of ``run``, measured as the run did."""
        names = ("split", "item_set", "target", "environment", "judge", "served", "setup", "skill")
        return run.counts(items=self.outcomes.keys(), **{name: getattr(self, name) for name in names})


def with_outcomes(note: Note, evaluation: Evaluation, *, sample: int) -> Note:
    """Return an evaluation's ``note`` with the outcomes of its items, as ``[hard, soft]``, and which draws they are."""
    return note | {OUTCOMES: _pairs(evaluation), "sample": sample}


def as_outcomes_note(evaluation: Evaluation, *, target: str, environment: str, setup: str, time: datetime) -> Note:
    conditions = {"target": target, "environment": environment, "setup": setup}
    head = {"kind": OUTCOMES, "split": evaluation.split.value, "seed": evaluation.seed}
    return {**head, **conditions, OUTCOMES: _pairs(evaluation), "time": _written(time)}


def noted_outcomes(line: str) -> NotedOutcomes | None:
    """Return the outcomes of items that a line tells; None if it tells none."""
    if f'"{OUTCOMES}"' not in line:
        return None
    note = members(parsed(line))
    if note.get("kind") not in {KIND, OUTCOMES}:
        return None
    outcomes = {str(item): _scored(pair) for item, pair in members(note.get(OUTCOMES)).items()}
    texts = ("split", "target", "environment", "item_set", "skill", "judge", "setup", "served")
    return NotedOutcomes(
        outcomes={item: outcome for item, outcome in outcomes.items() if outcome is not None},
        **{name: str(note.get(name) or "") for name in texts},
    )


def _written(time: datetime) -> str:
    return time.replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _scores(summary: EvaluationSummary | Scores) -> Note:
    return {"n": summary.n, "scored": summary.scored, "hard": summary.hard, "soft": summary.soft}


def _pairs(evaluation: Evaluation) -> dict[str, list[float]]:
    scored = evaluation.scored.items()
    values = {item: (outcome.hard, outcome.soft, outcome.tokens) for item, outcome in scored}
    return {item: [value for value in numbers if value is not None] for item, numbers in values.items()}


def _scored(pair: object) -> Scored | None:
    if not isinstance(pair, list) or len(pair) not in {2, 3}:  # hard, soft and, where they were counted, tokens
        return None
    is_fine = all(map(_is_number, pair)) and max(pair[:2]) <= 1.0
    return Scored(float(pair[0]), float(pair[1]), tokens=next(iter(pair[2:]), None)) if is_fine else None


KIND = "evaluation"
_MOST = 1e9
Note = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEvaluation:
    """One evaluation of a version that its own event does not tell."""

    source: Literal["note", "run-finished"]  # measured by `skillgit eval`, or by its run at the end
    split: str
    item_set: str  # digest of the items
    n: int
    scored: int
    hard: float
    soft: float
    seed: int
    target: str = ""  # the model that worked on the items; empty where the run's is meant
    environment: str = ""  # digest of the environment; empty where the run's is meant
    judge: str = ""  # the model that scored; empty where none was asked, and where the note does not tell
    served: str = ""  # digest of the server that answered; empty for a provider that fixes what names mean
    types: Mapping[str, Mapping[str, float]]  # task type to its numbers
    time: datetime | None  # when it was measured; absent if the note does not say
    differs: tuple[Otherwise, ...] = ()  # in what it was measured otherwise than its run; no score of the run if any

    @property
    def remark(self) -> str:
        """What keeps it from being a score of its run, in words; empty if nothing does."""
        return f"not as the run: other {', '.join(self.differs)}" if self.differs else ""


def as_note(
    summary: EvaluationSummary, types: Sequence[Scores], *, target: str, environment: str, setup: str, time: datetime
) -> Note:
    return {
        "kind": KIND,
        "split": summary.split.value,
        "item_set": summary.item_set,
        **_scores(summary),
        "seed": summary.seed,
        "target": target,
        "environment": environment,
        "setup": setup,
        "types": {group.task_type: _scores(group) for group in types},
        "time": _written(time),
    }


def record(workspace: Workspace, notes_of: Mapping[str, Sequence[Note]], time: datetime) -> int:
    """Write notes in one batch and return how many are new: to read the same outcomes again measures nothing."""
    fresh: dict[str, list[Note]] = {}
    for commit, lines in notes_of.items():
        there = [_timeless(line) for line in notes.read(workspace.repo, commit)]
        new = [line for line in lines if _timeless(line) not in there]
        if new:
            fresh[commit] = new
    if fresh:
        notes.append(workspace.repo, fresh, time=time)
        workspace.index.refresh()
    return sum(map(len, fresh.values()))


def known_evaluations(workspace: Workspace, commit: str, row: LogRow | None) -> tuple[KnownEvaluation, ...]:
    """Return the evaluations of a version: those at the end of its run, then those in its note, oldest first."""
    final = (
        [] if row is None or row.version is None else version_queries.final_rows(workspace.index, row.run, row.version)
    )
    results = [
        KnownEvaluation(
            source="run-finished",
            split=evaluation.split,
            item_set=evaluation.item_set,
            n=evaluation.n,
            scored=evaluation.scored,
            hard=evaluation.hard,
            soft=evaluation.soft,
            seed=evaluation.seed,
            types={},
            time=evaluation.time,
        )
        for evaluation in final
    ]
    lines = version_queries.note_lines(workspace.index, commit)
    own = OwnConditions(workspace.index, row.run) if lines and row is not None else None
    return (*results, *noted_evaluations(lines, own))


def noted_evaluations(lines: Sequence[str], own: OwnConditions | None) -> tuple[KnownEvaluation, ...]:
    """Return the evaluations among the ``lines`` of a commit's note, compared with the ``own`` ones of its run."""
    evaluations = (_from_line(line, own) for line in lines)
    return tuple(evaluation for evaluation in evaluations if evaluation is not None)


def reads_of_test(evaluations: Sequence[KnownEvaluation]) -> int:
    return sum(evaluation.split == "test" for evaluation in evaluations)


_WORDS = frozenset({"time", "config", "data"})
"""What a line says of a measurement besides what identifies it."""


def _timeless(note: Mapping[str, object]) -> Note:
    return {key: value for key, value in note.items() if key not in _WORDS}


def _from_line(line: str, own: OwnConditions | None) -> KnownEvaluation | None:
    note = members(parsed(line))
    counts = [count for name in ("n", "scored", "seed") if type(count := note.get(name)) is int]
    means = [value for name in ("hard", "soft") if _is_number(value := note.get(name))]
    if note.get("kind") != KIND or len(counts) < 3 or len(means) < 2:  # noqa: PLR2004 - all of these
        return None
    names = ("split", "item_set", "target", "environment", "judge", "served")
    texts = {name: str(note.get(name) or "") for name in names}
    differs = own.differing(**texts, setup=str(note.get("setup") or "")) if own is not None else ()
    return KnownEvaluation(
        source="note",
        **texts,
        differs=differs,
        n=counts[0],
        scored=counts[1],
        hard=means[0],
        soft=means[1],
        seed=counts[2],
        types={
            name: {key: number for key, number in members(numbers).items() if _is_number(number)}
            for name, numbers in members(note.get("types")).items()
            if isinstance(numbers, dict)
        },
        time=_moment(note.get("time")),
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST and isfinite(value)


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None
