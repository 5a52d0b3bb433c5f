"""The events of a run with all that a report says of each: its difference, what was decided, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.event_detail import event_detail
from skillgit.app.report.limits import DETAILED, LISTED, Difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.context import Context
    from skillgit.app.report.limits import Room
    from skillgit.app.step_evidence import AppliedEdit, Finding
    from skillgit.domain.edit_words import LeftOut
    from skillgit.domain.event import Event
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """One event in full.

    Attributes:
        event: The event, as its commit has it.
        difference: What it changed in the skill.
        edits: The edits that took effect; none where the evidence is not here.
        left_out: The edits that were chosen and not applied; likewise.
        findings: What analysts saw in its step; likewise.
    """

    event: Event
    difference: Difference
    edits: tuple[AppliedEdit, ...]
    left_out: tuple[LeftOut, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One event.

    Attributes:
        row: Its line in the log.
        telling: The event in full; absent where a report has no room for it.
    """

    row: LogRow
    telling: Telling | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Events of one sort, oldest first.

    Attributes:
        told: The events.
        left_out: How many older ones are left out.
        brief: How many of the events are not told in full.
    """

    told: tuple[Told, ...]
    left_out: int
    brief: int


def tell(context: Context, rows: Sequence[LogRow], room: Room) -> Events:
    """Return the events in ``rows``, oldest first; of many only the newest, and the newest of these in full.

    Args:
        context: Where to look.
        rows: The events, oldest first.
        room: The room for differences; the newest events take theirs first.
    """
    kept = rows[-LISTED:]
    full = {row.commit: _telling(context, row, room) for row in reversed(kept[-DETAILED:])}
    return Events(
        told=tuple(Told(row=row, telling=full.get(row.commit)) for row in kept),
        left_out=len(rows) - len(kept),
        brief=len(kept) - len(full),
    )


def _telling(context: Context, row: LogRow, room: Room) -> Telling:
    found = event_detail(context, row.commit)
    # the seed is no change, and its text is told by the skill itself
    files = () if row.version == 0 else found.files
    return Telling(
        event=found.shown.event,
        difference=room.take(files),
        edits=found.edits,
        left_out=found.shown.left_out,
        findings=found.findings,
    )
