"""Outcomes of items as the reference leaves them: ``results.jsonl`` and one conversation for each item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Evaluation, EvaluationSummary, FailedToEvaluate, Scored, item_set_digest
from skillgit.domain.ids import text_digest
from skillgit.engine.evidence_files import json_file
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.app.sources.skillopt.directory import Directory, Row
    from skillgit.domain.evaluation import Outcome, Split

ROUNDING = 1e-9
"""Means that differ by less differ by the order in which they were added up."""
_ANSWERS = ("predicted_answer", "prediction", "answer", "response")
_FEEDBACK = ("fail_reason", "feedback")
_ROLES = {"system", "user", "assistant", "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What one folder tells of items.

    Attributes:
        rows: A row for each result, in the form of evidence; trajectories named in them are among ``files``.
        scored: Item to its outcome; empty if the rows contradict themselves.
        files: The conversations, path to content, ``<name>/`` in front.
    """

    rows: Sequence[Row]
    scored: Mapping[str, Outcome] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    def evidence(self, path: str) -> dict[str, bytes]:
        """Return the rows as the file ``path``, and the conversations."""
        return {path: json_file(list(self.rows)), **self.files}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedScore:
    """A score with the outcomes behind it.

    Attributes:
        evaluation: The outcomes; absent if they are not here, or do not add up to the score.
        remark: What does not add up; empty if nothing.
    """

    summary: EvaluationSummary
    evaluation: Evaluation | None = None
    remark: str = ""


def read_outcomes(directory: Directory, folders: Sequence[str], name: str) -> Outcomes | None:
    """Return the outcomes in ``folders``, which hold one batch each; None if none of them holds results.

    Args:
        folders: The folders with a ``results.jsonl``.
        name: What the conversations are called after, such as ``rollout``.
    """
    rows, files = list[dict[str, object]](), dict[str, bytes]()
    outcomes: dict[str, Outcome] | None = {}
    results = [
        (folder, lines) for folder in folders if (lines := directory.lines(f"{folder}/results.jsonl")) is not None
    ]
    for folder, lines in results:
        for line in lines:
            row, content = _row(directory, folder, line, name)
            rows.append(row)
            files |= content
            outcomes = _with(outcomes, row)
        for line in directory.lines(f"{folder}/failed.jsonl") or ():
            reason = str(line.get("reason") or "failed")
            rows.append({"id": str(line.get("id", "")), "failed": reason})
            if outcomes is not None:
                outcomes[str(line.get("id", ""))] = FailedToEvaluate(reason)
    return Outcomes(rows=rows, scored=outcomes or {}, files=files) if rows else None


def _with(outcomes: dict[str, Outcome] | None, row: Row) -> dict[str, Outcome] | None:
    """Return ``outcomes`` with ``row``; None from the first row on that has no id of its own, or no score."""
    item, hard, soft = row["id"], row.get("hard"), row.get("soft")
    if (
        outcomes is None
        or not item
        or str(item) in outcomes
        or not isinstance(hard, float)
        or not isinstance(soft, float)
    ):
        return None
    try:
        return {**outcomes, str(item): Scored(hard, soft)}
    except DataError:
        return None


def _row(directory: Directory, folder: str, line: Row, name: str) -> tuple[Row, dict[str, bytes]]:
    item = str(line.get("id", ""))
    row: Row = {"id": item, "task_type": str(line.get("task_type") or line.get("type") or "default")}
    hard, soft = number(line.get("hard")), number(line.get("soft"))
    row |= {
        key: value for key, value in (("hard", hard), ("soft", hard if soft is None else soft)) if value is not None
    }
    row["answer"] = str(next((line[key] for key in _ANSWERS if line.get(key)), ""))
    row["feedback"] = str(next((line[key] for key in _FEEDBACK if line.get(key)), ""))
    parts = item.replace("\\", "/").split("/")
    if not item or ".." in parts or item.startswith("/"):
        return row, {}
    turns = list(_turns(directory.listing(f"{folder}/predictions/{item}/conversation.json") or ()))
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
    """Return ``value`` if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < float("inf") else None


def count(value: object) -> int | None:
    """Return ``value`` if it is a whole number and not negative."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScore:
    """The score that a record tells of a text.

    Attributes:
        soft: The score with partial credit, if it is told.
        unneeded: Whether items without an outcome were left out because the decision did not need them.
        spare: How many of those were rolled out all the same.
    """

    place: str
    split: Split
    hard: float | None
    soft: float | None
    unneeded: bool = False
    spare: int = 0


def measured(claim: RecordedScore, outcomes: Outcomes | None, items: Sequence[str], seed: int) -> ImportedScore | None:
    """Return what ``claim`` and ``outcomes`` say together; None if neither tells a score.

    What is told is kept where the outcomes contradict it. Means that differ by rounding are those of the outcomes.

    Args:
        outcomes: The outcomes of items, if they are here.
        items: The items of the split, as far as they are known.
    """
    evaluation = None
    if outcomes is not None and outcomes.scored:
        without_outcome = tuple(item for item in items if item not in outcomes.scored) if claim.unneeded else ()
        evaluation = Evaluation(
            split=claim.split,
            item_set=set_digest((*outcomes.scored, *without_outcome)),
            outcomes=outcomes.scored,
            seed=seed,
            unneeded=without_outcome,
            spare=min(claim.spare, len(without_outcome)),
        )
    if evaluation is not None:
        summary = evaluation.summary()
        if _agree(summary.hard, claim.hard) and _agree(summary.soft, claim.soft):
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
        remark = f"{claim.place} says {claim.hard:.6g}, and its results.jsonl says {score_text}; the first is kept"
    return ImportedScore(summary=summary, remark=remark)


def set_digest(items: Sequence[str]) -> str:
    """Return the digest of a set of items of which the contents are not known."""
    return item_set_digest(dict.fromkeys(items, ""))


def _agree(score: float, claim: float | None) -> bool:
    return claim is None or abs(score - claim) <= ROUNDING
