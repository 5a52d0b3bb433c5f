"""What a run knows of its versions item by item on the selection split, by the evidence of its events.

A version has the outcomes of the event that made or measured it. Items that failed then and were measured again later,
when something was compared with the version, stand in ``base.json`` of the event that caused it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import FailedToEvaluate, Scored
from skillgit.domain.event import Edited, Inherited, MakesVersion, Measured, SlowMerged, SlowProposed
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.evaluation import Outcome
    from skillgit.domain.event import Event

SELECTION, BASE, REPEATS = "selection.json", "base.json", "repeats.json"
FILES = (SELECTION, BASE, REPEATS)
"""The files of an event's evidence that hold outcomes."""

Outcomes = dict[str, "Outcome"]


class VersionOutcomes:
    """The outcomes of the versions of one run; None for a version whose outcomes are not here."""

    def __init__(self) -> None:
        self._versions: dict[int, Outcomes | None] = {}
        self._scored: list[int] = []
        self._proposed: Outcomes | None = None
        self._newest: Outcomes | None = None

    def of(self, version: int) -> Mapping[str, Outcome] | None:
        """Return what is known of ``version``."""
        return self._versions.get(version)

    @property
    def candidate(self) -> Mapping[str, Outcome] | None:
        """What is known of the text that the newest event measured."""
        return self._newest

    def base_of(self, event: Event) -> int | None:
        """Return the version that ``event``, which was not taken yet, compares its own with."""
        if isinstance(event, Measured):
            return next((version for version in reversed(self._scored) if version < event.version), None)
        return getattr(event, "base", None)

    def look_at(self, event: Event, files: Mapping[str, bytes]) -> None:
        """Learn what ``event`` measured, before it is taken."""
        self._newest = self._proposed if isinstance(event, SlowMerged) else read_outcomes(files.get(SELECTION))
        base, again = self.base_of(event), read_outcomes(files.get(BASE))
        if base is not None and again:
            self._versions[base] = (self._versions.get(base) or {}) | again

    def take(self, event: Event) -> None:
        """Let the version that ``event`` makes or measures have the outcomes that were looked at."""
        if isinstance(event, SlowProposed):
            self._proposed = self._newest
        if not isinstance(event, MakesVersion | Measured):
            return
        match None if isinstance(event, Edited) else event.evaluation:
            case None:
                return
            case Inherited(version=source):
                self._versions[event.version] = self._versions.get(source)
                scored = source in self._scored
            case _:
                self._versions[event.version] = self._newest
                scored = True
        if scored:
            self._scored.append(event.version)


def outcome_row(item: str, outcome: Outcome) -> dict[str, object]:
    """Return an outcome as it stands in evidence."""
    if isinstance(outcome, Scored):
        return {"id": item, "hard": outcome.hard, "soft": outcome.soft}
    return {"id": item, "failed": outcome.reason}


def read_outcome(row: Mapping[str, object]) -> Outcome:
    """Read a row of a file of outcomes.

    Raises:
        ValueError, KeyError, DataError: It is not one.
    """
    if "failed" in row:
        return FailedToEvaluate(str(row["failed"]))
    return Scored(float(str(row["hard"])), float(str(row["soft"])))


def read_outcomes(content: bytes | None) -> Outcomes | None:
    """Return item to outcome as a file of outcomes has them; None if it is not here or cannot be read."""
    try:
        return None if content is None else {str(row["id"]): read_outcome(row) for row in json.loads(content)}
    except (ValueError, TypeError, KeyError, RecursionError, DataError):
        return None


def read_samples(content: bytes, side: str) -> dict[str, list[Outcome]]:
    """Return item to the outcomes of its repeated rollouts on one side, ``candidate`` or ``current``.

    Raises:
        ValueError, TypeError, KeyError, DataError: ``content`` is not a file of repeats.
    """
    return {str(row["id"]): [read_outcome(sample) for sample in row[side]] for row in json.loads(content)}
