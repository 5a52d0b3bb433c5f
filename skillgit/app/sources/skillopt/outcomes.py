"""Outcomes of items as the reference leaves them: ``results.jsonl`` and one conversation for each item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import (
    Evaluation,
    EvaluationSummary,
    FailedToEvaluate,
    Outcome,
    Scored,
    Split,
    item_set_digest,
)
from skillgit.domain.ids import text_digest
from skillgit.engine.evidence_files import json_file
from skillgit.errors import DataError

if TYPE_CHECKING:
    from skillgit.app.sources.skillopt.directory import Directory, Row

ORIGIN = "skillopt"  # what the configuration and the environment of an imported run are marked with
ROUNDING = 1e-9  # means that differ by less differ by the order in which they were added up
_ANSWERS = ("predicted_answer", "prediction", "answer", "response")
_ROLES = {"system", "user", "assistant", "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What one folder tells of items; ``outcomes`` is empty if the rows contradict themselves."""

    rows: Sequence[Row]  # a row for each result, as evidence has it; trajectories named in it are in ``files``
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # conversations, path to content, ``<name>/`` in front

    def evidence(self, path: str, *, is_consistent: bool = True) -> dict[str, bytes]:
        """Return the rows as the file ``path``, which is set apart if they do not add up, and the conversations."""
        return {path if is_consistent else f"{ORIGIN}/{path}": json_file(list(self.rows)), **self.files}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedScore:
    summary: EvaluationSummary
    evaluation: Evaluation | None = None  # the outcomes; absent if they are not here, or do not add up to the score
    remark: str = ""  # what does not add up


def read_outcomes(directory: Directory, folders: Sequence[str], name: str) -> Outcomes | None:
    """Return the outcomes in ``folders``, a batch each, if any; conversations are filed under ``name``."""
    rows, files = list[dict[str, object]](), dict[str, bytes]()
    outcomes: dict[str, Outcome] | None = {}
    for folder in folders:
        lines = directory.lines(f"{folder}/results.jsonl")
        for line in lines or ():
            row, content = _row(directory, folder, line, name)
            rows.append(row)
            files |= content
            outcomes = _with(outcomes, row)
        for line in () if lines is None else directory.lines(f"{folder}/failed.jsonl") or ():
            item, reason = str(line.get("id", "")), str(line.get("reason") or "failed")
            rows.append({"id": item, "failed": reason})
            if outcomes is not None:
                outcomes[item] = FailedToEvaluate(reason)
    return Outcomes(rows=rows, outcomes=outcomes or {}, files=files) if rows else None


def _with(outcomes: dict[str, Outcome] | None, row: Row) -> dict[str, Outcome] | None:
    """Return ``outcomes`` with ``row``; None from the first row on that has no id of its own, or no score."""
    item, hard, soft = row["id"], row.get("hard"), row.get("soft")
    if outcomes is None or not item or str(item) in outcomes:
        return None
    if not isinstance(hard, float) or not isinstance(soft, float):
        return None
    try:
        return {**outcomes, str(item): Scored(hard, soft)}
    except DataError:
        return None


def _row(directory: Directory, folder: str, line: Row, name: str) -> tuple[Row, dict[str, bytes]]:
    item = str(line.get("id", ""))
    row: Row = {"id": item, "task_type": str(line.get("task_type") or line.get("type") or "default")}
    hard, soft = number(line.get("hard")), number(line.get("soft"))
    scores = {"hard": hard, "soft": hard if soft is None else soft}
    row |= {key: value for key, value in scores.items() if value is not None}
    for field_name, keys in (("answer", _ANSWERS), ("feedback", ("fail_reason", "feedback"))):
        row[field_name] = str(next((line[key] for key in keys if line.get(key)), ""))
    is_path = item and ".." not in item.replace("\\", "/").split("/") and not item.startswith("/")
    entries = directory.listing(f"{folder}/predictions/{item}/conversation.json") if is_path else None
    turns = list(_turns(entries or ()))
    if not turns:
        return row, {}
    path = f"{name}/trajectories/{text_digest(item)}.json"
    return row | {"trajectory": path}, {path: json_file({"id": item, "turns": turns})}


def _turns(entries: Sequence[Row]) -> Iterator[dict[str, str]]:
    """Yield the entries of a conversation as turns; calls of tools and steps of games become one of each side."""
    for entry in entries:
        if "cmd" in entry or "action" in entry:
            reasoning = str(entry.get("reasoning") or "")
            action = str(entry.get("cmd") or entry.get("action") or "")
            yield {"role": "assistant", "content": f"{reasoning}\n\n{action}" if reasoning else action}
            answer = entry.get("obs") or entry.get("env_feedback")
            if answer:
                yield {"role": "tool", "content": str(answer)}
        elif "content" in entry:
            role = str(entry.get("role") or "user")
            yield {"role": role if role in _ROLES else "user", "content": str(entry["content"])}


def number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < float("inf") else None


def count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScore:
    path: str
    split: Split
    hard: float | None
    soft: float | None  # the score with partial credit, if it is told
    is_partial: bool = False  # whether items without an outcome were left out because the decision did not need them
    spare: int = 0  # how many of those were rolled out all the same


def measured(claim: RecordedScore, outcomes: Outcomes | None, items: Sequence[str], seed: int) -> ImportedScore | None:
    """Return what ``claim`` and ``outcomes`` say together; None if neither has a score."""
    # What is claimed wins where the outcomes contradict it. Means that differ by rounding are those of the outcomes.
    # ``items`` are those of the split, as far as they are known.
    evaluation = None
    if outcomes is not None and outcomes.outcomes:
        without_outcome = tuple(item for item in items if item not in outcomes.outcomes) if claim.is_partial else ()
        evaluation = Evaluation(
            split=claim.split,
            item_set=set_digest((*outcomes.outcomes, *without_outcome)),
            outcomes=outcomes.outcomes,
            seed=seed,
            unneeded=without_outcome,
            spare=min(claim.spare, len(without_outcome)),
        )
        summary = evaluation.summary()
        pairs = ((summary.hard, claim.hard), (summary.soft, claim.soft))
        if all(figure is None or abs(score - figure) <= ROUNDING for score, figure in pairs):
            return ImportedScore(summary=summary, evaluation=evaluation)
    if claim.hard is None:
        return None
    n = len(outcomes.rows) if outcomes is not None else len(items)
    summary = EvaluationSummary(
        split=claim.split,
        item_set=set_digest(items) if items and n == len(items) else "",
        n=n,
        scored=n,
        hard=claim.hard,
        soft=claim.hard if claim.soft is None else claim.soft,
        seed=seed,
    )
    remark = ""
    if outcomes is not None:
        score_text = f"{evaluation.summary().hard:.6g}" if evaluation is not None else "nothing that can be used"
        remark = f"{claim.path} says {claim.hard:.6g}, and its results.jsonl says {score_text}; the first is kept"
    return ImportedScore(summary=summary, remark=remark)


def set_digest(items: Sequence[str]) -> str:
    """Return the digest of a set of items of which the contents are not known."""
    return item_set_digest(dict.fromkeys(items, ""))
