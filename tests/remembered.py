"""Events as the optimizer remembers them, made of no more facts than a test is about."""

from __future__ import annotations

from typing import Any

from sample_run import MODELS, PATH, RUN, evaluation

from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Metric
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.domain.proposal import PatchCounts

PATCH = PatchCounts(merged=1, ranked=1, applied=1, skipped=0, budget=4)


def remembered(
    *, decision: Decision | None, score: float = 0.0, current: float = 0.0, author: str = "", **facts: Any
) -> Event:
    """Return a step with a gate's decision, one that was skipped, or the edit of ``author``."""
    facts = {"run": RUN, "skill": PATH} | facts
    if author:
        return Event(kind=EventKind.EDITED, **facts, version=1, base=0, author=author)
    facts |= {"patch": PATCH, "models": MODELS, "cost": Cost()}
    if decision is None:
        skipped = {name: value for name, value in facts.items() if name not in {"changes", "fixed", "broken"}}
        return Event(kind=EventKind.SKIPPED, **skipped)
    flips = {"fixed": len(facts.get("fixed", ())), "broken": len(facts.get("broken", ()))}
    verdict = Verdict(
        decision=decision,
        policy="strict",
        metric=Metric.HARD,
        score=score,
        current=current,
        best=current,
        p=1.0,
        **flips,
    )
    place = {"version": 1} if decision.accepted else {}
    kind = EventKind.ACCEPTED if decision.accepted else EventKind.REJECTED
    return Event(kind=kind, **({"base": 0} | facts), **place, evaluation=evaluation("1").summary(), verdict=verdict)
