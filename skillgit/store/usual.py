"""The quick way to read the candidates of steps, which are most of a history: their usual form, matched as a whole.

What deviates from that form in any way is left to ``codec``, and what is read here equals what is read there. It is
read as plain values first: who needs rows of hundred thousand candidates has no use for as many events.
"""

from __future__ import annotations

import re
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import Accepted, Change, EditRecord, Models, PatchCounts, Rejected
from skillgit.domain.gate import Verdict
from skillgit.errors import DataError, TrailerError
from skillgit.store import message, values
from skillgit.store.trailers import last_paragraph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillgit.store.message import Prose


class Edit(NamedTuple):
    """An applied edit, as its trailer tells it."""

    op: str
    file: str
    support: int
    source: str
    anchor: str


class Facts(NamedTuple):
    """What a candidate tells, named as in its event and its parts; words are those of the trailers.

    Attributes:
        version: The version that an accepted candidate became; absent for a rejected one.
        items: Fixed and broken items, counted.
        evidence: Id of the evidence tree; empty without evidence.
        prose: What stands above the trailers, not cleaned yet.
    """

    kind: str
    run: str
    skill: str
    epoch: int
    step: int
    version: int | None
    base: int
    edits: list[Edit]
    patch: PatchCounts
    split: str
    item_set: str
    n: int
    scored: int
    hard: float
    soft: float
    seed: int
    unneeded: int
    spare: int
    decision: str
    policy: str
    metric: str
    score: float
    current: float
    best: float
    fixed: int
    broken: int
    p: float
    models: Models
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    seconds: float
    parts: tuple[CostPart, ...]
    evidence: str
    prose: Prose


def _one_of(words: Iterable[str]) -> str:
    return f"({'|'.join(map(re.escape, words))})"


# eighteen digits fit into what a database calls an integer
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
    rf"{_one_of(values.DECISIONS)} policy={_one_of(values.POLICIES)} metric={_one_of(values.METRICS)}"
    rf" score={_NUMBER} current={_NUMBER} best={_NUMBER} fixed={_COUNT} broken={_COUNT} p={_NUMBER}"
)
_CANDIDATE = re.compile(
    rf"Skillgit-Format: 1\nSkillgit-Event: (accepted|rejected)\nSkillgit-Run: {_TOKEN}\nSkillgit-Skill: {_TOKEN}"
    rf"\nSkillgit-Epoch: {_COUNT}\nSkillgit-Step: {_COUNT}(?:\nSkillgit-Version: {_COUNT})?\nSkillgit-Base: {_COUNT}"
    rf"((?:\nSkillgit-Edit: .+)*)\nSkillgit-Patch: (.+)\nSkillgit-Eval: {_EVALUATION}\nSkillgit-Gate: {_VERDICT}"
    rf"\nSkillgit-Models: (.+)\nSkillgit-Cost: calls={_COUNT} in={_COUNT} out={_COUNT} usd={_NUMBER} seconds={_NUMBER}"
    rf"((?:\nSkillgit-Spent: .+)*)(?:\nSkillgit-Evidence: {_TOKEN})?",
    re.ASCII,
)


def read_facts(text: str) -> Facts | None:
    """Return what the commit message ``text`` tells; None if it is not a candidate in its usual form."""
    match = _CANDIDATE.fullmatch(last_paragraph(text))
    if match is None:
        return None
    try:
        prose = message.read_prose(text)
        facts = Facts._make([*[read(told) for read, told in zip(_READERS, match.groups(), strict=True)], prose])
    except (ValueError, DataError, TrailerError):
        # whoever reads it in the exact way says what is wrong
        return None
    has_its_version = (facts.kind == "accepted") == (facts.version is not None)
    return facts if has_its_version and "%" not in prose.flips else None


def read_candidate(text: str) -> tuple[Accepted | Rejected, str] | None:
    """Return event and evidence of the commit message ``text``; None if it is not a candidate in its usual form."""
    facts = read_facts(text)
    return None if facts is None else (_event(facts), facts.evidence)


def _edits(text: str) -> list[Edit]:
    found = _EDIT.findall(text)
    if len(found) != text.count("\n"):
        raise ValueError(text)
    return [
        Edit(intern(op), intern(file), int(support), intern(source), anchor)
        for op, file, support, source, anchor in found
    ]


def _parts(text: str) -> tuple[CostPart, ...]:
    return values.read_parts(line.partition(": ")[2] for line in text.split("\n")[1:]) if text else ()


def _version(text: str | None) -> int | None:
    return None if text is None else int(text)


def _seldom(text: str | None) -> int:
    return int(text or 0)


def _text(text: str | None) -> str:
    return text or ""


# what a run repeats is kept once, which makes it quick to hand over to another process
_READERS: tuple[Callable[[Any], Any], ...] = (
    *(intern, intern, intern, int, int, _version, int, _edits, values.read_patch),
    *(intern, intern, int, int, float, float, int, _seldom, _seldom),
    *(intern, intern, intern, float, float, float, int, int, float),
    *(values.read_models, int, int, int, float, float, _parts, _text),
)
"""What makes values of the groups of ``_CANDIDATE``, in the order of ``Facts``."""


def _event(facts: Facts) -> Accepted | Rejected:
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
        patch=facts.patch,
        evaluation=_evaluation(facts),
        verdict=_verdict(facts),
        **message.read_flips(facts.prose.flips),
        models=facts.models,
        cost=_cost(facts),
        **({} if facts.version is None else {"version": facts.version}),
    )
    return made


def _edit(told: Edit) -> EditRecord:
    op, source = values.OPS[told.op], values.SOURCES[told.source]
    return EditRecord(op=op, file=told.file, support=told.support, source=source, anchor=told.anchor)


def _evaluation(facts: Facts) -> EvaluationSummary:
    return EvaluationSummary(
        split=values.SPLITS[facts.split],
        item_set=facts.item_set,
        n=facts.n,
        scored=facts.scored,
        hard=facts.hard,
        soft=facts.soft,
        seed=facts.seed,
        unneeded=facts.unneeded,
        spare=facts.spare,
    )


def _verdict(facts: Facts) -> Verdict:
    return Verdict(
        decision=values.DECISIONS[facts.decision],
        policy=values.POLICIES[facts.policy],
        metric=values.METRICS[facts.metric],
        score=facts.score,
        current=facts.current,
        best=facts.best,
        fixed=facts.fixed,
        broken=facts.broken,
        p=facts.p,
    )


def _cost(facts: Facts) -> Cost:
    return Cost(
        calls=facts.calls,
        tokens_in=facts.tokens_in,
        tokens_out=facts.tokens_out,
        usd=facts.usd,
        seconds=facts.seconds,
        parts=facts.parts,
    )
