"""Evidence: the artefacts behind an event as files, redacted, in a stable form, and what a run reads back of them.

What an optimizer reads of earlier attempts is evidence of train items only. Items of the selection and the test split
are never among them: an optimizer that reads those fits the skill to what the gate measures, and the gate stops
measuring.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, cast

from skillgit.domain.document_rewrite import Suggestion
from skillgit.domain.edit import Edit, EditReport, EditStatus, Patch
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import LOOKS, PATCH, ROLLOUT, SALVAGE, SCREENING
from skillgit.domain.ids import text_digest
from skillgit.domain.outcomes import outcome_row
from skillgit.domain.proposal import Change, Feedback, Tried
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.json_limits import loads
from skillgit.domain.untrusted.model_text import storable
from skillgit.engine.proposals import Draft, Proposed
from skillgit.plugin.redaction import redact

Evidence = dict[str, bytes]


def json_file(value: object) -> bytes:
    """Return ``value`` as JSON with sorted keys and secrets redacted, each row and each field on a line of its own."""
    return f"{redact(storable(_lines(value)))}\n".encode()


def _lines(value: object) -> str:
    # Line ends are between rows and fields only: indenting all of it takes five times as long.
    if isinstance(value, list):
        return _block("[", map(_compact, value), "]")
    if isinstance(value, dict):
        return _block("{", (f"{_compact(key)}: {_nested(value[key])}" for key in sorted(value)), "}")
    return _compact(value)


def _block(begin: str, lines: Iterable[str], end: str) -> str:
    inner = ",\n".join(lines)
    return f"{begin}\n{inner}\n{end}" if inner else f"{begin}{end}"


def _nested(value: object) -> str:
    return _lines(value) if isinstance(value, list) else _compact(value)


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def rollouts_files(name: str, rollouts: Sequence[Rollout]) -> Evidence:
    """Return ``<name>.json`` with a row per item, and a file per trajectory, so that git stores each one once."""
    rows: list[dict[str, object]] = []
    files: Evidence = {}
    for rollout in rollouts:
        row: dict[str, object] = {"id": rollout.item.id, "task_type": rollout.item.task_type}
        row |= outcome_row(rollout.outcome)
        if rollout.trajectory is not None:
            path = f"trajectories/{text_digest(rollout.item.id)}.json"
            turns = [turn.row for turn in rollout.trajectory.turns]
            files[f"{name}/{path}"] = json_file({"id": rollout.item.id, "turns": turns})
            words = {"answer": rollout.trajectory.answer, "feedback": rollout.trajectory.feedback}
            row |= {**words, "trajectory": f"{name}/{path}"}
        rows.append(row)
    return files | {f"{name}.json": json_file(rows)}


def patch_file(
    patch: Patch | Draft,
    reports: Iterable[EditReport],
    rewrite: str | None = None,
    appendix: Sequence[str] | None = None,
    *,
    lines: bool = False,
) -> Evidence:
    """Return ``patch.json``: the selected edits in the order of their application, with what happened to each.

    Of a rewrite it holds the suggestions that it was to carry out and the new editable text; its edits are the
    stretches of lines that changed. With new reminders it holds all that are in the appendix. With ``lines`` the edits
    only say which stretches of lines changed, and applying them gives another text.
    """
    edits = [
        edit_fields(report.edit)
        | {"status": report.status.value, "detail": report.detail}
        | ({"items": list(report.edit.items)} if report.edit.items else {})
        | ({"removed": report.edit.content.removed} if getattr(report.edit.content, "removed", 0) else {})
        for report in reports
    ]
    document: dict[str, object] = {"title": patch.title, "reasoning": patch.reasoning, "edits": edits}
    suggestions = [
        proposed_fields(proposal) | ({"items": list(proposal.items)} if proposal.items else {})
        for proposal in getattr(patch, "suggestions", ())
    ]
    if suggestions:
        document["suggestions"] = suggestions
    if rewrite is not None:
        document["rewrite"] = rewrite
        items = dict.fromkeys(item for text in getattr(patch, "rewrites", ()) for item in text.items)
        document |= {"items": [*items]} if items else {}
    if appendix is not None:
        document["appendix"] = list(appendix)
    if lines:
        document["lines"] = True
    return {PATCH: json_file(document)}


def edit_fields(edit: Edit) -> dict[str, object]:
    return {
        "op": edit.op.value,
        "file": edit.file or DOCUMENT,
        "anchor": edit.anchor,
        "content": edit.content,
        "support": edit.support,
        "source": edit.source.value,
    }


def proposed_fields(proposal: Proposed) -> dict[str, object]:
    if isinstance(proposal, Edit):
        return edit_fields(proposal)
    fields: dict[str, object] = {"support": proposal.support, "source": proposal.source.value}
    if isinstance(proposal, Suggestion):
        return {
            "type": proposal.type.value,
            "title": proposal.title,
            "motivation": proposal.motivation,
            "instruction": proposal.instruction,
            "priority": proposal.priority.value,
            **fields,
        }
    return {"title": proposal.title, "summary": list(proposal.summary), "body": proposal.body, **fields}


def feedback_file(feedback: Sequence[Feedback]) -> Evidence:
    """Return ``feedback.json``, what people had said when the step began; no file if they had said nothing."""
    rows = [
        {
            "id": note.id,
            "commit": note.commit,
            "author": note.author,
            "time": note.time.isoformat().replace("+00:00", "Z"),
            "text": redact(note.text),
        }
        for note in feedback
    ]
    return {"feedback.json": json_file(rows)} if rows else {}


TRIED_FILE = "tried.json"


def tried_file(attempts: Sequence[Tried]) -> Evidence:
    return {TRIED_FILE: json_file([asdict(attempt) for attempt in attempts])} if attempts else {}


def read_tried(files: Mapping[str, bytes] | None) -> tuple[Tried, ...]:
    content = (files or {}).get(TRIED_FILE)
    rows = loads(content) if content else []
    return tuple(Tried(**row | {"changes": tuple(Change(**change) for change in row["changes"])}) for row in rows)


def merged(parts: Iterable[Mapping[str, bytes]]) -> Evidence:
    return {path: content for part in parts for path, content in part.items()}


ATTEMPT_FILES = (ROLLOUT, SCREENING, PATCH, SALVAGE, LOOKS)


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
        """Take an event of the run with those of its :data:`ATTEMPT_FILES` that there are."""
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
