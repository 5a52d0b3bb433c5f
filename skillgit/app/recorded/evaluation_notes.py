"""Evaluations after training: the notes on commits, and the outcomes of items in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard

from skillgit.app.recorded.evidence_json import members, parsed
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Scored
from skillgit.index import version_queries
from skillgit.index.own_conditions import Otherwise, OwnConditions
from skillgit.index.rows import LogRow
from skillgit.store import notes

if TYPE_CHECKING:
    from skillgit.app.recorded.score_summary import Scores


KIND: Final = "evaluation"
OUTCOMES: Final = "outcomes"
"""The kind of a line with outcomes and without scores; also the field that holds them."""
Note = dict[str, object]
_MOST = 1e9
_CONDITIONS = ("split", "item_set", "target", "environment", "judge", "served", "setup", "skill")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedOutcomes:
    split: str
    target: str
    environment: str  # digest of the environment
    outcomes: Mapping[str, Scored]  # item to its outcome
    item_set: str = ""  # digest of the items of the evaluation; empty in a line without scores
    skill: str = ""  # the skill folder that was measured; empty where the commit holds only one, or a run names it
    judge: str = ""  # the model that scored; empty where none was asked, and in lines that do not say
    setup: str = ""  # digest of what decides an outcome besides item, skill and draw; empty if unknown
    served: str = ""  # digest of the server that answered; empty for a provider that fixes what names mean

    def counts_for(self, run: OwnConditions) -> bool:
        """Say whether its items are those of ``run``, measured as the run did."""
        return run.counts(items=self.outcomes.keys(), **{name: getattr(self, name) for name in _CONDITIONS})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEvaluation:
    """One evaluation of a version that its own event does not record."""

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
    judge: str = ""  # the model that scored; empty where none was asked, and where the note does not say
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
    def means(scores: EvaluationSummary | Scores) -> Note:
        return {"n": scores.n, "scored": scores.scored, "hard": scores.hard, "soft": scores.soft}

    return {
        "kind": KIND,
        "split": summary.split.value,
        "item_set": summary.item_set,
        **means(summary),
        "seed": summary.seed,
        "target": target,
        "environment": environment,
        "setup": setup,
        "types": {group.task_type: means(group) for group in types},
        "time": _written(time),
    }


def with_outcomes(note: Note, evaluation: Evaluation, *, sample: int) -> Note:
    """Return an evaluation's ``note`` with the outcomes of its items, as ``[hard, soft]``, and which draws they are."""
    return note | {OUTCOMES: _pairs(evaluation), "sample": sample}


def as_outcomes_note(evaluation: Evaluation, *, target: str, environment: str, setup: str, time: datetime) -> Note:
    conditions = {"target": target, "environment": environment, "setup": setup}
    head = {"kind": OUTCOMES, "split": evaluation.split.value, "seed": evaluation.seed}
    return {**head, **conditions, OUTCOMES: _pairs(evaluation), "time": _written(time)}


def _written(time: datetime) -> str:
    return time.replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _pairs(evaluation: Evaluation) -> dict[str, list[float]]:
    outcomes = evaluation.scored.items()
    values = {item: (outcome.hard, outcome.soft, outcome.tokens) for item, outcome in outcomes}
    return {item: [value for value in numbers if value is not None] for item, numbers in values.items()}


def record(workspace: Workspace, notes_of: Mapping[str, Sequence[Note]], time: datetime) -> int:
    """Write notes in one batch and return how many are new: to read the same outcomes again measures nothing."""

    def facts(note: Mapping[str, object]) -> Note:
        """Return what identifies a measurement in a line, without what else the line says."""
        return {key: value for key, value in note.items() if key not in {"time", "config", "data"}}

    fresh: dict[str, list[Note]] = {}
    for commit, lines in notes_of.items():
        old = [facts(line) for line in notes.read(workspace.repo, commit)]
        if new := [line for line in lines if facts(line) not in old]:
            fresh[commit] = new
    if fresh:
        notes.append(workspace.repo, fresh, time=time)
        workspace.index.refresh()
    return sum(map(len, fresh.values()))


def known_evaluations(workspace: Workspace, commit: str, row: LogRow | None) -> tuple[KnownEvaluation, ...]:
    """Return the evaluations of a version: those at the end of its run, then those in its note, oldest first."""
    is_version = row is not None and row.version is not None
    final = version_queries.final_rows(workspace.index, row.run, row.version or 0) if row and is_version else ()
    same = ("split", "item_set", "n", "scored", "hard", "soft", "seed", "time")
    at_end = (
        KnownEvaluation(source="run-finished", types={}, **{name: getattr(evaluation, name) for name in same})
        for evaluation in final
    )
    lines = version_queries.note_lines(workspace.index, commit)
    own = OwnConditions(workspace.index, row.run) if lines and row is not None else None
    return (*at_end, *noted_evaluations(lines, own))


def noted_evaluations(lines: Sequence[str], own: OwnConditions | None) -> tuple[KnownEvaluation, ...]:
    """Return the evaluations among the ``lines`` of a commit's note, compared with the ``own`` ones of its run."""
    evaluations = (_evaluation(members(parsed(line)), own) for line in lines)
    return tuple(evaluation for evaluation in evaluations if evaluation is not None)


def _evaluation(note: Mapping[str, object], own: OwnConditions | None) -> KnownEvaluation | None:
    numbers: dict[str, Any] = {name: note.get(name) for name in ("n", "scored", "seed", "hard", "soft")}
    are_counts = all(type(numbers[name]) is int for name in ("n", "scored", "seed"))
    if note.get("kind") != KIND or not are_counts or not (_is_number(numbers["hard"]) and _is_number(numbers["soft"])):
        return None
    texts: dict[str, Any] = {name: str(note.get(name) or "") for name in _CONDITIONS if name not in {"setup", "skill"}}
    try:
        time = datetime.fromisoformat(str(note.get("time")))
    except ValueError:
        time = None
    return KnownEvaluation(
        source="note",
        **texts,
        **numbers,
        differs=own.differing(**texts, setup=str(note.get("setup") or "")) if own is not None else (),
        types={
            name: {key: number for key, number in scores.items() if _is_number(number)}
            for name, scores in members(note.get("types")).items()
            if isinstance(scores, dict)
        },
        time=time if time is not None and time.tzinfo else None,
    )


def noted_outcomes(line: str) -> NotedOutcomes | None:
    """Return the outcomes of items in a line; None without any."""
    note = members(parsed(line)) if f'"{OUTCOMES}"' in line else {}
    if note.get("kind") not in {KIND, OUTCOMES}:
        return None
    outcomes: dict[str, Scored] = {}
    for item, pair in members(note.get(OUTCOMES)).items():
        # hard, soft and, where they were counted, tokens
        if isinstance(pair, list) and len(pair) in {2, 3} and all(map(_is_number, pair)) and max(pair[:2]) <= 1.0:
            outcomes[str(item)] = Scored(float(pair[0]), float(pair[1]), tokens=next(iter(pair[2:]), None))
    return NotedOutcomes(outcomes=outcomes, **{name: str(note.get(name) or "") for name in _CONDITIONS})


def reads_of_test(evaluations: Sequence[KnownEvaluation]) -> int:
    return sum(evaluation.split == "test" for evaluation in evaluations)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST and isfinite(value)
