"""Runs made of hand-written events, for tests that need no repository."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from random import Random

from bench.histories.providers import CONDUCTS
from hypothesis import strategies as st

from skillgit.domain.cost import Cost
from skillgit.domain.edit import EditSource, Op
from skillgit.domain.evaluation import EvaluationSummary, Metric, Split
from skillgit.domain.event import Event, Inherited, Models, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, Verdict, decision
from skillgit.domain.proposal import BudgetSource, Change, EditRecord, Origin, PatchCounts
from skillgit.index.refresh import Index
from skillgit.store.commit_message import Recorded

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
MODELS = Models(target="offline/reader", optimizer="offline/analyst")
COST = Cost(calls=3, tokens_in=100, tokens_out=10, usd=0.1, seconds=1.5)
PAID = [
    {"models": conduct.models, "cost": conduct.cost("step", Random(place))}  # noqa: S311 - the same costs every time
    for place, conduct in enumerate(CONDUCTS)
]
"""What a step costs with each kind of provider."""
PATCH = PatchCounts(merged=3, ranked=2, applied=1, skipped=1, budget=4)
EDITS = (EditRecord(op=Op.APPEND, file="SKILL.md", support=2, source=EditSource.FAILURE),)
ITEMS = 8


def summary(hard: float, **changes) -> EvaluationSummary:
    found = EvaluationSummary(
        split=Split.SELECTION, item_set="4be1", n=ITEMS, scored=ITEMS, hard=hard, soft=hard / 2, seed=42
    )
    return replace(found, **changes)


def verdict(score: float, current: float, best: float) -> Verdict:
    found = Verdict(
        decision=Decision.REJECT,
        policy="strict",
        metric=Metric.HARD,
        score=score,
        current=current,
        best=best,
        fixed=1,
        broken=0,
        p=0.5,
    )
    return replace(found, decision=decision(found))


class Story:
    """Tells a run event by event; every event follows the rules that a fold checks."""

    def __init__(self, run: str = "demo-20261121-aaaa", skill: str = "skills/demo") -> None:
        self.common = {"run": run, "skill": skill}
        self.step, self.epoch, self.scores, self.best, self.interventions = 0, 0, [0.25], 0.25, 0
        self.events = [
            Event(
                kind=EventKind.RUN_STARTED,
                **self.common,
                title="seed skill",
                config="c0ff",
                splits="5911",
                environment="e911",
                models=MODELS,
                evaluation=summary(0.25),
                cost=COST,
            )
        ]

    def intervened(self, score: float, origin: Origin = Origin.CHERRY_PICK):
        """A person has a candidate judged between two steps."""
        self.interventions += 1
        told = {"origin": origin, "number": self.interventions, "of": "other/v3"}
        self.step -= 1
        patch = replace(PATCH, budget=None, by=BudgetSource.NONE)
        return self.proposed(score, **told, epoch=self.epoch, patch=patch)

    def proposed(self, score: float, **changes):
        self.step += 1
        self.epoch = changes.get("epoch", (self.step - 1) // 3 + 1)
        base = len(self.scores) - 1
        judged = verdict(score, self.scores[-1], self.best)
        parts = {
            **self.common,
            "epoch": self.epoch,
            "step": self.step,
            "title": f"skill: rule {self.step}",
            "why": f"Because of unit mismatch {self.step}.",
            "base": base,
            "edits": EDITS,
            "changes": (Change(sign="+", text=f"answer in feet {self.step}"), Change(sign="-", text="guess metres")),
            "patch": PATCH,
            "evaluation": summary(score),
            "verdict": judged,
            "fixed": ("q1",),
            "models": MODELS,
            "cost": COST,
            **changes,
        }
        if judged.decision.accepted:
            self.scores.append(score)
            self.best = max(self.best, score)
            self.events.append(Event(kind=EventKind.ACCEPTED, **parts, version=base + 1))
        else:
            self.events.append(Event(kind=EventKind.REJECTED, **parts))
        return self

    def skipped(self):
        self.step += 1
        self.epoch = (self.step - 1) // 3 + 1
        self.events.append(
            Event(
                kind=EventKind.SKIPPED,
                **self.common,
                epoch=self.epoch,
                step=self.step,
                title="no patch",
                patch=PATCH,
                models=MODELS,
                cost=COST,
            )
        )
        return self

    def slow(self, score: float | None):
        place = {**self.common, "epoch": max(self.epoch, 1), "step": self.step}
        base = len(self.scores) - 1
        judged = None if score is None else verdict(score, self.scores[-1], self.best)
        self.events.append(
            Event(
                kind=EventKind.SLOW_PROPOSED,
                **place,
                title="slow guidance",
                base=base,
                guidance="" if score is None else "Prefer exact spans.",
                memory="short rules win",
                evaluation=None if score is None else summary(score, version=base),
                verdict=judged,
                models=MODELS,
                cost=COST,
            )
        )
        if judged is not None and judged.decision.accepted:
            self.scores.append(score)
            self.best = max(self.best, score)
            self.events.append(
                Event(
                    kind=EventKind.SLOW_MERGED,
                    **place,
                    title="merge guidance",
                    version=base + 1,
                    base=base,
                    evaluation=summary(score),
                    verdict=judged,
                )
            )
        return self

    def edited(self):
        """A person commits to the run's branch."""
        base = len(self.scores) - 1
        self.scores.append(None)
        self.events.append(
            Event(
                kind=EventKind.EDITED,
                **self.common,
                epoch=self.epoch,
                step=self.step,
                title=f"mend v{base}",
                why="It was wrong.",
                version=base + 1,
                base=base,
                author="Ada",
            )
        )
        return self

    def measured(self, score: float):
        """The current version, which has no score, gets one."""
        before = next(known for known in reversed(self.scores) if known is not None)
        judged = replace(verdict(score, before, self.best), gated=False)
        judged = replace(judged, decision=decision(judged))
        self.scores[-1], self.best = score, max(self.best, score)
        self.events.append(
            Event(
                kind=EventKind.MEASURED,
                **self.common,
                epoch=self.epoch,
                step=self.step,
                title="measured",
                version=len(self.scores) - 1,
                evaluation=summary(score),
                verdict=judged,
                fixed=("q1",),
                models=MODELS,
                cost=COST,
            )
        )
        return self

    def reverted(self, target: int):
        base = len(self.scores) - 1
        self.scores.append(self.scores[target])
        self.events.append(
            Event(
                kind=EventKind.REVERTED,
                **self.common,
                epoch=self.epoch,
                step=self.step,
                title=f"back to v{target}",
                version=base + 1,
                base=base,
                target=target,
                evaluation=Inherited(version=target),
            )
        )
        return self

    def finished(self):
        self.events.append(
            Event(
                kind=EventKind.RUN_FINISHED,
                **self.common,
                epoch=self.epoch,
                step=self.step,
                title="finished",
                outcome=RunOutcome.IMPROVED,
                evaluations=(summary(0.5, split=Split.TEST, version=0), summary(0.75, split=Split.TEST, version=1)),
                models=MODELS,
                cost=COST,
            )
        )
        return self


