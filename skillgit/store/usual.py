"""The quick way to read the events that most of a history consists of: their usual form, matched as a whole.

These are the candidates of steps, steps without one, and slow updates. What deviates from that form in any way is left
to ``codec``, and what is read here equals what is read there. It is read as plain values first: who needs rows of
hundred thousand events has no use for as many objects.
"""

from __future__ import annotations

import re
from math import isfinite
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import Accepted, Change, EditRecord, Models, PatchCounts, Rejected
from skillgit.domain.gate import Verdict
from skillgit.domain.policies import POLICIES
from skillgit.errors import DataError, TrailerError
from skillgit.store import message, values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillgit.store.message import Prose

ACCEPTED, REJECTED, SKIPPED = "accepted", "rejected", "skipped"
SLOW_PROPOSED, SLOW_MERGED = "slow-proposed", "slow-merged"
CANDIDATES = (ACCEPTED, REJECTED)


class Edit(NamedTuple):
    """An applied edit, as its trailer tells it."""

    op: str
    file: str
    support: int
    source: str
    anchor: str


class Scores(NamedTuple):
    """An evaluation, named as in :class:`~skillgit.domain.evaluation.EvaluationSummary`."""

    split: str
    item_set: str
    n: int
    scored: int
    hard: float
    soft: float
    seed: int
    unneeded: int
    spare: int


class Gate(NamedTuple):
    """A verdict, named as in :class:`~skillgit.domain.gate.Verdict`; items are counted."""

    decision: str
    policy: str
    metric: str
    score: float
    current: float
    best: float
    fixed: int
    broken: int
    p: float


class Paid(NamedTuple):
    """The models of an event, and what it cost."""

    models: Models
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    seconds: float
    parts: tuple[CostPart, ...]


class Facts(NamedTuple):
    """What an event tells, named as in the event; words are those of the trailers, and what its kind lacks is absent.

    Attributes:
        evidence: Id of the evidence tree; empty without evidence.
        prose: What stands above the trailers, not cleaned yet.
    """

    kind: str
    run: str
    skill: str
    epoch: int
    step: int
    version: int | None
    base: int | None
    edits: list[Edit]
    patch: PatchCounts | None
    scores: Scores | None
    gate: Gate | None
    paid: Paid | None
    evidence: str
    prose: Prose


def _one_of(words: Iterable[str]) -> str:
    return f"({'|'.join(map(re.escape, words))})"


# numbers are as long as ``trailers`` and ``values`` let them be
_COUNT, _NUMBER, _TOKEN = r"(-?\d{1,18})", r"(-?\d[0-9.e+-]*)", r"([A-Za-z0-9._:/+-]+)"
_OP, _SOURCE = _one_of(values.OPS), _one_of(values.SOURCES)
_EDIT = re.compile(
    rf"\nSkillgit-Edit: op={_OP} file={_TOKEN} support={_COUNT} source={_SOURCE}(?: anchor={_TOKEN})?(?=\n|$)", re.ASCII
)
_EVALUATION = (
    rf"split={_one_of(values.SPLITS)} set={_TOKEN} n={_COUNT} scored={_COUNT} hard={_NUMBER} soft={_NUMBER}"
    rf" seed={_COUNT}(?: stopped={values.EXACT} unneeded={_COUNT})?(?: spare={_COUNT})?"
)
_VERDICT = (
    rf"{_one_of(values.DECISIONS)} policy={_one_of(POLICIES)} metric={_one_of(values.METRICS)}"
    rf" score={_NUMBER} current={_NUMBER} best={_NUMBER} fixed={_COUNT} broken={_COUNT} p={_NUMBER}"
)
_AMOUNT = r"(\d{1,15})"
_COST = rf"calls={_AMOUNT} in={_AMOUNT} out={_AMOUNT} usd={_NUMBER} seconds={_NUMBER}"
_USUAL = re.compile(
    rf"Skillgit-Format: 1\nSkillgit-Event: {_one_of((ACCEPTED, REJECTED, SKIPPED, SLOW_PROPOSED, SLOW_MERGED))}"
    rf"\nSkillgit-Run: {_TOKEN}\nSkillgit-Skill: {_TOKEN}\nSkillgit-Epoch: {_COUNT}\nSkillgit-Step: {_COUNT}"
    rf"(?:\nSkillgit-Version: {_COUNT})?(?:\nSkillgit-Base: {_COUNT})?((?:\nSkillgit-Edit: .+)*)"
    rf"(?:\nSkillgit-Patch: (.+))?(?:\nSkillgit-Eval: {_EVALUATION}\nSkillgit-Gate: {_VERDICT})?"
    rf"(?:\nSkillgit-Models: (.+)\nSkillgit-Cost: {_COST}((?:\nSkillgit-Spent: .+)*))?"
    rf"(?:\nSkillgit-Evidence: ([0-9a-f]{{40}}))?",
    re.ASCII,
)
_FORMS = frozenset(
    {
        # kind, then whether it has: version, base, patch, evaluation and gate, models and cost
        (ACCEPTED, True, True, True, True, True),
        (REJECTED, False, True, True, True, True),
        (SKIPPED, False, False, True, False, True),
        (SLOW_PROPOSED, False, True, False, True, True),
        (SLOW_PROPOSED, False, True, False, False, True),
        (SLOW_MERGED, True, True, False, True, False),
    }
)


