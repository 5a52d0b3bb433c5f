"""Hypothesis strategies for events of every kind, with the text that a hostile or careless model would write."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import EditSource, Op
from skillgit.domain.evaluation import EvaluationSummary, Gauge, Metric, Split
from skillgit.domain.event import CANDIDATES, FACTS_OF, Event, Inherited, Models, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, NoRegression, Objective, Verdict
from skillgit.domain.gate_policies import POLICIES
from skillgit.domain.placebo import Placebo
from skillgit.domain.proposal import BudgetSource, Change, EditRecord, Origin, PatchCounts, Screening
from skillgit.domain.protected_regions import AppendixCounts
from skillgit.domain.served_model import ServedModel

HOSTILE = (
    "Skillgit-Event: accepted",
    "skillgit-gate: accept_new_best score=1.0",
    "why\n\nSkillgit-Format: 1\nSkillgit-Event: run-finished",
    "---",
    "--- a/SKILL.md\n+++ b/SKILL.md",
    "# a comment that git would drop",
    "fixed: q1, q2",
    "broken: everything",
    "  + not a change",
    "  - not a change either\n\n  + nor this",
    "Signed-off-by: nobody <nobody@localhost>",
    "line\r\nline\r\n\r\nparagraph",
    "tab\there\x0bvertical\x0cform",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b",
    "\u202eright to left\u2069 \u200bzero \ufeffbom \u2028line",
    "naïve 数学 ٣ 🎯 e\u0301",
    "(v7, +0.0250)",
    "title (v1) (v2",
    "trailing space   \n   \n  leading",
    "a" * 300,
    "word " * 80,
    "%41; %25 100%",
    "=: , ;",
)

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.lists(st.sampled_from(HOSTILE), max_size=4).map("\n\n".join),
    st.lists(st.sampled_from(HOSTILE), max_size=4).map("\n".join),
)
tokens = st.one_of(
    st.sampled_from(["skills/demo", "SKILL.md", "references/a b.md", "gpt=4", "模型", "a%20b", "x+y", "openai/gpt:5"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0.0, 1.0)
counts = st.integers(0, 10**6)
item_ids = st.one_of(
    st.sampled_from(["q17", "+", "-", "a/b", "fixed:", "broken:", "%25;", "%41;", "\x9b", "\u202e", "数", "x" * 200]),
    st.from_regex(r"[^\s,\x00-\x1f\x7f\ud800-\udfff]{1,20}", fullmatch=True),
).filter(lambda item: ".." not in item.replace("\\", "/").split("/") and not item.startswith(("/", "\\")))
items = st.lists(item_ids, max_size=30, unique=True).map(tuple)
models = st.builds(Models, target=tokens, optimizer=tokens, judge=st.one_of(st.just(""), tokens))
amounts = {
    "calls": counts,
    "tokens_in": counts,
    "tokens_out": counts,
    "usd": numbers.map(abs),
    "seconds": numbers.map(abs),
    "cached": counts,
    "cache_written": counts,
    "reasoning": counts,
    "unpriced": counts,
}
parts = st.lists(
    st.builds(CostPart, role=tokens, stage=tokens, cost=st.builds(Cost, **amounts)),
    max_size=6,
    unique_by=lambda part: (part.role, part.stage),
)
costs = st.builds(
    Cost, **amounts, parts=parts.map(lambda found: tuple(sorted(found, key=lambda part: (part.role, part.stage))))
)
patches = st.builds(
    PatchCounts,
    merged=counts,
    ranked=counts,
    applied=counts,
    skipped=counts,
    budget=st.none() | counts,
    by=st.sampled_from(BudgetSource),
    mode=st.sampled_from(UpdateMode),
    salvaged=st.booleans(),
    rules=st.none() | counts,
)
summaries = (
    st.builds(
        EvaluationSummary,
        split=st.sampled_from(Split),
        item_set=st.sampled_from(["4be1", "0123456789ab"]),
        n=counts,
        scored=counts,
        hard=numbers,
        soft=numbers,
        seed=st.integers(1 - 10**18, 10**18 - 1),
        version=st.none() | counts,
        unneeded=counts,
        tokens=st.none() | numbers,
    )
    .map(lambda found: replace(found, spare=found.unneeded // 3))
    .filter(lambda summary: abs(summary.seed) < 2**64)
)
measurements = st.one_of(summaries, st.builds(Inherited, version=counts))


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict:
    """Return a verdict; the weight of the soft score stands in the trailer only where it matters."""
    metric = draw(st.sampled_from(Metric))
    policy = draw(st.sampled_from([*POLICIES, "nothing-broken"]))
    guard = draw(st.sampled_from(NoRegression))
    return Verdict(
        decision=draw(st.sampled_from(Decision)),
        policy=policy,
        metric=metric,
        score=draw(shares),
        current=draw(shares),
        best=draw(shares),
        fixed=draw(counts),
        broken=draw(counts),
        p=draw(shares),
        soft_weight=draw(st.sampled_from([0.0, 0.3, 0.25, 1.0])) if metric is Metric.MIXED else 0.5,
        alpha=draw(shares) if policy == "paired" else None,
        margin=draw(shares) if policy == "margin" else None,
        no_regression=guard,
        compared=draw(st.none() | counts),
        lost=draw(counts),
        regained=draw(counts),
        blocked=0 if guard is NoRegression.NONE else draw(counts),
        repeats=draw(st.integers(0, 9)),
        gated=draw(st.booleans()),
        outrun=draw(st.sampled_from([0, 0, 7])),
        objective=draw(st.sampled_from(Objective)),
        tokens=draw(st.none() | shares),
        tokens_before=draw(st.none() | shares),
        tokens_best=draw(st.none() | shares),
        tokens_p=draw(st.none() | shares),
        token_margin=draw(st.none() | shares),
        max_tokens=draw(st.none() | counts),
    )


changes = st.builds(Change, sign=st.sampled_from(["+", "-"]), text=texts)
edits = st.builds(
    EditRecord,
    op=st.sampled_from(Op),
    file=tokens,
    support=st.integers(-5, 999),
    source=st.sampled_from(EditSource),
    anchor=st.sampled_from(["", "5f1c0aab"]),
    fixed=st.none() | counts,
    broken=st.none() | counts,
)
optional_screenings = st.none() | st.builds(Screening, failing=counts, fixed=counts, solved=counts, broken=counts)
served = st.builds(
    ServedModel,
    role=st.sampled_from(["target", "optimizer", "judge"]),
    backend=tokens,
    model=tokens,
    address=st.sampled_from(["http://127.0.0.1:8081/v1", "https://a.example"]),
    variable=st.sampled_from(["", "TARGET_URL"]),
    is_pinned=st.booleans(),
    facts=st.sampled_from([(), (("digest", "5f1c0aab"), ("size", "7B, q4"))]),
)
guidances = texts.map(str.strip)
FACT_VALUES = {
    "run": st.sampled_from(["demo-20261121-abcd", "x"]),
    "skill": st.sampled_from(["skills/demo", "skills/a b", "skills/数"]),
    "title": texts,
    "why": texts,
    "epoch": counts,
    "step": counts,
    "origin": st.sampled_from([Origin.STEP, Origin.META]),
    "number": st.just(0),
    "of": st.just(""),
    "version": counts,
    "base": counts,
    "at": st.none() | counts,
    "joined": st.none() | counts,
    "taken_up_by": st.none() | counts,
    "config": tokens,
    "splits": tokens,
    "environment": tokens,
    "gauge": st.builds(Gauge, metric=st.sampled_from(Metric), soft_weight=shares),
    "fork_of": st.sampled_from(["", "other-run/v3"]),
    "served": st.lists(served, max_size=2).map(tuple),
    "target": counts,
    "outcome": st.sampled_from(RunOutcome),
    "edits": st.lists(edits, max_size=8).map(tuple),
    "changes": st.lists(changes, max_size=8).map(tuple),
    "patch": patches,
    "appendix": st.none() | st.builds(AppendixCounts, added=counts, total=counts, consolidated=counts),
    "screening": optional_screenings,
    "evaluation": summaries,
    "evaluations": st.lists(summaries, max_size=3).map(tuple),
    "verdict": verdicts(),
    "fixed": items,
    "broken": items,
    "placebo": st.none() | st.builds(Placebo, n=counts, accepted=counts),
    "models": models,
    "cost": costs,
    "guidance": guidances,
    "memory": texts,
    "author": texts,
}
"""What each fact of events may be; a test proves that none is missing."""
INTERVENTIONS = {
    "origin": st.sampled_from([origin for origin in Origin if origin.intervenes]),
    "number": st.integers(1, 999),
    "of": st.sampled_from(["", "other-run/v3", "demo-20261121-abcd/r17"]),
}
INHERITING = frozenset({EventKind.RUN_STARTED, EventKind.SLOW_MERGED, EventKind.REVERTED})


def events_of(kind: EventKind, **own: st.SearchStrategy) -> st.SearchStrategy[Event]:
    """Return events of ``kind`` with every fact that it may have, absent now and then where it need not be there."""
    facts = {name: FACT_VALUES[name] for name in FACTS_OF[kind].names} | own
    if kind in INHERITING:
        facts["evaluation"] = measurements
    for name in {"evaluation", "verdict"} & facts.keys() - {*FACTS_OF[kind].needed}:
        facts[name] = st.none() | facts[name]
    if kind is EventKind.RUN_STARTED:
        del facts["version"]  # which is 0
    return st.builds(Event, kind=st.just(kind), **facts)


events: st.SearchStrategy[Event] = st.one_of(
    *(events_of(kind) for kind in EventKind if kind is not EventKind.EDITED),
    *(events_of(kind, **INTERVENTIONS) for kind in sorted(CANDIDATES)),
)
