"""What is known of a version besides its own event: evaluations after the fact, and what people noted on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.inert import inert, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.app.evaluations import KnownEvaluation
    from skillgit.app.show import Shown
    from skillgit.cli.screen import Screen


def known_facts(shown: Shown, screen: Screen, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a label and a line for each known evaluation, how often the test split was looked at, then the notes."""
    for place, found in enumerate(shown.evaluations):
        yield "known" if place == 0 else "", _line(found, screen, now)
    if shown.test_evaluations:
        yield "", f"{words.plural(shown.test_evaluations, 'evaluation')} on the test split"
    for one in shown.feedback:
        said_by = f" {screen.glyphs.dot} ".join((one.id, one_line(one.author), words.ago(one.time, now)))
        yield "noted", f"{inert(one.text)}\n{said_by}"


def _line(found: KnownEvaluation, screen: Screen, now: datetime) -> str:
    source = "end of the run" if found.source == "run-finished" else found.target
    parts = (
        f"{found.split} hard {words.score(found.hard)}",
        f"soft {words.score(found.soft)}",
        f"{found.scored} of {words.plural(found.n, 'item')} scored",
        source,
        words.ago(found.time, now) if found.time is not None else "",
    )
    return f" {screen.glyphs.dot} ".join(part for part in parts if part)
