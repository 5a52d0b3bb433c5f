"""One event as the cells of a line: the same for the log, the status and the live display."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.score import Score, known
from skillgit.view import numbers
from skillgit.view.surface import UNICODE, Glyphs, Screen, Style

if TYPE_CHECKING:
    from skillgit.index.rows import LogRow
    from skillgit.index.rule_queries import OriginRow

_NEW_BEST = "accept_new_best"
_STEP = "step"
_VERDICTS = {
    "accept_new_best": "accepted, new best",
    "accept": "accepted",
    "force_accept": "accepted without a gate",
    "reject": "rejected",
    "indecisive": "rejected, the gate could not decide",
}


class Look(NamedTuple):
    """What events of a kind look like on every surface."""

    sign: str  # the name of their sign in :class:`Glyphs`, and of their shape in drawings
    style: Style
    prefix: str
    words: str = ""  # what happened; empty where the gate says it
    beside: bool = False  # whether they are off the line of their run
    rank: int = 3  # which sign is seen where several meet in a plot: the one of the highest rank

    def drawn(self, glyphs: Glyphs) -> str:
        return str(getattr(glyphs, self.sign))


LOOKS: dict[EventKind, Look] = {
    EventKind.RUN_STARTED: Look("accepted", Style.ACCEPTED, "run: ", "run started"),
    EventKind.ACCEPTED: Look("accepted", Style.ACCEPTED, "skill: "),
    EventKind.REJECTED: Look("rejected", Style.REJECTED, "skill: ", beside=True, rank=0),
    EventKind.SKIPPED: Look("skipped", Style.SKIPPED, "", "skipped", beside=True),
    EventKind.SLOW_PROPOSED: Look("slow", Style.SLOW, "slow: ", beside=True, rank=1),
    EventKind.SLOW_MERGED: Look("slow", Style.SLOW, "slow: ", "slow guidance merged", rank=2),
    EventKind.REVERTED: Look("reverted", Style.REVERTED, "restore: ", "restored"),
    EventKind.EDITED: Look("edited", Style.EDITED, "edit: ", "edited by hand"),
    EventKind.MEASURED: Look("skipped", Style.SKIPPED, "measure: ", "measured", beside=True),
    EventKind.RUN_FINISHED: Look("skipped", Style.SKIPPED, "run: ", "run finished"),
}
_BEST = Look("best", Style.BEST, "skill: ", rank=4)


def look_of(kind: EventKind, decision: str) -> Look:
    return _BEST if kind == EventKind.ACCEPTED and decision == _NEW_BEST else LOOKS[kind]


class Entry(NamedTuple):
    """What a line says of an event: its title without prefix, and its score as far as it is known."""

    kind: EventKind
    label: str
    version: int | None
    step: int
    title: str
    score: Score | None
    delta: float | None  # the score's distance from what it was compared with; absent where only a bound is known
    is_measured: bool  # whether the score was measured for this text
    decision: str
    # where its candidate comes from: a step, the reflection on an epoch (`meta`), or an intervention
    origin: str = _STEP
    lines: tuple[int, ...] = ()  # the versions that it was made of, where not just the one before it

    @classmethod
    def of_row(cls, row: LogRow) -> Entry:
        own = (row.kind, row.label, row.version, row.step, row.title)
        return cls(*own, row.known, row.delta, row.measured, row.decision, row.origin, row.lines)

    @classmethod
    def of_origin(cls, origin: OriginRow) -> Entry:
        """Return the entry of the event that brought a rule, which was measured for it."""
        own = (origin.kind, origin.label, origin.version, origin.step, origin.title)
        score = known(origin.score, origin.bound)
        facts = (origin.decision, origin.origin, origin.lines)
        return cls(*own, score, origin.delta, True, *facts)  # noqa: FBT003 - the score was measured for it


def title(entry: Entry) -> str:
    prefix = LOOKS[entry.kind].prefix if entry.origin == _STEP else f"{entry.origin}: "
    return f"{prefix.removesuffix(': ')} {made_of(entry)}: {entry.title}" if entry.lines else prefix + entry.title


def made_of(event: Entry | LogRow) -> str:
    """Return the versions that it was made of, as ``from v2 and v5``; empty where not more than the one before it."""
    return f"from {' and '.join(map(version_label, event.lines))}" if event.lines else ""


def glyph(entry: Entry, glyphs: Glyphs) -> str:
    return look_of(entry.kind, entry.decision).drawn(glyphs)


def style(entry: Entry) -> Style:
    return look_of(entry.kind, entry.decision).style


def sign(entry: Entry, screen: Screen) -> str:
    return screen.paint(style(entry), glyph(entry, screen.glyphs))


def score(entry: Entry) -> str:
    """Return the score in columns; in brackets where it was not measured for this text, ``≤`` where stopped."""
    if entry.score is None:
        return ""
    text = numbers.score(entry.score.value)
    if entry.score.at_most:
        return f"{UNICODE.at_most}{text}"
    return f"{text:>6}" if entry.is_measured else f"({text})"


def outcome(entry: Entry, screen: Screen) -> str:
    """Return sign and decision in the event's colour, then its score and the difference."""
    words = screen.paint(style(entry), f"{glyph(entry, screen.glyphs)} {decision(entry)}")
    return f"{words}   {score(entry).strip()} {delta(entry)}".rstrip()


def delta(entry: Entry) -> str:
    """Return how far the score is from what it was compared with, if it was measured for this text."""
    return numbers.delta(entry.delta) if entry.is_measured else ""


def decision(entry: Entry) -> str:
    if words_of_kind := LOOKS[entry.kind].words:
        return words_of_kind
    gate = _VERDICTS[entry.decision] if entry.decision else "nothing to add"
    return f"slow guidance {gate}" if entry.kind == EventKind.SLOW_PROPOSED else gate
