"""Whether the evidence of an event has every file that an event of its kind always has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import (
    Accepted,
    Edited,
    Measured,
    Origin,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_name,
)
from skillgit.store.evidence import evidence_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.domain.event import Event
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_PLAN = ("config.json", "environment.json", "splits.json")


def lacking_files(repo: Repo, record: Recorded, *, trained: bool) -> Iterator[str]:
    """Yield which files the evidence of ``record`` does not have.

    Evidence that is not here tells nothing. A history may be written without any, but not by a trainer: where it is
    known that one ``trained`` the run, an event that names no evidence is told too.
    """
    needed = needed_files(record.event)
    if not needed:
        return
    if not record.evidence:
        if trained:
            yield f"the commit names no evidence, and {event_name(record.event)} always has some"
        return
    found = evidence_names(repo, record.evidence)
    if found is None:
        return
    for name in needed:
        if name not in found:
            yield f"the evidence lacks '{name}', which {event_name(record.event)} always has"


def needed_files(event: Event) -> tuple[str, ...]:
    """Return the files that the evidence of an event like ``event`` always has, test scores and placebos left out."""
    match event:
        case RunStarted():
            # A fork takes over what is here of the run that it comes from, which may be nothing.
            return () if event.fork_of else (*_PLAN, "selection.json")
        case Accepted() | Rejected():
            rolled = ("rollout.json",) if event.origin is Origin.STEP else ()
            repeated = ("repeats.json",) if event.verdict.repeats else ()
            return ("patch.json", *rolled, "selection.json", *repeated)
        case Skipped():
            return ("rollout.json",) if event.origin is Origin.STEP else ()
        case SlowProposed():
            return ("comparison.json", *(("selection.json",) if event.evaluation is not None else ()))
        case Reverted():
            return ("selection.json",) if isinstance(event.evaluation, EvaluationSummary) else ()
        case Measured():
            return ("selection.json",)
        case SlowMerged() | Edited() | RunFinished():
            return ()
