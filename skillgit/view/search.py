"""How a candidate was found, in words: what it was made of, how it did on train items, and against its rivals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.event import ATTEMPTS
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Screening
from skillgit.view import event_marks, numbers
from skillgit.view.event_marks import Entry
from skillgit.view.text import one_line, under

if TYPE_CHECKING:
    from skillgit.app.history.show import Shown
    from skillgit.app.recorded.step_evidence import DraftLook
    from skillgit.index.rows import LogRow


def search_facts(report: Shown) -> Iterator[tuple[str, str]]:
    """Yield a label and a line for each fact; nothing for a candidate that was found and measured by itself."""
    row, event = report.row, report.event
    if event.kind not in ATTEMPTS:
        return
    if row.lines:
        yield "made of", _sources(row)
    yield from under("looks", map(looked, report.looks))
    if event.screening is not None:
        yield "screen", screened(event.screening)
    if report.rival is not None:
        words = "the better candidate of its round" if event.kind is EventKind.REJECTED else "its edits are part of"
        yield ("race" if event.kind is EventKind.REJECTED else "union"), f"{words}: {_result(report.rival)}"
    if report.taken_up:
        steps = ", ".join(str(step.step) for step in report.taken_up)
        plural = "step" if len(report.taken_up) == 1 else "steps"
        yield "union", f"it takes up the edits of {plural} {steps}"


def looked(look: DraftLook) -> str:
    """Return what a draft did on train items, what that cost, and what happened to it then."""
    name = f"{look.draft}. {one_line(look.shape)}{f', text {look.attempt}' if look.attempt > 1 else ''}"
    parts = (
        f"{look.tokens:+,} {'token' if abs(look.tokens) == 1 else 'tokens'}",
        f"fixed {len(look.fixed)} of {look.failing}, broke {len(look.broken)} of {look.solved}"
        if look.rollouts
        else "",
        numbers.plural(look.rollouts, "rollout") if look.rollouts else "",
        f"not tried: {one_line(look.objection)}" if look.objection else "",
    )
    return f"{name}: {'; '.join(filter(None, parts))}; {one_line(look.ending)}"


def screened(counts: Screening) -> str:
    """Return how a candidate did on train items, before anything of the selection split was touched."""
    failures, passes = (numbers.plural(count, "train item") for count in (counts.failing, counts.solved))
    return f"fixed {counts.fixed} of {failures} that failed, broke {counts.broken} of {passes} that passed"


def _sources(row: LogRow) -> str:
    base, current = version_label(row.base), row.at if row.version is None else row.version - 1
    joined = "" if row.joined is None else f" with the edits of {version_label(row.joined)} put on it"
    when = "" if row.base == current else f", while the run was at {version_label(current)}"
    return f"{base}{joined}{when}"


def _result(row: LogRow) -> str:
    entry = Entry.of_row(row)
    score = f"{event_marks.score(entry).strip()} {event_marks.delta(entry)}".strip()
    return f"{row.label}{f' of step {row.step}' if row.version is not None else ''}, {score or row.title}"
