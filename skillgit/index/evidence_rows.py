"""What the index takes from an event's evidence: outcomes of items, and what a run was planned to be.

Evidence may come from strangers and may be damaged: whatever is not as it should be is left out, never an error.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.domain.untrusted.json_limits import loads

if TYPE_CHECKING:
    from collections.abc import Mapping

SELECTION, CONFIG, SPLITS, ENVIRONMENT = "selection.json", "config.json", "splits.json", "environment.json"
PLANNED = (CONFIG, SPLITS, ENVIRONMENT)
NEEDED = (SELECTION, *PLANNED)
"""The files of an evidence tree that the index reads."""
WITH_OUTCOMES = tuple(kind for kind in EventKind if TRAITS[kind].has_outcomes)
"""The events whose evidence holds outcomes of items."""

OutcomeRow = tuple[str, str, float | None, float | None, str]
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
        return item, task_type, None, None, str(row["failed"]) or "failed"
    hard, soft = _number(row.get("hard")), _number(row.get("soft"))
    return None if hard is None or soft is None else (item, task_type, hard, soft, "")


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
