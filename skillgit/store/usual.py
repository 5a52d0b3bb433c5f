"""The quick way to read the candidates of steps, which are most of a history: their usual form, matched as a whole.

What deviates from that form in any way is left to ``codec``, and what is read here equals what is read there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypedDict

from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import Accepted, Change, EditRecord, Models, PatchCounts, Rejected
from skillgit.domain.gate import Verdict
from skillgit.errors import DataError, TrailerError
from skillgit.store import values
from skillgit.store.message import read_body
from skillgit.store.trailers import last_paragraph

if TYPE_CHECKING:
    from skillgit.store.message import Body


class _Facts(TypedDict):
    """What accepted and rejected candidates tell alike."""

    run: str
    skill: str
    epoch: int
    title: str
    why: str
    step: int
    base: int
    edits: tuple[EditRecord, ...]
    changes: tuple[Change, ...]
    patch: PatchCounts
    evaluation: EvaluationSummary
    verdict: Verdict
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    models: Models
    cost: Cost


_COUNT, _NUMBER, _TOKEN = r"(-?\d+)", r"(-?\d[0-9.e+-]*)", r"([A-Za-z0-9._:/+-]+)"
_EDIT = re.compile(
    rf"Skillgit-Edit: op={_TOKEN} file={_TOKEN} support={_COUNT} source={_TOKEN}(?: anchor={_TOKEN})?", re.ASCII
)
_EVALUATION = (
    rf"split={_TOKEN} set={_TOKEN} n={_COUNT} scored={_COUNT} hard={_NUMBER} soft={_NUMBER} seed={_COUNT}"
    rf"(?: stopped={values.EXACT} unneeded={_COUNT})?(?: spare={_COUNT})?"
)
_VERDICT = (
    rf"{_TOKEN} policy={_TOKEN} metric={_TOKEN} score={_NUMBER} current={_NUMBER} best={_NUMBER}"
    rf" fixed={_COUNT} broken={_COUNT} p={_NUMBER}"
)
_CANDIDATE = re.compile(
    rf"Skillgit-Format: 1\nSkillgit-Event: (accepted|rejected)\nSkillgit-Run: {_TOKEN}\nSkillgit-Skill: {_TOKEN}"
    rf"\nSkillgit-Epoch: {_COUNT}\nSkillgit-Step: {_COUNT}(?:\nSkillgit-Version: {_COUNT})?\nSkillgit-Base: {_COUNT}"
    rf"((?:\nSkillgit-Edit: .+)*)\nSkillgit-Patch: (.+)\nSkillgit-Eval: {_EVALUATION}\nSkillgit-Gate: {_VERDICT}"
    rf"\nSkillgit-Models: (.+)\nSkillgit-Cost: calls={_COUNT} in={_COUNT} out={_COUNT} usd={_NUMBER} seconds={_NUMBER}"
    rf"((?:\nSkillgit-Spent: .+)*)(?:\nSkillgit-Evidence: (?P<evidence>[A-Za-z0-9._:/+-]+))?",
    re.ASCII,
)


def read_candidate(text: str) -> tuple[Accepted | Rejected, str] | None:
    """Return event and evidence of the commit message ``text``; None if it is not a candidate in its usual form."""
    match = _CANDIDATE.fullmatch(last_paragraph(text))
    if match is None:
        return None
    try:
        return _event(match.groups(), read_body(text)), match["evidence"] or ""
    except (KeyError, ValueError, DataError, TrailerError):
        # whoever reads it in the exact way says what is wrong
        return None


def _event(told: tuple[str, ...], body: Body) -> Accepted | Rejected:
    kind, run, skill, epoch, step, version, base, edits, patch = told[:9]
    facts = _Facts(
        run=run,
        skill=skill,
        epoch=int(epoch),
        title=body.title,
        why=body.why,
        step=int(step),
        base=int(base),
        edits=_edits(edits),
        changes=body.changes,
        patch=values.read_patch(patch),
        evaluation=_evaluation(told[9:18]),
        verdict=_verdict(told[18:27]),
        fixed=body.fixed,
        broken=body.broken,
        models=values.read_models(told[27]),
        cost=_cost(told[28:34]),
    )
    return Rejected(**facts) if kind == "rejected" else Accepted(**facts, version=int(version or ""))


def _edits(text: str) -> tuple[EditRecord, ...]:
    return tuple(
        EditRecord(
            op=values.OPS[op], file=file, support=int(support), source=values.SOURCES[source], anchor=anchor or ""
        )
        for op, file, support, source, anchor in map(_edit, text.split("\n")[1:])
    )


def _edit(line: str) -> tuple[str, ...]:
    match = _EDIT.fullmatch(line)
    if match is None:
        raise ValueError(line)
    return match.groups()


def _evaluation(told: tuple[str, ...]) -> EvaluationSummary:
    split, item_set, n, scored, hard, soft, seed, unneeded, spare = told
    return EvaluationSummary(
        split=values.SPLITS[split],
        item_set=item_set,
        n=int(n),
        scored=int(scored),
        hard=float(hard),
        soft=float(soft),
        seed=int(seed),
        unneeded=int(unneeded or 0),
        spare=int(spare or 0),
    )


def _verdict(told: tuple[str, ...]) -> Verdict:
    decision, policy, metric, score, current, best, fixed, broken, p = told
    return Verdict(
        decision=values.DECISIONS[decision],
        policy=values.POLICIES[policy],
        metric=values.METRICS[metric],
        score=float(score),
        current=float(current),
        best=float(best),
        fixed=int(fixed),
        broken=int(broken),
        p=float(p),
    )


def _cost(told: tuple[str, ...]) -> Cost:
    calls, tokens_in, tokens_out, usd, seconds, spent = told
    return Cost(
        calls=int(calls),
        tokens_in=int(tokens_in),
        tokens_out=int(tokens_out),
        usd=float(usd),
        seconds=float(seconds),
        parts=values.read_parts(line.partition(": ")[2] for line in spent.split("\n")[1:]),
    )
