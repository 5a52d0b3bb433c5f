"""Evaluations after training: the notes on commits, and the outcomes of items in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Literal

from skillgit.domain.evaluation import Evaluation, Scored
from skillgit.domain.untrusted.json_limits import loads
from skillgit.index import version_queries
from skillgit.store import notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.app.recorded.score_summary import Scores
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.index.rows import LogRow


OUTCOMES = "outcomes"
"""The kind of a line that tells outcomes and no scores; also the field that holds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedOutcomes:
    """What one line tells of single items.

    Attributes:
        environment: Digest of the environment.
        outcomes: Item to its outcome.
        item_set: Digest of the items of the evaluation; empty in a line without scores.
        skill: The skill folder that was measured; empty where the commit holds one only, or a run tells.
        judge: The model that scored; empty where none was asked, and in lines that do not tell.
        setup: Digest of everything that decides an outcome besides item, skill and draw; empty in lines that do not
            tell.
    """

    split: str
    target: str
    environment: str
    outcomes: Mapping[str, Scored]
    item_set: str = ""
    skill: str = ""
    judge: str = ""
    setup: str = ""


def with_outcomes(note: Note, evaluation: Evaluation, *, sample: int) -> Note:
    """Return an evaluation's ``note`` with the outcomes of its items, as ``[hard, soft]``, and which draws they are."""
    return note | {OUTCOMES: _pairs(evaluation), "sample": sample}


def as_outcomes_note(evaluation: Evaluation, *, target: str, environment: str, setup: str, time: datetime) -> Note:
    """Return the outcomes of some items as a line of a note."""
    return {
        "kind": OUTCOMES,
        "split": evaluation.split.value,
        "seed": evaluation.seed,
        "target": target,
        "environment": environment,
        "setup": setup,
        OUTCOMES: _pairs(evaluation),
        "time": time.replace(microsecond=0).isoformat().replace("+00:00", "Z"),
    }


def noted_outcomes(line: str) -> NotedOutcomes | None:
    """Return the outcomes of items that a line tells; None if it tells none."""
    if f'"{OUTCOMES}"' not in line:
        return None
    try:
        note = loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(note, dict) or note.get("kind") not in {KIND, OUTCOMES}:
        return None
    pairs = note.get(OUTCOMES)
    outcomes = {str(item): _scored(pair) for item, pair in pairs.items()} if isinstance(pairs, dict) else {}
    return NotedOutcomes(
        split=str(note.get("split", "")),
        target=str(note.get("target", "")),
        environment=str(note.get("environment", "")),
        outcomes={item: outcome for item, outcome in outcomes.items() if outcome is not None},
        item_set=str(note.get("item_set", "")),
        skill=str(note.get("skill", "")),
        judge=str(note.get("judge", "")),
        setup=str(note.get("setup", "")),
    )


def _pairs(evaluation: Evaluation) -> dict[str, list[float]]:
    return {item: [outcome.hard, outcome.soft] for item, outcome in evaluation.scored.items()}


def _scored(pair: object) -> Scored | None:
    if not isinstance(pair, list) or len(pair) != 2 or not all(map(_is_score, pair)):  # noqa: PLR2004 - hard and soft
        return None
    return Scored(float(pair[0]), float(pair[1]))


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and 0.0 <= value <= 1.0


KIND = "evaluation"
_MOST = 1e9
Note = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEvaluation:
    """One evaluation of a version that its own event does not tell.

    Attributes:
        source: ``note`` if ``skillgit eval`` measured it, ``run-finished`` if its run did at the end.
        item_set: Digest of the items.
        target: The model that worked on the items; empty where the run's is meant.
        environment: Digest of the environment; empty where the run's is meant.
        judge: The model that scored; empty where none was asked, and where the note does not tell.
        types: Task type to its numbers.
        time: When it was measured; absent if the note does not say.
    """

    source: Literal["note", "run-finished"]
    split: str
    item_set: str
    n: int
    scored: int
    hard: float
    soft: float
    seed: int
    target: str = ""
    environment: str = ""
    judge: str = ""
    types: Mapping[str, Mapping[str, float]]
    time: datetime | None


def as_note(
    summary: EvaluationSummary, types: Sequence[Scores], *, target: str, environment: str, setup: str, time: datetime
) -> Note:
    """Return an evaluation as a line of a note."""
    return {
        "kind": KIND,
        "split": summary.split.value,
        "item_set": summary.item_set,
        "n": summary.n,
        "scored": summary.scored,
        "hard": summary.hard,
        "soft": summary.soft,
        "seed": summary.seed,
        "target": target,
        "environment": environment,
        "setup": setup,
        "types": {
            group.task_type: {"n": group.n, "scored": group.scored, "hard": group.hard, "soft": group.soft}
            for group in types
        },
        "time": time.replace(microsecond=0).isoformat().replace("+00:00", "Z"),
    }


def record(workspace: Workspace, notes_of: Mapping[str, Sequence[Note]], time: datetime) -> int:
    """Write notes on commits in one batch and return how many were new.

    An evaluation that the note of its commit tells already, whenever it was made, is not told again: reading the same
    outcomes once more measures nothing.
    """
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
    evaluations = (_from_line(line) for line in version_queries.note_lines(workspace.index, commit))
    return (*results, *(evaluation for evaluation in evaluations if evaluation is not None))


def reads_of_test(evaluations: Sequence[KnownEvaluation]) -> int:
    """Return how many of ``evaluations`` looked at the test split."""
    return sum(evaluation.split == "test" for evaluation in evaluations)


def _timeless(note: Mapping[str, object]) -> Note:
    return {key: value for key, value in note.items() if key != "time"}


def _from_line(line: str) -> KnownEvaluation | None:
    try:
        note = loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(note, dict) or note.get("kind") != KIND:
        return None
    counts = [note.get(name) for name in ("n", "scored", "seed")]
    means = [note.get(name) for name in ("hard", "soft")]
    if not (all(type(count) is int for count in counts) and all(_is_number(value) for value in means)):
        return None
    return KnownEvaluation(
        source="note",
        split=str(note.get("split", "")),
        item_set=str(note.get("item_set", "")),
        n=note["n"],
        scored=note["scored"],
        hard=note["hard"],
        soft=note["soft"],
        seed=note["seed"],
        target=str(note.get("target", "")),
        environment=str(note.get("environment", "")),
        judge=str(note.get("judge", "")),
        types=_types(note.get("types")),
        time=_moment(note.get("time")),
    )


def _types(value: object) -> dict[str, dict[str, float]]:
    if not isinstance(value, dict):
        return {}
    return {
        str(name): {str(key): number for key, number in numbers.items() if _is_number(number)}
        for name, numbers in value.items()
        if isinstance(numbers, dict)
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST and isfinite(value)


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None
