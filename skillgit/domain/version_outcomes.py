"""What a run knows of its versions item by item on the selection split, by the evidence of its events.

A version has the outcomes of the event that made or measured it. Items that failed then and were measured again later,
when something was compared with the version, stand in ``base.json`` of the event that caused it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import Edited, Inherited, MakesVersion, Measured, SlowMerged, SlowProposed
from skillgit.domain.outcomes import read_outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.evaluation import Outcome
    from skillgit.domain.event import Event

SELECTION, BASE, REPEATS = "selection.json", "base.json", "repeats.json"
FILES = (SELECTION, BASE, REPEATS)
"""The files of an event's evidence that hold outcomes."""


class VersionOutcomes:
    """The outcomes of the versions of one run, learnt event by event.

    Attributes:
        candidate: The outcomes of the text that the newest event measured; None if they are not here.
        base: The version that the newest event compared it with; None if it compared nothing.
        repeats: The file with the repeated rollouts behind that; empty if there were none.
    """

    def __init__(self) -> None:
        self.candidate: dict[str, Outcome] | None = None
        self.base: int | None = None
        self.repeats = b""
        self._versions: dict[int, dict[str, Outcome] | None] = {}
        self._scored: list[int] = []
        self._proposed: tuple[dict[str, Outcome] | None, bytes] = None, b""

    def of(self, version: int) -> Mapping[str, Outcome] | None:
        """Return the outcomes of ``version``; None if they are not here."""
        return self._versions.get(version)

    @property
    def of_base(self) -> Mapping[str, Outcome] | None:
        """The outcomes of that version; None if they are not here."""
        return None if self.base is None else self.of(self.base)

    def take(self, event: Event, files: Mapping[str, bytes]) -> None:
        """Learn what ``event`` measured, by its evidence ``files``; a merge rests on what its proposal measured."""
        own = read_outcomes(files.get(SELECTION)), files.get(REPEATS, b"")
        self.candidate, self.repeats = self._proposed if isinstance(event, SlowMerged) else own
        self.base = self._scored[-1] if isinstance(event, Measured) else getattr(event, "base", None)
        again = read_outcomes(files.get(BASE))
        if self.base is not None and again:
            self._versions[self.base] = (self._versions.get(self.base) or {}) | again
        if isinstance(event, SlowProposed):
            self._proposed = own
        if not isinstance(event, MakesVersion | Measured) or isinstance(event, Edited):
            return
        source = event.evaluation.version if isinstance(event.evaluation, Inherited) else None
        self._versions[event.version] = self.candidate if source is None else self._versions.get(source)
        if source is None or source in self._scored:
            self._scored.append(event.version)
