"""Screening: a candidate is tried on a few train items, and one that helps none is not measured at all.

It costs a handful of rollouts where a measurement costs the selection split, and it touches nothing of that: whatever
is screened, and however often, the gate's level stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.domain.proposal import Screening
from skillgit.engine import evidence_files
from skillgit.engine.minibatches import shuffle, stream
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Session, Stage

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.strategy import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningResult:
    counts: Screening
    evidence: evidence_files.Evidence

    @property
    def sentence(self) -> str:
        counts = self.counts
        return (
            f"On train items it fixes {counts.fixed} of the {counts.failing} that its base fails and breaks"
            f" {counts.broken} of the {counts.solved} that its base solves."
        )


async def screen(session: Session, proposal: Proposal, candidate: Skill, *, step: int) -> ScreeningResult | None:
    """Try ``candidate`` on train items of its own step; None where nothing is screened, or no item of it fails.

    The failing items are those that the applied edits name, or all of the step if they name none. As many solved ones
    as ``gate.screening`` says are drawn from the rest. Their outcomes under the base are those of the step's rollouts.
    """
    size = session.settings.gate.screening
    names = {item for edit in proposal.edits for item in edit.items}
    failing, solved = _by_outcome(proposal.rollouts)
    failing = [rollout for rollout in failing if rollout.item.id in names] or failing
    if not size or not failing:
        return None
    controls = shuffle(solved, stream(session.seed, "screening", step))[:size]
    before = [*failing, *controls]
    session.monitor.stage(Stage.SCREEN, len(before))
    after = await roll_out(session, candidate, [rollout.item for rollout in before], "screening")
    passes = [isinstance(rollout.outcome, Scored) and rollout.outcome.passed for rollout in after]
    fails = [isinstance(rollout.outcome, Scored) and not rollout.outcome.passed for rollout in after]
    counts = Screening(
        failing=len(failing),
        fixed=sum(passes[: len(failing)]),
        solved=len(controls),
        broken=sum(fails[len(failing) :]),
    )
    return ScreeningResult(counts=counts, evidence=evidence_files.rollouts_files("screening", after))


def _by_outcome(rollouts: tuple[Rollout, ...]) -> tuple[list[Rollout], list[Rollout]]:
    """Return the rollouts that failed and those that passed; an item without a score is in neither."""
    scores = [(rollout, rollout.outcome) for rollout in rollouts]
    failing = [rollout for rollout, outcome in scores if isinstance(outcome, Scored) and not outcome.passed]
    return failing, [rollout for rollout, outcome in scores if isinstance(outcome, Scored) and outcome.passed]
