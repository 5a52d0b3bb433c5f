"""Attempts of the target at train items, as the run has recorded them: the same item with one text and with another.

What an optimizer reads of them is evidence of train items only. Items of the selection and the test split are never
among them: an optimizer that reads those fits the skill to what the gate measures, and the gate stops measuring.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from skillgit.domain.address import version_label
from skillgit.domain.edit import EditStatus
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import Accepted, Event, Rejected, Skipped
from skillgit.domain.evidence_names import PATCH, ROLLOUT, SALVAGE, SCREENING
from skillgit.domain.proposal import Origin
from skillgit.domain.untrusted.json_limits import loads
from skillgit.engine.prompt_sections import tagged
from skillgit.engine.trajectory_elision import elide
from skillgit.plugin.environment import secrets_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from skillgit.domain.run_state import RunState
    from skillgit.domain.trajectory import Item, Rollout
    from skillgit.engine.session import Session

FILES = (ROLLOUT, SCREENING, PATCH, SALVAGE)
QUESTION_SHOWN, ANSWER_SHOWN, FEEDBACK_SHOWN, RULE_SHOWN = 200, 120, 200, 160
"""Characters that are shown of each."""
EARLIER_ROOM = 4_000  # characters of all earlier attempts in one prompt
PAIRS_ROOM = 1_600  # characters of all items of one judged candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAttempt:
    """What the target did on a train item with one text of the skill."""

    item: str
    step: int
    base: int | None  # the version that it worked with; None where the event does not say
    hard: float
    answer: str
    feedback: str

    @property
    def passed(self) -> bool:
        return self.hard >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemEdit:
    """An edit that is in a version, with the items that it was made for."""

    version: int
    step: int
    text: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPart:
    """Some edits of a refused patch, and what the gate said of them without the others."""

    edits: tuple[str, ...]
    decision: str
    score: float
    fixes: int
    breaks: int


@dataclass(slots=True)
class Attempts:
    """The attempts of one run, event by event."""

    _attempts: dict[str, list[ItemAttempt]] = field(default_factory=dict)
    _pairs: dict[int, list[tuple[ItemAttempt, ItemAttempt]]] = field(default_factory=dict)
    _parts: dict[int, list[MeasuredPart]] = field(default_factory=dict)
    _rules: list[ItemEdit] = field(default_factory=list)

    def take(self, event: Event, files: Mapping[str, bytes]) -> None:
        """Take an event of the run with those of its :data:`FILES` that there are."""
        if not isinstance(event, Accepted | Rejected | Skipped) or event.origin is not Origin.STEP:
            return
        # A skipped step does not say of which version its candidate was made.
        base = None if isinstance(event, Skipped) else event.base
        before = _read(files.get(ROLLOUT), event.step, base)
        for item, attempt in before.items() if base is not None else ():
            self._attempts.setdefault(item, []).append(attempt)
        after = _read(files.get(SCREENING), event.step, None)
        self._pairs[event.step] = [(before[item], attempt) for item, attempt in after.items() if item in before]
        self._parts[event.step] = _parts(files.get(SALVAGE))
        if isinstance(event, Accepted):
            self._rules += _rules(files.get(PATCH), event.version, event.step)

    def earlier(self, item: str, *, until: int, line: Collection[int]) -> ItemAttempt | None:
        """Return the newest attempt at ``item`` up to step ``until`` with one of the versions ``line``."""
        attempts = self._attempts.get(item, ())
        return next((attempt for attempt in reversed(attempts) if attempt.step <= until and attempt.base in line), None)

    def rules(self, item: str, *, versions: Collection[int]) -> list[ItemEdit]:
        """Return the edits that were made for ``item`` and that one of ``versions`` brought."""
        return [rule for rule in self._rules if item in rule.items and rule.version in versions]

    def pairs(self, step: int) -> Sequence[tuple[ItemAttempt, ItemAttempt]]:
        """Return the attempts at each train item that the candidate of ``step`` was tried on, before and after."""
        return self._pairs.get(step, ())

    def parts(self, step: int) -> Sequence[MeasuredPart]:
        """Return the parts of the patch of ``step`` that were measured without the rest of it."""
        return self._parts.get(step, ())


def _read(content: bytes | None, step: int, base: int | None) -> dict[str, ItemAttempt]:
    rows = cast("list[dict[str, object]]", loads(content) if content else [])
    return {
        str(row["id"]): ItemAttempt(
            item=str(row["id"]),
            step=step,
            base=base,
            hard=float(cast("float", row["hard"])),
            answer=str(row.get("answer", "")),
            feedback=str(row.get("feedback", "")),
        )
        for row in rows
        if "hard" in row
    }


def _parts(content: bytes | None) -> list[MeasuredPart]:
    document = cast("dict[str, list[dict[str, object]]]", loads(content) if content else {})
    return [
        MeasuredPart(
            edits=tuple(
                str(edit["content"] or edit["anchor"]) for edit in cast("list[dict[str, object]]", row["edits"])
            ),
            decision=str(row["decision"]),
            score=float(cast("float", row["score"])),
            fixes=len(cast("list[object]", row["fixed"])),
            breaks=len(cast("list[object]", row["broken"])),
        )
        for row in document.get("parts", ())
        if row["score"] is not None
    ]


def _rules(content: bytes | None, version: int, step: int) -> list[ItemEdit]:
    document = cast("dict[str, list[dict[str, object]]]", loads(content) if content else {})
    return [
        ItemEdit(
            version=version,
            step=step,
            text=str(edit["content"] or edit["anchor"]),
            items=tuple(map(str, cast("list[object]", edit.get("items", [])))),
        )
        for edit in document.get("edits", ())
        if edit.get("status") == EditStatus.APPLIED.value
    ]


def earlier_section(session: Session, state: RunState, rollouts: Sequence[Rollout], base: int) -> str:
    """Return how the tasks of ``rollouts``, made with version ``base``, went with a version that it was made of.

    Where an edit was made for a task since, it says whether the answer changed: a rule that is not followed looks like
    a missing one otherwise. Those tasks come first. Like contrast, which it is a kind of, it is left out by
    ``gradient.contrast: 0``.
    """
    if not session.settings.gradient.contrast:
        return ""
    notes, ancestors, attempts = list[tuple[int, str]](), state.line(base) - {base}, session.attempts()
    for rollout in rollouts:
        earlier = attempts.earlier(rollout.item.id, until=state.step, line=ancestors)
        if earlier is None or earlier.base is None or rollout.trajectory is None:
            continue
        rules = attempts.rules(rollout.item.id, versions=state.line(base) - state.line(earlier.base))
        notes.append(_note(rollout, rollout.trajectory.answer, earlier, rules))
    lines = within((text for _, text in sorted(notes, key=lambda note: note[0])), EARLIER_ROOM, "task")
    return tagged("earlier_attempts", "\n".join(lines)) if lines else ""


def _note(rollout: Rollout, answer: str, earlier: ItemAttempt, rules: Sequence[ItemEdit]) -> tuple[int, str]:
    """Return what is said of an earlier attempt, and its rank: 0 is the most telling."""
    is_same = answer.split() == earlier.answer.split()
    is_solved = isinstance(rollout.outcome, Scored) and rollout.outcome.passed
    outcome_now = "the answer did not change" if is_same else f"the task is {_PASSED[is_solved]} now"
    version = version_label(earlier.base or 0)
    words = f"{rollout.item.id}: {version} {_PASSED[earlier.passed]} it and answered {_quoted(earlier.answer)}"
    if not rules:
        return (1 if is_solved != earlier.passed else 2), f"{words}. No edit since was made for it; {outcome_now}."
    edits = "; ".join(f"step {rule.step}, {_quoted(rule.text, RULE_SHOWN)}" for rule in rules)
    return 0, f"{words}. An edit was made for it since ({edits}): the rule was there, and {outcome_now}."


_PASSED = {True: "solved", False: "failed"}


def pair_lines(session: Session, step: int) -> list[str]:
    """Return what the candidate of ``step`` did to the train items that it was tried on, the most telling first."""
    items = {item.id: item for item in session.task.items[Split.TRAIN]}
    pairs = sorted(session.attempts().pairs(step), key=lambda pair: _ORDER.index((pair[0].passed, pair[1].passed)))
    lines = [
        f"{_CHANGES[before.passed, after.passed]} {before.item}{_question(session, items.get(before.item))}:"
        f" before {_quoted(before.answer)}, after {_quoted(after.answer)}{_feedback(before, after)}"
        for before, after in pairs
        if not (before.passed and after.passed)
    ]
    return within(lines, PAIRS_ROOM, "item")


def part_lines(attempts: Attempts, step: int) -> list[str]:
    """Return what parts of the patch of ``step`` did alone, which tells whose items moved."""
    return [
        f"{' and '.join(_quoted(text) for text in part.edits)} alone: {part.decision} {part.score:.4f},"
        f" {part.fixes} fixed, {part.breaks} broken"
        for part in attempts.parts(step)
    ]


_ORDER = [(True, False), (False, False), (False, True), (True, True)]
_CHANGES = {(True, False): "broke", (False, False): "still fails", (False, True): "fixed", (True, True): "keeps"}


def _question(session: Session, item: Item | None) -> str:
    inputs = secrets_of(session.task.environment, item).inputs if item is not None else ()
    return f" (asked {_quoted(inputs[0], QUESTION_SHOWN)})" if inputs else ""


def _feedback(before: ItemAttempt, after: ItemAttempt) -> str:
    """Return the feedback on the attempt that failed, which says what was expected as far as the environment does."""
    failure = before if after.passed else after
    text = " ".join(failure.feedback.split())
    return f"; feedback: {elide(text, FEEDBACK_SHOWN)}" if text else ""


def _quoted(text: str, limit: int = ANSWER_SHOWN) -> str:
    line = " ".join(text.split())
    return f'"{line if len(line) <= limit else line[: limit - 1] + "…"}"'


def within(lines: Iterable[str], room: int, noun: str) -> list[str]:
    """Return the first of ``lines`` that fit into ``room`` characters, at least one, and a line on the others."""
    texts = list(lines)
    for index, line in enumerate(texts):
        if index and len(line) > room:
            rest = len(texts) - index
            return [*texts[:index], f"[... {rest} {noun if rest == 1 else f'{noun}s'} left out ...]"]
        room -= len(line)
    return texts
