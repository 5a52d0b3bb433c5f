"""What the lines of the live screen say of a look at a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from skillgit.app.history.live import Standing
from skillgit.tui.widgets.painted_lines import Part
from skillgit.tui.widgets.shown_text import on_one_line
from skillgit.view import progress, words
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.history.live import LiveLook, Snapshot
    from skillgit.index.browsing import Point
    from skillgit.view.screen import Screen

ALIVE: Final = frozenset({Standing.STARTING, Standing.RUNNING, Standing.STOPPING})
"""A process works on the run."""
_GOOD: Final = frozenset({"improved", "ceiling"})
_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-=+*%#"


def head(look: LiveLook, screen: Screen) -> tuple[list[Part], list[Part]]:
    """Return which run it is, and whether somebody works on it."""
    left = [Part(" Live  ", Style.FAINT), Part(on_one_line(look.run, screen), Style.STRONG)]
    match look.standing:
        case Standing.STARTING | Standing.RUNNING | Standing.STOPPING:
            said = {Standing.RUNNING: "", Standing.STARTING: "starting  ", Standing.STOPPING: "stops after this step  "}
            told, style = f"{said[look.standing]}{screen.glyphs.running} pid {look.pid}", Style.RUNNING
        case Standing.ENDED if look.snapshot is not None and look.snapshot.end is not None:
            told = look.snapshot.end.outcome
            style = Style.BEST if told in _GOOD else Style.REJECTED
        case Standing.KILLED:
            told, style = "stopped without a word", Style.REJECTED
        case _:
            told, style = "not running", Style.FAINT
    return left, [Part(f"{told} ", style)]


def place(look: LiveLook, screen: Screen) -> list[Part]:
    """Return where in the run it is, the edit budget of the step, and the time left."""
    found, dot = look.snapshot, f" {screen.glyphs.dot} "
    if found is None or not found.steps:
        return [Part(" ")]
    left = seconds_left(found) if look.standing in ALIVE else None
    parts = [
        progress.place(found),
        f"budget {found.budget}" if found.budget is not None else "",
        f"ETA {words.duration(left)}" if left is not None else "",
    ]
    return [Part(f" {dot.join(part for part in parts if part)}")]


def seconds_left(snapshot: Snapshot) -> float | None:
    """Return how long the rest takes at the pace of this process; None before it has one."""
    begun = snapshot.beginning
    if begun is None:
        return None
    then = replace(snapshot, step=begun.step, stage=begun.stage, done=begun.done, total=begun.total)
    return progress.seconds_left(
        now=progress.fraction(snapshot), then=progress.fraction(then), elapsed=snapshot.seconds - begun.seconds
    )


def scores(look: LiveLook, points: Sequence[Point], screen: Screen, room: int) -> list[Part]:
    """Return the current and the best score, and the scores of versions as a line of bars in ``room`` columns."""
    found = look.snapshot
    values = [point.score.value for point in points if point.kind != "rejected" and not point.score.at_most]
    newest = values[-1] if values else None
    score = found.score if found is not None and found.score is not None else newest
    best = found.best if found is not None and found.best is not None else max(values, default=None)
    if score is None:
        return []
    told = f"current {words.score(score)}  best {words.score(best)} "
    return [Part(told), Part(f" {spark(values, screen, room - len(told) - 2)} ", Style.BEST)]


def spark(values: Sequence[float], screen: Screen, columns: int) -> str:
    """Return the newest ``values`` as bars between the lowest and the highest of them."""
    shown = values[-columns:] if columns > 0 else []
    if len(shown) < 2:  # noqa: PLR2004 - one bar tells nothing
        return ""
    bars, low, high = _BARS if screen.unicode else _ASCII_BARS, min(shown), max(shown)
    span = (high - low) or 1.0
    return "".join(bars[round((value - low) / span * (len(bars) - 1))] for value in shown)


def cost(look: LiveLook, screen: Screen) -> list[Part]:
    """Return what the run has cost, against the caps."""
    found = look.snapshot
    if found is None:
        return [Part(" ")]
    spent, limits = found.spent, found.limits
    tokens = spent.tokens_in + spent.tokens_out
    parts = [
        _against(words.plural(spent.calls, "call"), spent.calls, limits.calls, f"{limits.calls or 0:,}"),
        _against(f"{words.count(tokens)} tokens", tokens, limits.tokens, words.count(limits.tokens or 0)),
        _against(_money(found), spent.usd, limits.usd, words.money(limits.usd or 0.0)),
    ]
    told: list[Part] = [Part(" cost  ", Style.FAINT)]
    for number, part in enumerate(part for part in parts if part.text):
        told += [Part(f" {screen.glyphs.dot} ", Style.FAINT)] if number else []
        told.append(part)
    return told if any(parts) else []


def _money(snapshot: Snapshot) -> str:
    spent = snapshot.spent
    if not spent.usd:
        return "price unknown" if spent.unpriced else "$0" if snapshot.limits.usd else ""
    return words.dollars(spent.usd, is_all=not spent.unpriced)


def _against(told: str, value: float, cap: float | None, most: str) -> Part:
    """Return what was spent of a cap; from nine tenths of it on it stands out."""
    if cap is None:
        return Part(told)
    near = value >= 0.9 * cap
    return Part(f"{told} of {most} ({value / cap:.0%})", Style.REJECTED if near else "")


def told(look: LiveLook) -> tuple[str, str, Style]:
    """Return what is to be said of the run beside its numbers, a hint, and how it looks."""
    found = look.snapshot
    match look.standing:
        case Standing.IDLE:
            hint = f"skillgit train CONFIG --run {look.run}" if look.run else "skillgit train CONFIG"
            return (f"nobody trains {look.run} now" if look.run else "no run is trained now"), hint, Style.FAINT
        case Standing.STARTING:
            process = f"process {look.pid} " if look.pid else "the trainer "
            return f"{process}has begun and told nothing yet", "", Style.FAINT
        case Standing.ENDED if found is not None and found.end is not None:
            style = Style.STRONG if found.end.outcome in _GOOD else Style.REJECTED
            return found.end.message, found.end.hint, style
        case Standing.KILLED if found is not None:
            sentence = f"process {found.pid} is gone without a word; what it had written is kept"
            return sentence, f"{found.command} goes on where it stands", Style.REJECTED
        case _:
            said = found.remarks[-1] if found is not None and found.remarks else ""
            return said, "", Style.FAINT
