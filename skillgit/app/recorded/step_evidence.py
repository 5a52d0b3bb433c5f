"""What the evidence of a step says about its edits: their text, the items that moved them, what analysts saw.

Evidence may come from strangers and may be damaged: what is malformed is left out and never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from skillgit.app.recorded.evidence_json import evidence_file, members, objects, read_row, text
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
        self._documents: dict[str, object] = {}

    @property
    def present(self) -> bool:
        return read_evidence(self._repo, self._tree, (PATCH, ROLLOUT)) is not None

    def _document(self, name: str) -> object:
        if name not in self._documents:
            self._documents[name] = evidence_file(self._repo, self._tree, name)
        return self._documents[name]

    def edits(self) -> tuple[AppliedEdit, ...]:
        """Return the edits that took effect, as they were applied; each of a rewrite rests on all of its items."""
        patch = members(self._document(PATCH))
        edits = [row for row in objects(patch.get("edits")) if row.get("status") == EditStatus.APPLIED]
        common = {"items": patch.get("items")}
        return tuple(read_row(AppliedEdit, common | row, position=index) for index, row in enumerate(edits))

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return the edits that were chosen and not applied, with the reasons."""

        def left_out(row: Mapping[str, object]) -> LeftOut:
            reason, op = text(row.get("detail")), text(row.get("op")).replace("_", " ")
            # a quarantined edit quotes what no screen and no report shall quote
            is_quoted = not reason.startswith(QUARANTINED)
            quote = (text(row.get("content")) or text(row.get("anchor"))) if is_quoted else ""
            edit = words_of(op, quote) if quote else f"{op} {text(row.get('file'))}"
            return LeftOut(edit=edit, status=text(row.get("status")), reason=reason)

        rows = objects(members(self._document(PATCH)).get("edits"))
        return tuple(left_out(row) for row in rows if row.get("status") != EditStatus.APPLIED)

    def looks(self) -> tuple[DraftLook, ...]:
        """Return what the drafts of the step did on train items, draft by draft."""
        return tuple(read_row(DraftLook, row) for row in objects(self._document(LOOKS)))

    def findings(self) -> tuple[TrajectoryPattern, ...]:
        rows = objects(members(self._document(FINDINGS)).get("findings"))
        return tuple(read_row(TrajectoryPattern, row) for row in rows)

    def rollouts(self) -> int:
        return len(objects(self._document(ROLLOUT)))

    def attempts(self, items: Iterable[str]) -> tuple[TrainAttempt, ...]:
        """Return what happened to ``items`` in the rollouts of the step, in this order; unknown ones are left out."""

        def attempt(row: Mapping[str, object]) -> TrainAttempt:
            """Return an attempt with what the first thing that was said to the target asks."""
            path, failure = text(row.get("trajectory")), text(row.get("failed"))
            turns = objects(members(self._document(path)).get("turns")) if path else []
            prompt = next((text(turn.get("content")) for turn in turns if turn.get("role") == "user"), "")
            facts = {"item": text(row.get("id")), "question": question_of(prompt)[-_LONGEST_QUESTION:]}
            return read_row(TrainAttempt, row, **facts, feedback=text(row.get("feedback")) or failure)

        rows = {text(row.get("id")): row for row in objects(self._document(ROLLOUT))}
        return tuple(attempt(rows[item]) for item in items if item in rows)

    def compared(self) -> tuple[TrainAttempt, ...]:
        """Return the train items that a slow update saw fail, worst first: those that got lost, those that stayed."""
        rows = [row for row in objects(self._document(COMPARISON)) if row.get("category") in _FAILING]
        return tuple(
            read_row(TrainAttempt, members(row.get("current")), item=text(row.get("id")), task_type="", question="")
            for row in sorted(rows, key=lambda row: _FAILING.index(text(row.get("category"))))
        )


def with_questions(attempts: Sequence[TrainAttempt], steps: Iterable[StepEvidence]) -> tuple[TrainAttempt, ...]:
    """Return ``attempts`` with what was asked, and what the scorer said of such an answer, as far as ``steps`` say."""
    richest = {attempt.item: replace(attempt, feedback="") for attempt in attempts}
    answers = {attempt.item: attempt.answer for attempt in attempts}
    for step in steps:
        open_items = [item for item, attempt in richest.items() if not attempt.feedback]
        if not open_items:
            break
        for candidate in step.attempts(open_items):
            richer = richest[candidate.item]
            feedback = candidate.feedback if candidate.answer == answers[candidate.item] else richer.feedback
            richest[candidate.item] = replace(richer, question=richer.question or candidate.question, feedback=feedback)
    return tuple(
        replace(richest[attempt.item], feedback=richest[attempt.item].feedback or attempt.feedback)
        for attempt in attempts
    )
