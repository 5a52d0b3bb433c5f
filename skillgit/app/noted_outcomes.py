"""Outcomes of single items in the notes on a commit: what was measured again, or measured late.

They stand in the line of an evaluation, or in a line of the kind ``outcomes`` where only some items were asked. Notes
may come from strangers: what is not as it should be is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from skillgit.app.evaluations import KIND
from skillgit.domain.evaluation import Evaluation, Scored
from skillgit.domain.untrusted.documents import loads

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from skillgit.app.evaluations import Note

OUTCOMES = "outcomes"
"""The kind of a line that tells outcomes and no scores; also the field that holds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedOutcomes:
    """What one line tells of single items.

    Attributes:
        split: The split that the items belong to.
        target: The model that worked on them.
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
    told = {str(item): _scored(pair) for item, pair in pairs.items()} if isinstance(pairs, dict) else {}
    return NotedOutcomes(
        split=str(note.get("split", "")),
        target=str(note.get("target", "")),
        environment=str(note.get("environment", "")),
        outcomes={item: outcome for item, outcome in told.items() if outcome is not None},
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
