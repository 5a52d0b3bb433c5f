"""What the detail of an event says in words: its head, its edits, and what was seen in its step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.place.workspace import BRING
from skillgit.tui.widgets.painted_lines import Painted, Part
from skillgit.tui.widgets.paragraphs import Paragraph
from skillgit.tui.widgets.rendered import disarmed
from skillgit.view import event as cells
from skillgit.view import words
from skillgit.view.event import Entry
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.app.history.show import EventDetail
    from skillgit.app.known.step_evidence import AppliedEdit, Attempt
    from skillgit.index.rows import LogRow
    from skillgit.view.screen import Screen

_LONGEST = 600
"""Characters of one answer or question that are shown."""
_MISSING = Paragraph(f"The evidence of this event is not here.\nhint: {BRING}", Style.FAINT)


def head(row: LogRow, ink: Screen, now: datetime) -> tuple[Painted, Painted]:
    """Return the two lines above the detail: what became of the event, and where it stands."""
    row = disarmed(row)
    entry, dot = Entry.of_row(row), f" {ink.glyphs.dot} "
    first = (
        Part(f" {entry.label}  ", Style.STRONG),
        Part(f"{cells.glyph(entry, ink.glyphs)} {cells.decision(entry)}", cells.style(entry)),
        Part(f"   {ink.encodable(cells.score(entry)).strip()}", Style.STRONG),
        Part(f" {words.delta(entry.delta) if entry.measured else ''}", cells.style(entry)),
    )
    place = [
        f"epoch {row.epoch}" if row.epoch else "",
        f"step {row.step}" if row.step else "",
        f"base v{row.base}" if row.base is not None else "",
        words.ago(row.time, now),
        words.short(row.commit),
        row.run,
    ]
    return first, (Part(f" {dot.join(part for part in place if part)}", Style.FAINT),)


def edits(detail: EventDetail) -> Iterator[Paragraph]:
    """Yield the edits of an event with the text that they brought, as far as the evidence tells."""
    if not detail.edits:
        records = getattr(detail.shown.event, "edits", ())
        for number, record in enumerate(records, 1):
            yield Paragraph(
                f"{number}  {record.op.value} {record.file}, support {record.support} {record.source.value}"
            )
        if not records and not detail.shown.left_out:
            yield Paragraph("This event has no edits.", Style.FAINT)
        elif not detail.present:
            yield Paragraph("")
            yield _MISSING
    for number, edit in enumerate(detail.edits, 1):
        yield from _edit(number, edit)
    for left in detail.shown.left_out:
        yield Paragraph(f"not applied: {left.edit}", Style.STRONG, indent=4, lead="   ")
        yield Paragraph(f"{left.status}: {left.reason}", Style.FAINT, indent=6)
        yield Paragraph("")


def _edit(number: int, edit: AppliedEdit) -> Iterator[Paragraph]:
    told = f"{edit.op} {edit.file}, support {edit.support} {edit.source}"
    yield Paragraph(told, Style.STRONG, indent=4, lead=f" {number}")
    if edit.anchor:
        removes = edit.op in {"replace", "delete"}
        yield Paragraph(edit.anchor, "" if removes else Style.FAINT, indent=6, lead="   -" if removes else "   @")
    if edit.content:
        yield Paragraph(edit.content, "", indent=6, lead="   +")
    if edit.items:
        yield Paragraph(f"from {' '.join(edit.items)}", Style.FAINT, indent=6)
    yield Paragraph("")


def trace(detail: EventDetail, ink: Screen) -> Iterator[Paragraph]:
    """Yield what analysts saw in the step of an event, and what the target made of the items that they point at."""
    if not detail.present:
        yield _MISSING if detail.shown.evidence_tree else Paragraph("This event has no evidence.", Style.FAINT)
        return
    for finding in detail.findings:
        yield Paragraph(finding.pattern, "", indent=6, lead=f" {finding.count:>3} ")
        yield Paragraph(" ".join(finding.items), Style.FAINT, indent=6)
    for attempt in detail.attempts:
        yield Paragraph("")
        yield from _attempt(attempt, ink)
    if not detail.findings and not detail.attempts:
        yield Paragraph("Nothing was noted of single trajectories here; e opens an item's own.", Style.FAINT)


def _attempt(attempt: Attempt, ink: Screen) -> Iterator[Paragraph]:
    solved = bool(attempt.hard)
    sign = ink.glyphs.passed if solved else ink.glyphs.rejected
    scores = f"{attempt.item}  hard {words.score(attempt.hard) or 'none'}  soft {words.score(attempt.soft) or 'none'}"
    yield Paragraph(scores, Style.ACCEPTED if solved else Style.REJECTED, indent=4, lead=f" {sign}")
    for label, text in (("asked", attempt.question), ("said", attempt.answer), ("judged", attempt.feedback)):
        if text:
            yield Paragraph(text[:_LONGEST], "", indent=12, lead=f"    {label}")
