"""How far a run is: what the process that trains it reports, publishes, and shows."""

from __future__ import annotations

from dataclasses import dataclass

from skillgit.domain.cost import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    epoch: int = 0
    epochs: int = 0
    step: int = 0  # the current step; 0 before the first one
    steps: int = 0
    last: int = 0  # the last step of the round that is in progress; 0 for a step by itself
    stage: str = ""  # what is being done; empty before the first stage
    done: int = 0  # items or calls of the stage that are done
    total: int = 0  # items or calls of the stage in all; 0 if that is not known
    score: float | None = None  # the current version's score on the selection split; None before the baseline
    best: float | None = None
    spent: Cost = Cost()  # what the run has cost so far, the event in progress included
    share: float = 0.0  # how much of the whole run's work is done, 0 to 1: steps, slow updates and final tests
    seconds_left: float | None = None  # what all of the rest takes; None before anything was rolled out, 0 at the end
