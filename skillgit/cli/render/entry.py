"""One event as the cells of a line: the same for the log, the status and the live display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.screen import UNICODE, Style
from skillgit.domain.evaluation import Metric
from skillgit.domain.event import (
    Accepted,
    Event,
    Inherited,
    Origin,
    Rejected,
    Reverted,
    RunStarted,
    SlowMerged,
    SlowProposed,
    event_name,
    event_origin,
    event_step,
)
from skillgit.domain.gate import Decision

if TYPE_CHECKING:
    from skillgit.cli.screen import Glyphs, Screen
    from skillgit.index.rows import LogRow

_PREFIX = {
    "run-started": "run: ",
    "accepted": "skill: ",
    "rejected": "skill: ",
    "slow-proposed": "slow: ",
    "slow-merged": "slow: ",
    "reverted": "revert: ",
    "run-finished": "run: ",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a line says of an event.

    Attributes:
        kind: The event's name in trailers.
        version: The version that it made.
        step: Its step.
        title: Its title without prefix.
        score: Its score.
        delta: The score's distance from what it was compared with.
        measured: Whether the score was measured for this text.
        bound: Whether the score is only the highest that it could have been.
        decision: The gate's decision; empty without one.
        epoch: Its epoch.
        origin: Where its candidate comes from: a step, or the reflection on an epoch (``meta``).
    """

    kind: str
    version: int | None
    step: int
    title: str
    score: float | None
    delta: float | None
    measured: bool
    bound: bool = False
    decision: str
    epoch: int = 0
    origin: str = Origin.STEP

    @classmethod
    def of_row(cls, row: LogRow) -> Entry:
        """Return the entry of a row of the log."""
        return cls(
            kind=row.kind,
            version=row.version,
            step=row.step,
            title=row.title,
            score=row.score,
            delta=row.delta,
            measured=row.measured,
            bound=row.bound,
            decision=row.decision,
            epoch=row.epoch,
            origin=row.origin,
        )

    @classmethod
    def of_event(cls, event: Event) -> Entry:
        """Return the entry of an event that was written just now."""
        verdict = event.verdict if isinstance(event, Accepted | Rejected | SlowProposed | SlowMerged) else None
        score, measured = (verdict.score, True) if verdict else _score_without_gate(event)
        return cls(
            kind=event_name(event),
            version=event.version if isinstance(event, RunStarted | Accepted | SlowMerged | Reverted) else None,
            step=event_step(event),
            title=event.title,
            score=score,
            delta=verdict.score - verdict.current if verdict else None,
            measured=measured,
            bound=_stopped(event),
            decision=verdict.decision.value if verdict else "",
            epoch=event.epoch,
            origin=event_origin(event).value,
        )


def _stopped(event: Event) -> bool:
    return isinstance(event, Rejected | SlowProposed) and event.evaluation is not None and event.evaluation.stopped


def _score_without_gate(event: Event) -> tuple[float | None, bool]:
    if not isinstance(event, RunStarted | Reverted) or isinstance(event.evaluation, Inherited):
        return None, False
    return event.evaluation.score(Metric.HARD, 0.0), True


def title(entry: Entry) -> str:
    """Return the title as the commit's subject has it."""
    prefix = "meta: " if entry.origin == Origin.META else _PREFIX.get(entry.kind, "")
    return prefix + entry.title


def label(entry: Entry) -> str:
    """Return what the event is called on the command line: ``v7``, ``r18``, ``m2``; ``s15`` for a skipped step."""
    if entry.version is not None:
        return f"v{entry.version}"
    if entry.origin == Origin.META:
        return f"m{entry.epoch}"
    return {"rejected": f"r{entry.step}", "skipped": f"s{entry.step}"}.get(entry.kind, "")


def glyph(entry: Entry, glyphs: Glyphs) -> str:
    """Return the sign of the event."""
    if entry.kind == "accepted" and entry.decision == Decision.ACCEPT_NEW_BEST:
        return glyphs.best
    return {
        "run-started": glyphs.accepted,
        "accepted": glyphs.accepted,
        "rejected": glyphs.rejected,
        "slow-proposed": glyphs.slow,
        "slow-merged": glyphs.slow,
        "reverted": glyphs.reverted,
    }.get(entry.kind, glyphs.skipped)


def style(entry: Entry) -> Style:
    """Return the colour that repeats what the sign says."""
    if entry.kind == "accepted" and entry.decision == Decision.ACCEPT_NEW_BEST:
        return Style.BEST
    return {
        "run-started": Style.ACCEPTED,
        "accepted": Style.ACCEPTED,
        "rejected": Style.REJECTED,
        "slow-proposed": Style.SLOW,
        "slow-merged": Style.SLOW,
        "reverted": Style.REVERTED,
    }.get(entry.kind, Style.SKIPPED)


def sign(entry: Entry, screen: Screen) -> str:
    """Return the painted sign."""
    return screen.paint(style(entry), glyph(entry, screen.glyphs))


def score(entry: Entry) -> str:
    """Return the score in seven columns; in brackets where it was not measured for this text, ``≤`` where stopped."""
    if entry.score is None:
        return ""
    if entry.bound:
        return f"{UNICODE.at_most}{words.score(entry.score)}"
    return f" {words.score(entry.score)}" if entry.measured else f"({words.score(entry.score)})"


def decision(entry: Entry) -> str:
    """Return in words what became of it."""
    verdict = {
        Decision.ACCEPT_NEW_BEST: "accepted, new best",
        Decision.ACCEPT: "accepted",
        Decision.FORCE_ACCEPT: "accepted without a gate",
        Decision.REJECT: "rejected",
        Decision.INDECISIVE: "rejected, the gate could not decide",
    }
    by_kind = {
        "run-started": "run started",
        "skipped": "skipped",
        "slow-merged": "slow guidance merged",
        "reverted": "reverted",
        "run-finished": "run finished",
    }
    if entry.kind in by_kind:
        return by_kind[entry.kind]
    gate = verdict[Decision(entry.decision)] if entry.decision else "nothing to add"
    return f"slow guidance {gate}" if entry.kind == "slow-proposed" else gate