def read_facts(text: str) -> Facts | None:
    """Return what the commit message ``text`` tells; None if it is not an event in its usual form."""
    head, _, block = text.rstrip("\n").rpartition("\n\n")
    match = _USUAL.fullmatch(block)
    if match is None:
        return None
    told = match.groups()
    kind, run, skill, epoch, step, version, base, edits, patch = told[:9]
    scores, gate, paid = told[9:18], told[18:27], told[27:34]
    has = (kind, version is not None, base is not None, patch is not None, gate[0] is not None, paid[0] is not None)
    if has not in _FORMS or (edits and kind not in CANDIDATES):
        return None
    try:
        facts = Facts(
            # what a run repeats is kept once, which makes it quick to hand over to another process
            intern(kind),
            intern(run),
            intern(skill),
            int(epoch),
            int(step),
            None if version is None else int(version),
            None if base is None else int(base),
            _edits(edits) if edits else [],
            None if patch is None else values.read_patch(patch),
            None if gate[0] is None else _scores(scores),
            None if gate[0] is None else _gate(gate),
            None if paid[0] is None else _paid(paid),
            told[34] or "",
            message.read_head(head),
        )
    except (ValueError, DataError, TrailerError):
        # whoever reads it in the exact way says what is wrong
        return None
    return facts if "%" not in facts.prose.flips and _is_finite(facts) else None


def _is_finite(facts: Facts) -> bool:
    """Say whether all numbers of an event are numbers; a sum is none if one of its parts is none."""
    scores, gate, paid = facts.scores, facts.gate, facts.paid
    total = 0.0 if scores is None else scores.hard + scores.soft
    total += 0.0 if gate is None else gate.score + gate.current + gate.best + gate.p
    return isfinite(total if paid is None else total + paid.usd + paid.seconds)


def read_candidate(text: str) -> tuple[Accepted | Rejected, str] | None:
    """Return event and evidence of the commit message ``text``; None if it is not a candidate in its usual form."""
    facts = read_facts(text)
    # only candidates have all of these
    if facts is None or facts.patch is None or facts.scores is None or facts.gate is None or facts.paid is None:
        return None
    return _event(facts, facts.patch, _evaluation(facts.scores), _verdict(facts.gate), facts.paid), facts.evidence


def _edits(text: str) -> list[Edit]:
    found = _EDIT.findall(text)
    if len(found) != text.count("\n"):
        raise ValueError(text)
    return [
        Edit(intern(op), intern(file), int(support), intern(source), anchor)
        for op, file, support, source, anchor in found
    ]


def _scores(told: Sequence[str]) -> Scores:
    split, item_set, n, scored, hard, soft, seed, unneeded, spare = told
    return Scores(
        intern(split),
        intern(item_set),
        int(n),
        int(scored),
        float(hard),
        float(soft),
        int(seed),
        int(unneeded or 0),
        int(spare or 0),
    )


def _gate(told: Sequence[str]) -> Gate:
    decision, policy, metric, score, current, best, fixed, broken, p = told
    return Gate(
        intern(decision),
        intern(policy),
        intern(metric),
        float(score),
        float(current),
        float(best),
        int(fixed),
        int(broken),
        float(p),
    )


def _paid(told: Sequence[str]) -> Paid:
    models, calls, tokens_in, tokens_out, usd, seconds, spent = told
    parts = values.read_parts(line.partition(": ")[2] for line in spent.split("\n")[1:]) if spent else ()
    known = values.read_models(models)
    return Paid(known, int(calls), int(tokens_in), int(tokens_out), float(usd), float(seconds), parts)


def _event(
    facts: Facts, patch: PatchCounts, evaluation: EvaluationSummary, verdict: Verdict, paid: Paid
) -> Accepted | Rejected:
    kind: Any = Rejected if facts.version is None else Accepted
    made: Accepted | Rejected = kind(
        run=facts.run,
        skill=facts.skill,
        epoch=facts.epoch,
        title=facts.prose.title,
        why=facts.prose.why,
        step=facts.step,
        base=facts.base,
        edits=tuple(_edit(edit) for edit in facts.edits),
        changes=tuple(Change(sign=sign, text=text) for sign, text in facts.prose.changes),
        patch=patch,
        evaluation=evaluation,
        verdict=verdict,
        **message.read_flips(facts.prose.flips),
        models=paid.models,
        cost=_cost(paid),
        **({} if facts.version is None else {"version": facts.version}),
    )
    return made


def _edit(told: Edit) -> EditRecord:
    op, source = values.OPS[told.op], values.SOURCES[told.source]
    return EditRecord(op=op, file=told.file, support=told.support, source=source, anchor=told.anchor)


def _evaluation(told: Scores) -> EvaluationSummary:
    return EvaluationSummary(
        split=values.SPLITS[told.split],
        item_set=told.item_set,
        n=told.n,
        scored=told.scored,
        hard=told.hard,
        soft=told.soft,
        seed=told.seed,
        unneeded=told.unneeded,
        spare=told.spare,
    )


def _verdict(told: Gate) -> Verdict:
    return Verdict(
        decision=values.DECISIONS[told.decision],
        policy=told.policy,
        metric=values.METRICS[told.metric],
        score=told.score,
        current=told.current,
        best=told.best,
        fixed=told.fixed,
        broken=told.broken,
        p=told.p,
    )


def _cost(told: Paid) -> Cost:
    return Cost(
        calls=told.calls,
        tokens_in=told.tokens_in,
        tokens_out=told.tokens_out,
        usd=told.usd,
        seconds=told.seconds,
        parts=told.parts,
    )
