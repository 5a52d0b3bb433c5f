"""How a run that has come to its end turned out, and the sentence that says why.

Only what the run found out is recorded. A provider that failed, a cap that was reached and a user who stopped it end a
process, not the run: they write no event, and the run goes on where it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.event import RunOutcome
from skillgit.domain.gate import Decision
from skillgit.domain.statistics import minimum_detectable_effect

if TYPE_CHECKING:
    from skillgit.domain.state import RunState
    from skillgit.engine.session import Session


def run_outcome(session: Session, state: RunState) -> RunOutcome:
    """Return how a run that has done all its steps ended."""
    if state.best > 0 and session.score(state, state.best) > session.score(state, 0):
        return RunOutcome.IMPROVED
    if session.score(state, 0) >= 1.0:
        return RunOutcome.CEILING
    if all(step.decision is None for step in state.memory if not step.by_hand):
        return RunOutcome.NO_CANDIDATES
    effect = detectable(session)
    if effect is None or effect > headroom(session, state):
        return RunOutcome.UNDERPOWERED
    return RunOutcome.NULL_RESULT


def detectable(session: Session) -> float | None:
    """Return the smallest gain that the paired test would find on the selection split; None if it would find none."""
    alpha = session.rule.alpha
    return minimum_detectable_effect(len(session.task.items[Split.SELECTION]), alpha=alpha)


def headroom(session: Session, state: RunState) -> float:
    """Return what is left between the best score and a full one."""
    return 1.0 - session.score(state, state.best)


def finish_sentence(session: Session, state: RunState, outcome: RunOutcome) -> str:
    """Return one sentence that explains the outcome."""
    first, best = session.score(state, 0), session.score(state, state.best)
    match outcome:
        case RunOutcome.IMPROVED:
            return f"v{state.best} scores {best:.4f} on the selection split where the seed scores {first:.4f}."
        case RunOutcome.CEILING:
            return "The seed solves every selection item, so that no edit can score higher."
        case RunOutcome.NO_CANDIDATES:
            return "No step produced a candidate to measure."
        case RunOutcome.UNDERPOWERED:
            return _underpowered(session, state, first)
        case _:
            return _null_result(state, first)


def _underpowered(session: Session, state: RunState, first: float) -> str:
    effect, items = detectable(session), len(session.task.items[Split.SELECTION])
    told = "no gain" if effect is None else f"no gain under {effect:.4f}"
    return (
        f"The seed scores {first:.4f}: what is left to gain is {headroom(session, state):.4f}, and {items} selection"
        f" items tell {told} from chance."
    )


def _null_result(state: RunState, first: float) -> str:
    decisions = [step.decision for step in state.memory if step.decision is not None and not step.by_hand]
    undecided = decisions.count(Decision.INDECISIVE)
    measured = "1 candidate was measured" if len(decisions) == 1 else f"{len(decisions)} candidates were measured"
    if undecided:
        return (
            f"{measured}; too few items could be evaluated to decide on {undecided}, and no other scores above the"
            f" seed's {first:.4f}."
        )
    return f"{measured} and none scores above the seed's {first:.4f}."
