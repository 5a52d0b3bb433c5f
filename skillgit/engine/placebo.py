"""The placebo: no-op candidates sent through the run's own gate on fresh draws, to see how often it errs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.placebo import Placebo, no_op
from skillgit.engine import artifacts
from skillgit.engine.judge import judge
from skillgit.engine.progress import Stage

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.engine.session import Session

SAMPLES_APART = 1_000_000
"""So far apart are the draws of one placebo from those of another, and from those of real candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboResult:
    """What came of the placebos of a run.

    Attributes:
        counts: How many there were and passed; absent if there were none.
        sentence: What that means; empty if there were none.
    """

    counts: Placebo | None = None
    sentence: str = ""
    files: artifacts.Evidence


async def measure_placebo(session: Session, state: RunState, skill: Skill) -> PlaceboResult:
    """Send ``train.placebo`` no-op candidates made of ``skill``, the current version, through the gate.

    As with a real candidate, the current version's recorded outcomes are compared with fresh draws for the candidate.
    Every item is drawn, so that all noise is seen. Nothing becomes of the candidates.
    """
    count = session.settings.train.placebo
    if not count:
        return PlaceboResult(files={})
    session.monitor.stage(Stage.PLACEBO, count * len(session.task.items[Split.SELECTION]))
    rows: list[dict[str, object]] = []
    for number in range(1, count + 1):
        candidate = no_op(skill, number)
        judgement = await judge(session, state, skill, candidate.skill, sample=SAMPLES_APART * number)
        verdict = judgement.verdict
        rows.append(
            {
                "number": number,
                "change": candidate.change,
                "decision": verdict.decision.value,
                "accepted": verdict.decision.accepted,
                "score": verdict.score,
                "current": verdict.current,
                "p": verdict.p,
                "fixed": list(judgement.fixed),
                "broken": list(judgement.broken),
            }
        )
    counts = Placebo(n=count, accepted=sum(bool(row["accepted"]) for row in rows))
    quiet = not any(row["fixed"] or row["broken"] for row in rows)
    return PlaceboResult(
        counts=counts, sentence=_sentence(counts, quiet=quiet), files={"placebo.json": artifacts.json_file(rows)}
    )


def _sentence(counts: Placebo, *, quiet: bool) -> str:
    candidates = "1 candidate that changes" if counts.n == 1 else f"{counts.n} candidates that change"
    sentence = f"Placebo: {counts.accepted} of {candidates} nothing passed the gate (rate {counts.rate:.2f})."
    if quiet:
        return f"{sentence} No outcome of an item differed: this target answers alike every time, without noise."
    return sentence
