"""What the evidence of a step tells about its edits: their text, the items that moved them, what analysts saw.

Evidence may come from strangers and may be damaged: whatever is not as it should be is left out, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from skillgit.app.recorded.evidence_json import members, objects, parsed
from skillgit.domain.asked_question import question_of
from skillgit.domain.edit import QUARANTINED, EditStatus, LeftOut, words_of
from skillgit.domain.evidence_names import COMPARISON, FINDINGS, LOOKS, PATCH, ROLLOUT
from skillgit.store.evidence import read_evidence
from skillgit.store.repo import Repo

_FAILING = ("regressed", "persistent_fail")
_LONGEST_QUESTION = 600  # characters, counted from its end


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEdit:
    """One edit that took effect, in full."""

    position: int  # its place among the edits of the patch, from 0
    op: str
    file: str  # inside the skill folder
    anchor: str
    content: str
    support: int
    source: str
    items: tuple[str, ...]  # the train items that moved it, as far as they are known


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryPattern:
    """A pattern that analysts saw in the trajectories of a step."""

    pattern: str
    count: int
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainAttempt:
    """What the target made of one train item."""

    item: str
    task_type: str = ""
    question: str = ""  # the end of what the target was asked; empty if that was not kept
    answer: str = ""
    feedback: str = ""  # what the scorer said about it, the accepted answers included where it names them
    hard: float | None = None  # the strict score; absent if the item failed to evaluate
    soft: float | None = None  # the score with partial credit


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLook:
    """What a draft of a step did on a few train items before anything of the selection split was touched."""

    draft: int  # its number among the drafts of the step, from 1
    attempt: int  # which text of this draft it was, from 1
    shape: str  # edits, whole text or removal
    title: str
    ending: str  # what happened to this text then: kept, narrowed, written again or dropped
    rollouts: int  # what the look cost
    failing: int  # tried items that the base fails
    solved: int  # tried items that the base solves
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    tokens: int  # by how many tokens the skill was longer with it
    objection: str  # why it was not tried; empty if it was


class StepEvidence:
    """The evidence of one event, read as far as it is asked for."""

    def __init__(self, repo: Repo, tree: str) -> None:
        self._repo = repo
        self._tree = tree
        files = read_evidence(repo, tree, (PATCH, ROLLOUT, FINDINGS, COMPARISON, LOOKS))
        self.present = files is not None
        self._files: Mapping[str, bytes] = files or {}

    def edits(self) -> tuple[AppliedEdit, ...]:
        """Return the edits that took effect, as they were applied; each of a rewrite rests on all of its items."""
        patch = members(parsed(self._files.get(PATCH)))
        shared = {"items": patch.get("items")}
        edits = [shared | row for row in objects(patch.get("edits")) if row.get("status") == "applied"]
        return tuple(_edit(index, row) for index, row in enumerate(edits))

    def left_out(self) -> tuple[LeftOut, ...]:
        return _left_out(self._files.get(PATCH))

    def looks(self) -> tuple[DraftLook, ...]:
        """Return what the drafts of the step did on train items, draft by draft."""
        return _looks(self._files.get(LOOKS))

    def findings(self) -> tuple[TrajectoryPattern, ...]:
        rows = objects(members(parsed(self._files.get(FINDINGS))).get("findings"))
        return tuple(
            TrajectoryPattern(pattern=_text(row, "pattern"), count=_whole(row, "count"), items=_names(row.get("items")))
            for row in rows
        )

    def rollouts(self) -> int:
        return len(objects(parsed(self._files.get(ROLLOUT))))

    def attempts(self, items: Iterable[str]) -> tuple[TrainAttempt, ...]:
        """Return what happened to ``items`` in the rollouts of the step, in this order; unknown ones are left out."""
        rows = {_text(row, "id"): row for row in objects(parsed(self._files.get(ROLLOUT)))}
        attempts = [rows[item] for item in items if item in rows]
        paths = [_text(row, "trajectory") for row in attempts if _text(row, "trajectory")]
        turns = (read_evidence(self._repo, self._tree, paths) or {}) if paths else {}
        return tuple(_attempt(row, turns.get(_text(row, "trajectory"))) for row in attempts)

    def compared(self) -> tuple[TrainAttempt, ...]:
        """Return the train items that a slow update saw fail, worst first: those that got lost, those that stayed."""
        rows = [row for row in objects(parsed(self._files.get(COMPARISON))) if row.get("category") in _FAILING]
        ranking = sorted(rows, key=lambda row: _FAILING.index(_text(row, "category")))
        return tuple(_compared(row) for row in ranking)


def edits_left_out(repo: Repo, tree: str) -> tuple[LeftOut, ...]:
    """Return the edits that the evidence in ``tree`` tells were chosen and not applied; none if it is not here."""
    files = read_evidence(repo, tree, (PATCH,)) if tree else None
    return _left_out((files or {}).get(PATCH))


def looks_in(repo: Repo, tree: str) -> tuple[DraftLook, ...]:
    """Return the looks at drafts in the evidence ``tree``; none if it is not here."""
    files = read_evidence(repo, tree, (LOOKS,)) if tree else None
    return _looks((files or {}).get(LOOKS))


def _looks(content: bytes | None) -> tuple[DraftLook, ...]:
    return tuple(
        DraftLook(
            draft=_whole(row, "draft"),
            attempt=_whole(row, "attempt"),
            shape=_text(row, "shape"),
            title=_text(row, "title"),
            ending=_text(row, "ending"),
            rollouts=_whole(row, "rollouts"),
            failing=_whole(row, "failing"),
            solved=_whole(row, "solved"),
            fixed=_names(row.get("fixed")),
            broken=_names(row.get("broken")),
            tokens=_whole(row, "tokens"),
            objection=_text(row, "objection"),
        )
        for row in objects(parsed(content))
    )


def with_questions(attempts: Sequence[TrainAttempt], steps: Iterable[StepEvidence]) -> tuple[TrainAttempt, ...]:
    """Return ``attempts`` with what was asked, and what the scorer said of such an answer, as far as ``steps`` tell."""
    by_item: dict[str, TrainAttempt] = {}
    attempts_by_item = {attempt.item: attempt for attempt in attempts}
    for step in steps:
        for candidate in step.attempts(
            item for item in attempts_by_item if item not in by_item or not by_item[item].feedback
        ):
            same = candidate.answer == attempts_by_item[candidate.item].answer
            richest = by_item.get(candidate.item, attempts_by_item[candidate.item])
            question = richest.question or candidate.question
            by_item[candidate.item] = replace(
                richest, question=question, feedback=candidate.feedback if same else richest.feedback
            )
        if all(item in by_item and by_item[item].feedback for item in attempts_by_item):
            break
    return tuple(by_item.get(attempt.item, attempt) for attempt in attempts)


def _left_out(patch: bytes | None) -> tuple[LeftOut, ...]:
    rows = objects(members(parsed(patch)).get("edits"))
    return tuple(_reason(row) for row in rows if row.get("status") != EditStatus.APPLIED)


def _reason(row: Mapping[str, object]) -> LeftOut:
    reason = _text(row, "detail")
    # a quarantined edit quotes what no screen and no report shall quote
    text = "" if reason.startswith(QUARANTINED) else _text(row, "content") or _text(row, "anchor")
    op = _text(row, "op").replace("_", " ")
    edit = words_of(op, text) if text else f"{op} {_text(row, 'file')}"
    return LeftOut(edit=edit, status=_text(row, "status"), reason=reason)


def _edit(index: int, row: Mapping[str, object]) -> AppliedEdit:
    return AppliedEdit(
        position=index,
        support=_whole(row, "support"),
        **{name: _text(row, name) for name in ("op", "file", "anchor", "content", "source")},
        items=_names(row.get("items")),
    )


def _attempt(row: Mapping[str, object], trajectory: bytes | None) -> TrainAttempt:
    return TrainAttempt(
        item=_text(row, "id"),
        task_type=_text(row, "task_type"),
        question=_question(trajectory),
        answer=_text(row, "answer"),
        feedback=_text(row, "feedback") or _text(row, "failed"),
        hard=_number(row.get("hard")),
        soft=_number(row.get("soft")),
    )


def _compared(row: Mapping[str, object]) -> TrainAttempt:
    current = row.get("current")
    fields: Mapping[str, object] = current if isinstance(current, dict) else {}
    return TrainAttempt(
        item=_text(row, "id"),
        answer=_text(fields, "answer"),
        hard=_number(fields.get("hard")),
        soft=_number(fields.get("soft")),
    )


def _question(trajectory: bytes | None) -> str:
    """Return what the first thing that was said to the target asks."""
    turns = objects(members(parsed(trajectory)).get("turns"))
    prompt = next((_text(turn, "content") for turn in turns if turn.get("role") == "user"), "")
    return question_of(prompt)[-_LONGEST_QUESTION:]


def _names(value: object) -> tuple[str, ...]:
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _whole(row: Mapping[str, object], key: str) -> int:
    value = row.get(key)
    return value if isinstance(value, int) else 0


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
