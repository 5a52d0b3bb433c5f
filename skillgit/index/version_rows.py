"""The versions of a run as rows: what each one scores, and which event holds the outcomes behind its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillgit.domain.event import Edited, Inherited, MakesVersion, Measured, SlowMerged, SlowProposed
from skillgit.errors import InvariantError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.domain.event import Event

Scores = tuple[int | None, float | None, float | None, int | None, int | None]
"""The event that measured a version, its hard and soft score, its items, and how many of them have a score."""

_UNMEASURED: Scores = (None, None, None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the index has of a run already.

    Attributes:
        scores: Returns the scores of a version; None if there is no such version.
        proposal: Returns the event that proposed the slow update of an epoch; None if there is none.
    """

    scores: Callable[[int], Scores | None] = lambda _: None
    proposal: Callable[[int], int | None] = lambda _: None


class Versions:
    """The versions that events make, taken one after the other.

    Attributes:
        rows: Their rows.
        measured: Scores, run and number of versions that are in the index already and had no scores.
    """

    def __init__(self, before: Before) -> None:
        self.rows: list[list[Any]] = []
        self.measured: list[tuple[Any, ...]] = []
        self._before = before
        self._scores: dict[int, Scores] = {}
        self._made: dict[int, list[Any]] = {}
        self._proposals: dict[int, int] = {}

    def take(self, number: int, event: Event) -> None:
        """Take in ``event``, which is called ``number``.

        Raises:
            InvariantError: It makes a version that there is already.
        """
        if isinstance(event, SlowProposed):
            self._proposals.setdefault(event.epoch, number)
        elif isinstance(event, Measured):
            self._measure(number, event)
        elif isinstance(event, MakesVersion):
            source, scores = self._told(number, event)
            self._make(event.run, event.version, number, scores, source)

    def _make(self, run: str, version: int, number: int, scores: Scores, source: int | None = None) -> None:
        if version in self._made or self._before.scores(version) is not None:
            # copied with its commit, as git cherry-pick does
            raise InvariantError(f"run {run} makes v{version} twice", hint="skillgit fsck")
        row = [run, version, number, scores[0], source, *scores[1:]]
        self.rows.append(row)
        self._made[version], self._scores[version] = row, scores

    def _measure(self, number: int, event: Measured) -> None:
        evaluation = event.evaluation
        scores = (number, evaluation.hard, evaluation.soft, evaluation.n, evaluation.scored)
        self._scores[event.version] = scores
        row = self._made.get(event.version)
        if row is None:
            self.measured.append((*scores, event.run, event.version))
        else:
            row[3:] = [number, None, *scores[1:]]

    def _told(self, number: int, event: MakesVersion) -> tuple[int | None, Scores]:
        """Return the version that the scores are inherited from, if they are, and the scores."""
        if isinstance(event, Edited):
            return None, _UNMEASURED
        evaluation = event.evaluation
        if isinstance(evaluation, Inherited):
            scores = self._scores.get(evaluation.version) or self._before.scores(evaluation.version)
            return evaluation.version, scores or _UNMEASURED
        measured_by = self._proposal(event.epoch) if isinstance(event, SlowMerged) else number
        return None, (measured_by, evaluation.hard, evaluation.soft, evaluation.n, evaluation.scored)

    def _proposal(self, epoch: int) -> int | None:
        number = self._proposals.get(epoch)
        return self._before.proposal(epoch) if number is None else number
