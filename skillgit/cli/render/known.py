"""What is known of a version besides its own event: evaluations after the fact, and what people noted on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.inert import inert, one_line
from skillgit.domain.evaluation import Metric

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.app.evaluations import KnownEvaluation
    from skillgit.app.show import Shown
    from skillgit.cli.screen import Screen
    from skillgit.domain.evaluation import EvaluationSummary, Gauge


def known_facts(shown: Shown, screen: Screen, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a label and a line for each known evaluation, how often the test split was looked at, then the notes."""
    for place, found in enumerate(shown.evaluations):
        yield "known" if place == 0 else "", _line(found, shown.gauge, screen, now)
    if shown.test_evaluations:
        yield "", f"{words.plural(shown.test_evaluations, 'evaluation')} on the test split"
    for one in shown.feedback:
        said_by = f" {screen.glyphs.dot} ".join((one.id, one_line(one.author), words.ago(one.time, now)))
        yield "noted", f"{inert(one.text)}\n{said_by}"


def scores(measured: EvaluationSummary | KnownEvaluation, gauge: Gauge, screen: Screen) -> str:
    """Return the score under the gate's metric, then hard and soft where it is neither of them alone."""
    both = f"hard {words.score(measured.hard)} {screen.glyphs.dot} soft {words.score(measured.soft)}"
    if gauge.metric is Metric.HARD:
        return both
    if gauge.metric is Metric.SOFT:
        return f"soft {words.score(measured.soft)} {screen.glyphs.dot} hard {words.score(measured.hard)}"
    return f"mixed {words.score(gauge.of(measured.hard, measured.soft))} {screen.glyphs.dot} {both}"


def _line(found: KnownEvaluation, gauge: Gauge, screen: Screen, now: datetime) -> str:
    source = "end of the run" if found.source == "run-finished" else found.target
    parts = (
        f"{found.split} {scores(found, gauge, screen)}",
        f"{found.scored} of {words.plural(found.n, 'item')} scored",
        source,
        words.ago(found.time, now) if found.time is not None else "",
    )
    return f" {screen.glyphs.dot} ".join(part for part in parts if part)
