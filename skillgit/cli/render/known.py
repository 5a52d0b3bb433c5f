"""What is known of a version besides its own event: evaluations after the fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.app.evaluations import KnownEvaluation
    from skillgit.app.show import Shown
    from skillgit.cli.screen import Screen


def known_facts(shown: Shown, screen: Screen, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a label and a line for each known evaluation, then how often the test split was looked at."""
    for place, found in enumerate(shown.evaluations):
        yield "known" if place == 0 else "", _line(found, screen, now)
    if shown.test_evaluations:
        yield "", f"{words.plural(shown.test_evaluations, 'evaluation')} on the test split"


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
