"""Attempts of the target at train items, as the run has recorded them: the same item with one text and with another.

What an optimizer reads of them is evidence of train items only. Items of the selection and the test split are never
among them: an optimizer that reads those fits the skill to what the gate measures, and the gate stops measuring.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from skillgit.domain.address import version_label
from skillgit.domain.edit import EditStatus
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import LOOKS, PATCH, ROLLOUT, SALVAGE, SCREENING
from skillgit.domain.run_state import RunState
from skillgit.domain.trajectory import Item, Rollout
from skillgit.domain.untrusted.json_limits import loads
from skillgit.engine.prompt_sections import tagged
from skillgit.engine.trajectory_elision import elide
from skillgit.plugin.environment import secrets_of

if TYPE_CHECKING:
    from skillgit.engine.session import Session

FILES = (ROLLOUT, SCREENING, PATCH, SALVAGE, LOOKS)
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


class Fate(StrEnum):
    """What happened to the text that an edit was in."""

    KEPT = "kept"
    ELSEWHERE = "kept in a version that this one is not made of"
    REJECTED = "rejected with its candidate"
    UNMEASURED = "its candidate was not measured"
    SET_ASIDE = "left out"
    NO_GAIN = "no gain on train items"
    JOINED = "not in the candidate that joined its step with others"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemEdit:
    """An edit of a step, or its whole text, with the items that it was made for.

    Attributes:
        version: The version that has it; None if none has.
        union: The step whose candidate took up the edits of this one; 0 if none did.
    """

    step: int
    text: str
    items: tuple[str, ...]
    fate: Fate
    version: int | None = None
    union: int = 0

    def outcome(self, line: Collection[int]) -> str:
        """Return what happened to it, seen from a version with the ancestors ``line``."""
        return (Fate.ELSEWHERE if self.fate is Fate.KEPT and self.version not in line else self.fate).value


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
    _edits: list[ItemEdit] = field(default_factory=list)

    def take(self, event: Event, files: Mapping[str, bytes]) -> None:
        """Take an event of the run with those of its :data:`FILES` that there are."""
        if not event.is_step:
            return
        base = event.base  # a skipped step does not say of which version its candidate was made
        before = _read(files.get(ROLLOUT), event.step, base)
        for item, attempt in before.items() if base is not None else ():
            self._attempts.setdefault(item, []).append(attempt)
        after = _read(files.get(SCREENING), event.step, None)
        self._pairs[event.step] = [(before[item], attempt) for item, attempt in after.items() if item in before]
        self._parts[event.step] = _parts(files.get(SALVAGE))
        self._edits += [*_edits(event, files.get(PATCH)), *_dropped_drafts(event.step, files.get(LOOKS))]

    def earlier(self, item: str, *, until: int, line: Collection[int]) -> ItemAttempt | None:
        """Return the newest attempt at ``item`` up to step ``until`` with one of the versions ``line``."""
        attempts = self._attempts.get(item, ())
        return next((attempt for attempt in reversed(attempts) if attempt.step <= until and attempt.base in line), None)

    def edits(self, item: str, *, since: int, until: int) -> list[ItemEdit]:
        """Return the edits that steps ``since`` to ``until`` made for ``item``, in their order.

        One that the candidate of a later step took up is that candidate's, even if reworded there.
        """
        edits = [edit for edit in self._edits if item in edit.items and since <= edit.step <= until]
        unions = {edit.step for edit in edits}
        own = (edit for edit in edits if edit.union not in unions)
        return sorted(dict.fromkeys(own), key=lambda edit: edit.step)

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


def _edits(event: Event, content: bytes | None) -> Iterator[ItemEdit]:
    """Yield what the candidate of a step was made of, and the edits that were left out of it."""
    document = cast("dict[str, Any]", loads(content) if content else {})
    version, union, fate = None, 0, Fate.REJECTED
    if event.kind is EventKind.ACCEPTED:
        version, fate = event.version, Fate.KEPT
    elif event.kind is EventKind.SKIPPED:
        union = event.taken_up_by or 0
        fate = Fate.JOINED if union else Fate.UNMEASURED
    for row in document.get("edits", ()):
        is_applied = row.get("status") == EditStatus.APPLIED.value
        own = {"fate": fate, "version": version, "union": union} if is_applied else {"fate": Fate.SET_ASIDE}
        yield ItemEdit(step=event.step, text=_text_of(row), items=_items_of(row), **own)
    for row in document.get("suggestions", ()):
        yield ItemEdit(
            step=event.step, text=_text_of(row), items=_items_of(row), fate=fate, version=version, union=union
        )
    if "rewrite" in document and not document.get("suggestions"):
        text = f"whole text: {document.get('title', '')}".rstrip(" :")
        yield ItemEdit(step=event.step, text=text, items=_items_of(document), fate=fate, version=version, union=union)


def _dropped_drafts(step: int, content: bytes | None) -> Iterator[ItemEdit]:
    """Yield the edits of drafts that ended with a look at train items; others go on in another text."""
    for look in cast("list[dict[str, Any]]", loads(content) if content else []):
        for row in look.get("proposals", ()) if look["ending"] == "dropped" else ():
            yield ItemEdit(step=step, text=_text_of(row), items=_items_of(row), fate=Fate.NO_GAIN)


def _text_of(row: Mapping[str, Any]) -> str:
    if "body" in row:
        return f"whole text: {row.get('title', '')}".rstrip(" :")
    return str(row.get("content") or row.get("anchor") or row.get("instruction", ""))


def _items_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, row.get("items", ())))


def earlier_section(session: Session, state: RunState, rollouts: Sequence[Rollout], base: int) -> str:
    """Return how the tasks of ``rollouts``, made with version ``base``, went with a version that it was made of.

    Each edit that was made for a task since is named with what happened to it, and whether the answer changed: a rule
    that is not followed looks like a missing one otherwise. Those tasks come first. Like contrast, which it is a kind
    of, it is left out by ``gradient.contrast: 0``.
    """
    if not session.settings.gradient.contrast:
        return ""
    notes, line, attempts = list[tuple[int, str]](), state.line(base), session.attempts()
    for rollout in rollouts:
        earlier = attempts.earlier(rollout.item.id, until=state.step, line=line - {base})
        if earlier is None or earlier.base is None or rollout.trajectory is None:
            continue
        edits = attempts.edits(rollout.item.id, since=earlier.step, until=state.step)
        notes.append(_note(rollout, rollout.trajectory.answer, earlier, edits, line))
    lines = within((text for _, text in sorted(notes, key=lambda note: note[0])), EARLIER_ROOM, "task")
    return tagged("earlier_attempts", "\n".join(lines)) if lines else ""


def _note(
    rollout: Rollout, answer: str, earlier: ItemAttempt, edits: Sequence[ItemEdit], line: Collection[int]
) -> tuple[int, str]:
    """Return what is said of an earlier attempt, and its rank: 0 is the most informative."""
    is_same = answer.split() == earlier.answer.split()
    is_solved = isinstance(rollout.outcome, Scored) and rollout.outcome.passed
    outcome_now = f"now it is {_PASSED[is_solved]}, answered {'as before' if is_same else quoted(answer)}"
    version = version_label(earlier.base or 0)
    words = f"{rollout.item.id}: {version} {_PASSED[earlier.passed]} it and answered {quoted(earlier.answer)}"
    if not edits:
        return (1 if is_solved != earlier.passed else 2), f"{words}. No edit since was made for it; {outcome_now}."
    by_text: dict[tuple[str, str], list[int]] = {}
    for edit in edits:
        by_text.setdefault((quoted(edit.text, RULE_SHOWN), edit.outcome(line)), []).append(edit.step)
    edits_since = "; ".join(f"{_steps(steps)}: {text} ({fate})" for (text, fate), steps in by_text.items())
    return 0, f"{words}. Made for it since: {edits_since}; {outcome_now}."


def _steps(steps: Sequence[int]) -> str:
    return f"step {', '.join(map(str, dict.fromkeys(steps)))}"


_PASSED = {True: "solved", False: "failed"}


def pair_lines(session: Session, step: int) -> list[str]:
    """Return what the candidate of ``step`` did to the train items that it was tried on, the most informative first."""
    items = {item.id: item for item in session.task.items[Split.TRAIN]}
    pairs = sorted(session.attempts().pairs(step), key=lambda pair: _ORDER.index((pair[0].passed, pair[1].passed)))
    lines = [
        f"{_CHANGES[before.passed, after.passed]} {before.item}{_question(session, items.get(before.item))}:"
        f" before {quoted(before.answer)}, after {quoted(after.answer)}{_feedback(before, after)}"
        for before, after in pairs
        if not (before.passed and after.passed)
    ]
    return within(lines, PAIRS_ROOM, "item")


def part_lines(attempts: Attempts, step: int) -> list[str]:
    """Return what parts of the patch of ``step`` did alone, which shows whose items moved."""
    return [
        f"{' and '.join(quoted(text) for text in part.edits)} alone: {part.decision} {part.score:.4f},"
        f" {part.fixes} fixed, {part.breaks} broken"
        for part in attempts.parts(step)
    ]


_ORDER = [(True, False), (False, False), (False, True), (True, True)]
_CHANGES = {(True, False): "broke", (False, False): "still fails", (False, True): "fixed", (True, True): "keeps"}


def _question(session: Session, item: Item | None) -> str:
    inputs = secrets_of(session.task.environment, item).inputs if item is not None else ()
    return f" (asked {quoted(inputs[0], QUESTION_SHOWN)})" if inputs else ""


def _feedback(before: ItemAttempt, after: ItemAttempt) -> str:
    """Return the feedback on the attempt that failed, which says what was expected as far as the environment does."""
    failure = before if after.passed else after
    text = " ".join(failure.feedback.split())
    return f"; feedback: {elide(text, FEEDBACK_SHOWN)}" if text else ""


def quoted(text: str, limit: int = ANSWER_SHOWN) -> str:
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
