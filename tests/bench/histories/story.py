"""A run of any length that keeps all invariants: what happens in it, drawn from a seed.

Of its steps 5 % are skipped and 30 % rejected; every tenth step ends an epoch with a slow update, one of four refused.
The skill has about sixty lines and changes by one to three edits a step. The gate compares soft scores, which can rise
some thousand times. What providers and configurations add to trailers is that of ``providers``, run by run. Evidence
stands behind the start of a run and behind every tenth candidate: what the index reads of it (``selection.json``), the
patch that fsck applies again, and at the start the plan.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

from bench.histories.providers import conduct_of

from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.domain.evaluation import Evaluation, Scored, Split, item_set_digest
from skillgit.domain.event import Event, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, decide
from skillgit.domain.ids import short_digest
from skillgit.domain.placebo import Placebo
from skillgit.domain.proposal import BudgetSource, Change, EditRecord, Origin
from skillgit.domain.protected_regions import with_slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.domain.gate_decision import GateRule, Verdict

PATH = "skills/demo"
EPOCH = 10
"""Steps in an epoch."""
PICKED = 3
"""After every so many epochs a person has a candidate of another run judged."""
PROOF = 10
"""Of so many candidates one has evidence."""
SKIPPED, REJECTED, REFUSED = 0.05, 0.30, 0.25
"""Shares of steps without a candidate, of steps whose candidate is rejected, of slow updates that are refused."""
ITEMS = tuple(f"q{number:02d}" for number in range(1, 21))
SPLITS = {
    "train": [{"id": f"t{number}", "digest": "00"} for number in range(40)],
    "selection": [{"id": item, "digest": "00"} for item in ITEMS],
    "test": [],
}
ENVIRONMENT = {"digest": "e4f", "name": "toy", "version": "1"}
SETS = {name: item_set_digest({row["id"]: row["digest"] for row in rows}) for name, rows in SPLITS.items()}
_FINEST, _GAIN = 100_000, 400
_ROOM = 1_000_000
"""What all items together can gain at least."""
_LEFT = 3
"""Items that a stopped evaluation leaves out."""
_LINES = 60
_TEXT = (
    "answer question unit number date name title source text table row column year month first last give write "
    "keep read check quote round short exact full plain single known asked given before after every never "
    "always only once again when where which whole part sum mean count list order sign point comma word line "
    "page field value range limit "
)
_WORDS = _TEXT.split()
_HEAD = "---\nname: demo\ndescription: Answers questions about texts and tables.\n---\n# Demo\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One event with what its commit holds; without a skill the tree stays, or is made from the event."""

    event: Event
    skill: Skill | None = None
    evidence: Mapping[str, bytes] = field(default_factory=dict)


def seed_skill() -> Skill:
    """Return the skill that every run starts from."""
    return Skill("demo", {DOCUMENT: _document(Random(0)).encode()})  # noqa: S311 - the same seed every time


def run_story(run: str, seed: int, gain: int = _GAIN) -> Iterator[Chapter]:
    """Yield the events of ``run`` without an end; after some thousand versions its score can rise no more.

    With less than the usual ``gain`` it rises more often.
    """
    return _Teller(run, seed, gain).chapters()


def finished_story(run: str, events: int, seed: int) -> Iterator[Chapter]:
    """Yield ``events`` events of ``run``, the last of them its end."""
    teller = _Teller(run, seed, gain_of(events))
    yield from islice(teller.chapters(), events - 1)
    yield Chapter(event=teller.finished())