def answering(connection) -> Index:
    """Return an index of the rows in ``connection``, without a repository behind it."""
    index = object.__new__(Index)
    index.connection, index.on_disk = connection, False
    return index


def recorded(events) -> list[Recorded]:
    """Return ``stories`` as if they stood in git."""
    stands, current = [], 0
    for event in events:
        current = event.new_version or current
        stands.append(current)
    return [
        Recorded(
            event=event,
            commit=sha1(f"{event.run} {place}".encode(), usedforsecurity=False).hexdigest(),
            parents=(),
            time=START + timedelta(minutes=place),
            evidence="",
            tree="",
            branch="",
            at=stands[place] if event.at_version is None else event.at_version,
        )
        for place, event in enumerate(events)
    ]


def told(moves, run: str = "demo-20261121-aaaa") -> Story:
    """Return the story of ``moves``: a score for a candidate, or a word with a number."""
    story = Story(run)
    for word, score in moves:
        if word == "edit":
            story.edited()
            continue
        if story.scores[-1] is None and word != "revert":
            story.measured(score)
        if word == "step":
            story.proposed(score, **PAID[story.step % len(PAID)])
        elif word == "intervene":
            story.intervened(score)
        elif word == "skip":
            story.skipped()
        elif word == "slow":
            if story.events[-1].epoch > getattr(story, "slow_epoch", 0):
                story.slow_epoch = story.events[-1].epoch
                story.slow(score)
        else:
            story.reverted(int(score * (len(story.scores) - 1)))
    return story


scores = st.sampled_from([0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0])
words = st.sampled_from(["step", "step", "skip", "slow", "revert", "edit", "intervene"])
moves = st.lists(st.tuples(words, scores), max_size=14)
