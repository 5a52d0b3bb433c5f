"""One event as the cells of a line: the same for the log, the status and the live display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.score import known
from skillgit.view import words
from skillgit.view.screen import UNICODE, Style

if TYPE_CHECKING:
    from skillgit.domain.score import Score
    from skillgit.index.rows import LogRow
    from skillgit.index.rule_queries import OriginRow
    from skillgit.view.screen import Glyphs, Screen

# The words of events and decisions stand here as the index has them: every start of the log would pay for their types.
_NEW_BEST = "accept_new_best"
_STEP = "step"
_PREFIX = {
    "run-started": "run: ",
    "accepted": "skill: ",
    "rejected": "skill: ",
    "slow-proposed": "slow: ",
    "slow-merged": "slow: ",
    "reverted": "revert: ",
    "edited": "edit: ",
    "measured": "measure: ",
    "run-finished": "run: ",
}
_VERDICTS = {
    "accept_new_best": "accepted, new best",
    "accept": "accepted",
    "force_accept": "accepted without a gate",
    "reject": "rejected",
    "indecisive": "rejected, the gate could not decide",
}
_BY_KIND = {
    "run-started": "run started",
    "skipped": "skipped",
    "slow-merged": "slow guidance merged",
    "reverted": "reverted",
    "edited": "edited by hand",
    "measured": "measured",
    "run-finished": "run finished",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a line says of an event.

    Attributes:
        kind: The event's name in trailers.
        label: What it is called within its run.
        version: The version that it made.
        step: Its step.
        title: Its title without prefix.
        score: Its score as far as it is known.
        delta: The score's distance from what it was compared with; absent where only a bound is known.
        measured: Whether the score was measured for this text.
        decision: The gate's decision; empty without one.
        origin: Where its candidate comes from: a step, the reflection on an epoch (``meta``), or an intervention.
    """

    kind: str
    label: str
    version: int | None
    step: int
    title: str
    score: Score | None
    delta: float | None
    measured: bool
    decision: str
    origin: str = _STEP

    @classmethod
    def of_row(cls, row: LogRow) -> Entry:
        """Return the entry of a row of the log."""
        return cls(
            kind=row.kind,
            label=row.label,
            version=row.version,
            step=row.step,
            title=row.title,
            score=row.known,
            delta=row.delta,
            measured=row.measured,
            decision=row.decision,
            origin=row.origin,
        )

    @classmethod
    def of_origin(cls, origin: OriginRow) -> Entry:
        """Return the entry of the event that brought a rule, which was measured for it."""
        return cls(
            kind=origin.kind,
            label=origin.label,
            version=origin.version,
            step=origin.step,
            title=origin.title,
            score=known(origin.score, origin.bound),
            delta=origin.delta,
            measured=True,
            decision=origin.decision,
            origin=origin.origin,
        )


def title(entry: Entry) -> str:
    """Return the title as the commit's subject has it."""
    prefix = _PREFIX.get(entry.kind, "") if entry.origin == _STEP else f"{entry.origin}: "
    return prefix + entry.title


def glyph(entry: Entry, glyphs: Glyphs) -> str:
    """Return the sign of the event."""
    if entry.kind == "accepted" and entry.decision == _NEW_BEST:
        return glyphs.best
    return {
        "run-started": glyphs.accepted,
        "accepted": glyphs.accepted,
        "rejected": glyphs.rejected,
        "slow-proposed": glyphs.slow,
        "slow-merged": glyphs.slow,
        "reverted": glyphs.reverted,
        "edited": glyphs.edited,
    }.get(entry.kind, glyphs.skipped)


def style(entry: Entry) -> Style:
    """Return the colour that repeats what the sign says."""
    if entry.kind == "accepted" and entry.decision == _NEW_BEST:
        return Style.BEST
    return {
        "run-started": Style.ACCEPTED,
        "accepted": Style.ACCEPTED,
        "rejected": Style.REJECTED,
        "slow-proposed": Style.SLOW,
        "slow-merged": Style.SLOW,
        "reverted": Style.REVERTED,
        "edited": Style.EDITED,
    }.get(entry.kind, Style.SKIPPED)


def sign(entry: Entry, screen: Screen) -> str:
    """Return the painted sign."""
    return screen.paint(style(entry), glyph(entry, screen.glyphs))


def score(entry: Entry) -> str:
    """Return the score in seven columns; in brackets where it was not measured for this text, ``≤`` where stopped."""
    if entry.score is None:
        return ""
    told = words.score(entry.score.value)
    if entry.score.at_most:
        return f"{UNICODE.at_most}{told}"
    return f" {told}" if entry.measured else f"({told})"


def decision(entry: Entry) -> str:
    """Return in words what became of it."""
    if entry.kind in _BY_KIND:
        return _BY_KIND[entry.kind]
    gate = _VERDICTS[entry.decision] if entry.decision else "nothing to add"
    return f"slow guidance {gate}" if entry.kind == "slow-proposed" else gate