def gain_of(events: int) -> int:
    """Return the usual gain of a better candidate, or as much as ``events`` of them leave room for."""
    return min(_GAIN, max(1, _ROOM // events))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What a candidate scores."""

    values: dict[str, int]
    evaluation: Evaluation
    verdict: Verdict
    fixed: tuple[str, ...]
    broken: tuple[str, ...]

    def told(self) -> dict[str, object]:
        return {
            "evaluation": self.evaluation.summary(),
            "verdict": self.verdict,
            "fixed": self.fixed,
            "broken": self.broken,
        }


class _Teller:
    """What a trainer knows while it trains."""

    def __init__(self, run: str, seed: int, gain: int) -> None:
        self.run, self.random, self.gain = run, Random(seed), gain  # noqa: S311 - the same story every time
        self.conduct = conduct_of(seed)
        self.rule = self.conduct.rule
        self.skill = seed_skill()
        self.values = {item: self.random.randrange(_FINEST * 3 // 10, _FINEST // 2) for item in ITEMS}
        self.current = _evaluation(self.values)
        self.step = self.version = self.epoch = self.picked = 0
        self.best = self.current.summary().score(self.rule.metric, self.rule.soft_weight)

    def chapters(self) -> Iterator[Chapter]:
        yield self._started()
        while True:
            self.epoch += 1
            for _ in range(EPOCH):
                self.step += 1
                yield self._step()
            if self.epoch % PICKED == 0:
                yield self._picked()
            yield from self._slow()

    def _common(self, title: str) -> dict[str, object]:
        return {"run": self.run, "skill": PATH, "epoch": self.epoch, "title": title}

    def _started(self) -> Chapter:
        event = Event(
            kind=EventKind.RUN_STARTED,
            **self._common("train demo"),
            config="c0ffee",
            splits=short_digest(SETS),
            environment="e4f",
            models=self.conduct.models,
            evaluation=self.current.summary(),
            cost=self.conduct.cost("start", self.random),
        )
        evidence = _plan(self.rule) | {"selection.json": _rows(self.current)}
        return Chapter(event=event, skill=self.skill, evidence=evidence)

    def _step(self) -> Chapter:
        drawn = self.random.random()
        if drawn < SKIPPED:
            common = self._common("no usable patch")
            event = Event(
                kind=EventKind.SKIPPED, **common, step=self.step, patch=self.conduct.patch(0, 2), **self._paid("step")
            )
            return Chapter(event=event)
        return self._candidate(better=drawn >= SKIPPED + REJECTED, proven=self.step % PROOF == 0)

    def _picked(self) -> Chapter:
        """Return a candidate that a person took from another run."""
        self.picked += 1
        source = {"origin": Origin.CHERRY_PICK, "number": self.picked, "of": f"other-run/v{self.picked}"}
        return self._candidate(better=self.picked % 2 == 1, proven=False, **source)

    def _candidate(self, *, better: bool, proven: bool, **origin: object) -> Chapter:
        better = better and self._can_rise()
        edits = self._edits()
        skill = _edited(self.skill, edits)
        trial = self._trial(better=better)
        patch = self.conduct.patch(len(edits), 0)
        if origin:
            patch = replace(patch, budget=None, by=BudgetSource.NONE, mode=UpdateMode.PATCH)
        facts = {
            **self._common(self._sentence(6)),
            "why": f"{self._sentence(14)}. {self._sentence(12)}.",
            "step": self.step,
            "base": self.version,
            "edits": _records(edits, trial),
            "changes": tuple(_changes(edits)),
            # evidence of a rewrite and of an appendix holds more than this one does
            "patch": replace(patch, mode=UpdateMode.PATCH) if proven else patch,
            "appendix": None if proven else self.conduct.appendix(self.random),
            **origin,
            **trial.told(),
            **self._paid("step"),
        }
        evidence = {}
        if proven:
            evidence = {
                "selection.json": _rows(trial.evaluation),
                "patch.json": _patch(edits),
                "rollout.json": b"[]\n",
                **({"repeats.json": b"[]\n"} if trial.verdict.repeats else {}),
            }
        if not better:
            return Chapter(event=Event(kind=EventKind.REJECTED, **facts), skill=skill, evidence=evidence)
        self._go_on(skill, trial)
        return Chapter(
            event=Event(kind=EventKind.ACCEPTED, **facts, version=self.version), skill=skill, evidence=evidence
        )

    def _slow(self) -> Iterator[Chapter]:
        accepted = self.random.random() >= REFUSED and self._can_rise()
        trial, base = self._trial(better=accepted), self.version
        guidance = "\n".join(f"{self._sentence(10)}." for _ in range(3))
        yield Chapter(
            event=Event(
                kind=EventKind.SLOW_PROPOSED,
                **self._common(f"guidance of epoch {self.epoch}"),
                step=self.step,
                base=base,
                guidance=guidance,
                memory=f"Epoch {self.epoch}: {self._sentence(16)}.",
                **trial.told(),
                **self._paid("slow"),
            )
        )
        if accepted:
            merged = self.skill.with_text(DOCUMENT, with_slow_guidance(self.skill.document, guidance))
            self._go_on(merged, trial)
            event = Event(
                kind=EventKind.SLOW_MERGED,
                **self._common(f"merge guidance of epoch {self.epoch}"),
                step=self.step,
                version=self.version,
                base=base,
                evaluation=trial.evaluation.summary(),
                verdict=trial.verdict,
            )
            yield Chapter(event=event, skill=merged)

    def finished(self) -> Event:
        tests = tuple(_evaluation(self.values, Split.TEST).summary(version) for version in {0, self.version})
        return Event(
            kind=EventKind.RUN_FINISHED,
            **self._common("improved"),
            step=self.step,
            outcome=RunOutcome.IMPROVED,
            evaluations=tests,
            placebo=Placebo(n=4, accepted=1) if self.conduct.repeats else None,
            **self._paid("end"),
        )

    def _go_on(self, skill: Skill, trial: _Trial) -> None:
        self.skill, self.values, self.current = skill, trial.values, trial.evaluation
        self.version += 1
        self.best = max(self.best, trial.verdict.score)

    def _can_rise(self) -> bool:
        """Say whether the worst item can gain once more, so that no score ever exceeds 1."""
        return min(self.values.values()) + self.gain < _FINEST

    def _trial(self, *, better: bool) -> _Trial:
        """Draw what a candidate scores: the worst item gains, and another one loses more if it is to be refused."""
        worst, *others = sorted(ITEMS, key=self.values.__getitem__)
        values = dict(self.values)
        values[worst] = min(values[worst] + self.gain, _FINEST - 1)
        broken = []
        if not better:
            broken = self.random.sample(others, 8 if self.conduct.stops else 1)
            values |= dict.fromkeys(broken, 0)
        measured = _evaluation(values)
        verdict = self._decided(measured)
        if self.conduct.stops and not better:
            left = tuple(item for item in others if item not in broken)[:_LEFT]
            needed = {item: outcome for item, outcome in measured.outcomes.items() if item not in left}
            stopped = replace(measured, outcomes=needed, unneeded=left, spare=1)
            if self._decided(stopped).decision is Decision.REJECT:
                measured, verdict = stopped, self._decided(stopped)
        fell = tuple(item for item in ITEMS if item in broken)
        return _Trial(values=values, evaluation=measured, verdict=verdict, fixed=(worst,), broken=fell)

    def _decided(self, measured: Evaluation) -> Verdict:
        return decide(self.rule, measured, self.current, self.best, repeats=self.conduct.repeats)

    def _edits(self) -> tuple[Edit, ...]:
        lines = [line for line in self.skill.document.split("\n") if line.startswith("- ")]
        found = []
        for anchor in self.random.sample(lines, self.random.randint(1, 3)):
            op = Op.DELETE if len(lines) > _LINES else self.random.choice((Op.REPLACE, Op.REPLACE, Op.INSERT_AFTER))
            content = "" if op is Op.DELETE else f"- {self._sentence(9)}."
            source = self.random.choice((EditSource.FAILURE, EditSource.FAILURE, EditSource.SUCCESS))
            found.append(Edit(op=op, anchor=anchor, content=content, support=self.random.randint(1, 6), source=source))
        return tuple(found)

    def _sentence(self, words: int) -> str:
        return f"{' '.join(self.random.choices(_WORDS, k=words))} {self.random.randrange(9999)}"

    def _paid(self, occasion: str) -> dict[str, object]:
        return {"models": self.conduct.models, "cost": self.conduct.cost(occasion, self.random)}


def _document(random: Random) -> str:
    lines = [f"- {' '.join(random.choices(_WORDS, k=9))} {number}." for number in range(_LINES)]
    return _HEAD + "\n".join(lines) + "\n"


def _evaluation(values: Mapping[str, int], split: Split = Split.SELECTION) -> Evaluation:
    outcomes = {item: Scored(float(value == _FINEST), value / _FINEST) for item, value in values.items()}
    return Evaluation(split=split, item_set=SETS[split.value], outcomes=outcomes, seed=42)


def _edited(skill: Skill, edits: tuple[Edit, ...]) -> Skill:
    """Return what ``domain.edit.apply`` makes of edits of whole bullets, without its search for places."""
    text = skill.document
    for edit in edits:
        line = f"{edit.anchor}\n"
        after = line if edit.op is Op.INSERT_AFTER else ""
        text = text.replace(line, after + (f"{edit.content}\n" if edit.content else ""), 1)
    return Skill(skill.name, {DOCUMENT: text.encode()})


def _records(edits: tuple[Edit, ...], trial: _Trial) -> tuple[EditRecord, ...]:
    """Return what trailers say of edits; one that was measured alone bears what it fixed and broke."""
    if len(edits) > 1:
        return tuple(map(EditRecord.of, edits))
    return (replace(EditRecord.of(edits[0]), fixed=trial.verdict.fixed, broken=trial.verdict.broken),)


def _changes(edits: tuple[Edit, ...]) -> Iterator[Change]:
    for edit in edits:
        if edit.op is not Op.INSERT_AFTER:
            yield Change(sign="-", text=edit.anchor)
        if edit.content:
            yield Change(sign="+", text=edit.content)


def _rows(measured: Evaluation) -> bytes:
    rows = [
        {"id": item, "task_type": "default", "hard": outcome.hard, "soft": outcome.soft, "answer": "", "feedback": ""}
        for item, outcome in measured.scored.items()
    ]
    return json.dumps(rows).encode()


def _patch(edits: tuple[Edit, ...]) -> bytes:
    rows = [
        {
            "op": edit.op.value,
            "file": edit.file,
            "anchor": edit.anchor,
            "content": edit.content,
            "support": edit.support,
            "source": edit.source.value,
            "status": "applied",
            "detail": "",
        }
        for edit in edits
    ]
    return json.dumps({"title": "", "reasoning": "", "edits": rows}).encode()


def _plan(rule: GateRule) -> dict[str, bytes]:
    gate = {"gate_metric": rule.metric.value, "gate_mixed_weight": rule.soft_weight}
    config = {"train": {"num_epochs": 100, "batch_size": 4}, "evaluation": gate}
    files = {"config.json": config, "splits.json": SPLITS, "environment.json": ENVIRONMENT}
    return {name: json.dumps(value).encode() for name, value in files.items()}
