"""A version that no stage of the method made gets a score, so that the run can go on from it.

Someone may have edited the skill by hand, or taken up a text that was. Nothing is decided: the version stays whatever
it scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.event import Measured
from skillgit.engine.gating import judge
from skillgit.engine.step import models
from skillgit.engine.transition import Transition
from skillgit.errors import ServiceError

if TYPE_CHECKING:
    from skillgit.domain.run_state import RunState
    from skillgit.engine.session import Session
    from skillgit.engine.transition import SkillHistory


def lacks_score(state: RunState) -> bool:
    """Say whether nobody has measured the current version."""
    return state.known_evaluation(state.version) is None


async def measure_version(session: Session, state: RunState, history: SkillHistory) -> Transition:
    """Return the measurement of the current version, compared with the newest one before it that has a score.

    Raises:
        ServiceError: None of its items could be evaluated.
    """
    began = session.clock()
    version, before = state.version, state.last_measured(state.version)
    judgement = await judge(session, state, history.skill(before), history.skill(version), base=before, gated=False)
    if not judgement.evaluation.scored:
        raise ServiceError(
            f"none of the {judgement.evaluation.n} selection items could be evaluated with {version_label(version)}",
            hint="skillgit doctor asks each model once and says what is wrong",
        )
    event = Measured(
        run=session.run,
        skill=session.skill_path,
        epoch=state.epoch,
        step=state.step,
        title=f"selection score of {version_label(version)}",
        why=f"{version_label(version)} had no score."
        f" It is compared with {version_label(before)}, and no gate decides on it.",
        version=version,
        evaluation=judgement.evaluation,
        verdict=judgement.verdict,
        fixed=judgement.fixed,
        broken=judgement.broken,
        models=models(session),
        cost=session.cost_since(began),
    )
    return Transition(event=event, evidence=judgement.evidence)
