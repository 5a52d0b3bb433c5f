"""A small invented history, as the use cases would return it: the one on the screens of the design."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from skillgit.app.history.diff.items import ItemChange
from skillgit.app.history.log import Log
from skillgit.app.history.run_list import RunListing
from skillgit.app.history.show import Shown
from skillgit.app.history.status import Status, Unfinished
from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.edit import EditSource, LeftOut, Op
from skillgit.domain.evaluation import EvaluationSummary, Metric, Split
from skillgit.domain.event import Event, Models, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.domain.proposal import Change, EditRecord, PatchCounts
from skillgit.index.rows import LogRow, RunRow

NOW = datetime(2026, 11, 21, 17, 10, tzinfo=UTC)
RUN = "searchqa-20261121-7k2m"
SKILL = "skills/searchqa"
MODELS = Models(target="offline/target", optimizer="offline/optimizer")
COST = Cost(
    calls=212,
    tokens_in=481_022,
    tokens_out=39_911,
    usd=0.84,
    seconds=181.4,
    cached=180_000,
    cache_written=9_000,
    reasoning=12_000,
    parts=(
        CostPart(
            role="optimizer",
            stage="reflect",
            cost=Cost(calls=12, tokens_in=81_022, tokens_out=19_911, usd=0.5, seconds=60.2, reasoning=12_000),
        ),
        CostPart(
            role="target",
            stage="rollout",
            cost=Cost(
                calls=200,
                tokens_in=400_000,
                tokens_out=20_000,
                usd=0.34,
                seconds=1790.5,
                cached=180_000,
                cache_written=9_000,
            ),
        ),
    ),
)
PATCH = PatchCounts(merged=9, ranked=4, applied=2, skipped=1, budget=4)

DIFF = "".join(
    f"{line}\n"
    for line in (
        "diff --git a/skills/searchqa/SKILL.md b/skills/searchqa/SKILL.md",
        "index 1111111..2222222 100644",
        "--- a/skills/searchqa/SKILL.md",
        "+++ b/skills/searchqa/SKILL.md",
        "@@ -10,5 +10,6 @@ description: Answer from search results",
        " ## Verify units",
        " ",
        " Read the question again before answering.",
        "-Always answer in metres.",
        "+Answer in the unit the question asks for, and say it.",
        "+Trailing space.  ",
        " If the table has two units, convert once.",
    )
)


def oid(start: str) -> str:
    return start.ljust(40, "0")


def row(kind: str, **changes: object) -> LogRow:
    values: dict[str, object] = {
        "run": RUN,
        "commit": oid("abc"),
        "kind": kind,
        "version": None,
        "base": None,
        "step": 0,
        "epoch": 0,
        "title": "",
        "time": NOW,
        "score": None,
        "delta": None,
        "measured": True,
        "decision": "",
        "is_best": False,
        "is_head": False,
        "refs": (),
    }
    return LogRow(**(values | changes))  # type: ignore[arg-type]


def ago(minutes: int) -> datetime:
    return NOW - timedelta(minutes=minutes)


V9 = row(
    "slow-merged",
    commit=oid("f9c69ac"),
    version=9,
    base=8,
    step=20,
    epoch=2,
    title="merge epoch-2 guidance",
    time=ago(2),
    score=0.75,
    delta=0.0,
    measured=False,
    decision="force_accept",
    is_head=True,
    refs=(f"run/{RUN}",),
)
GUIDANCE = row(
    "slow-proposed",
    commit=oid("5e1f001"),
    base=8,
    step=20,
    epoch=2,
    title="say less, quote more",
    time=ago(2),
    score=0.75,
    delta=0.0,
    decision="force_accept",
    refs=(f"slow/{RUN}",),
)
V8 = row(
    "accepted",
    commit=oid("1b22c07"),
    version=8,
    base=7,
    step=19,
    epoch=2,
    title="cite the row you used",
    time=ago(6),
    score=0.75,
    delta=0.025,
    decision="accept_new_best",
    is_best=True,
    refs=(f"best/{RUN}",),
)
R18 = row(
    "rejected",
    commit=oid("4b9ede6"),
    base=7,
    step=18,
    epoch=2,
    title="one-word answers",
    time=ago(9),
    score=0.675,
    delta=-0.05,
    decision="reject",
    refs=(f"rejected/{RUN}/0018",),
)
V7 = row(
    "accepted",
    commit=oid("9f1c2ab"),
    version=7,
    base=6,
    step=17,
    epoch=2,
    title="answer in the unit asked for",
    time=ago(12),
    score=0.725,
    delta=0.025,
    decision="accept_new_best",
)
R16 = row(
    "rejected",
    commit=oid("77aa01e"),
    base=6,
    step=16,
    epoch=2,
    title="drop the table",
    time=ago(15),
    score=0.65,
    delta=-0.05,
    decision="reject",
)
S15 = row("skipped", commit=oid("e0d1c55"), step=15, epoch=2, title="no usable patch", time=ago(18))
V6 = row(
    "reverted",
    commit=oid("0c0ffee"),
    version=6,
    base=5,
    step=14,
    epoch=2,
    title="back to the text of v4",
    time=ago(90),
    score=0.7,
    delta=0.0,
    measured=False,
)
V0 = row(
    "run-started",
    commit=oid("d15ea5e"),
    version=0,
    title="train skills/searchqa on searchqa",
    time=ago(60 * 24 * 3),
    score=0.55,
)

ROWS = (V9, GUIDANCE, V8, R18, V7, R16, S15, V6, V0)
OTHER = row(
    "accepted",
    run="docvqa-20261120-m3re",
    commit=oid("beefbee"),
    version=1,
    base=0,
    step=1,
    epoch=1,
    title="read the whole page",
    time=ago(7),
    score=0.5,
    delta=0.1,
    decision="accept_new_best",
    refs=("run/docvqa-20261120-m3re", "best/docvqa-20261120-m3re"),
)
OTHER_V0 = row(
    "run-started",
    run="docvqa-20261120-m3re",
    commit=oid("cafecaf"),
    version=0,
    title="train skills/docvqa on docvqa",
    time=ago(60 * 24 * 400),
    score=0.4,
)
LOG = Log(run=RUN, rows=ROWS)
ALL = Log(run="", rows=(V9, GUIDANCE, V8, OTHER, R18, V7, R16, S15, V6, V0, OTHER_V0))

LIVE = RunRow(
    name=RUN,
    skill=SKILL,
    environment="searchqa",
    outcome="",
    running_pid=4127,
    steps=31,
    total_steps=40,
    versions=10,
    rejected=21,
    merges=2,
    best_version=8,
    best_score=0.75,
    first_score=0.55,
    metric="hard",
    started=ago(60 * 24 * 3),
    updated=ago(2),
    calls=6572,
    tokens_in=14_911_682,
    tokens_out=1_237_241,
    usd=26.04,
)
DONE = RunRow(
    name="searchqa-20261119-p0qx",
    skill=SKILL,
    environment="searchqa",
    outcome="improved",
    running_pid=None,
    steps=40,
    total_steps=40,
    versions=6,
    rejected=30,
    merges=1,
    best_version=5,
    best_score=0.7,
    first_score=0.55,
    metric="hard",
    started=ago(60 * 24 * 3),
    updated=ago(60 * 24 * 2),
    calls=8000,
    tokens_in=900_000,
    tokens_out=99_000,
    usd=0.0,
)
STOPPED = RunRow(
    name="docvqa-20261120-m3re",
    skill="skills/docvqa",
    environment="",
    outcome="",
    running_pid=None,
    steps=6,
    total_steps=0,
    versions=2,
    rejected=4,
    merges=0,
    best_version=1,
    best_score=0.5,
    first_score=0.4,
    metric="soft",
    started=ago(60 * 24 * 400),
    updated=ago(7),
    calls=1,
    tokens_in=0,
    tokens_out=0,
    usd=0.0,
)
RUNS = (LIVE, STOPPED, DONE)
RUN_LIST = RunListing(rows=RUNS, total=3, unreadable={}, environments=(), models=())
NO_RUNS = RunListing(rows=(), total=0, unreadable={}, environments=(), models=())
UNFINISHED = (Unfinished(run=STOPPED.name, what="step 8", cost=Cost(calls=40, tokens_in=23_000, tokens_out=900)),)

STATUS = Status(
    repository=Path("/home/user/skills"),
    run=LIVE,
    head=V9,
    best=V8,
    runs=3,
    checked_out=f"{RUN}/v7",
    live=(LIVE,),
    index_fresh=True,
    detectable=0.1625,
)
EMPTY_STATUS = Status(
    repository=Path("/home/user/skills"),
    run=None,
    head=None,
    best=None,
    runs=0,
    checked_out="main",
    live=(),
    index_fresh=False,
)


def summary(hard: float, soft: float, split: Split = Split.SELECTION, version: int | None = None) -> EvaluationSummary:
    return EvaluationSummary(
        split=split, item_set="4be1", n=40, scored=40, hard=hard, soft=soft, seed=42, version=version
    )


def verdict(decision: Decision, score: float, current: float, best: float) -> Verdict:
    return Verdict(
        decision=decision,
        policy="strict",
        metric=Metric.HARD,
        score=score,
        current=current,
        best=best,
        fixed=3,
        broken=2,
        p=0.5,
    )


STARTED_EVENT = Event(
    kind=EventKind.RUN_STARTED,
    run=RUN,
    skill=SKILL,
    title="train skills/searchqa on searchqa",
    config="c0ffee",
    splits="5e75",
    environment="e4e4",
    models=MODELS,
    evaluation=summary(0.55, 0.61),
    cost=COST,
)
ACCEPTED_EVENT = Event(
    kind=EventKind.ACCEPTED,
    run=RUN,
    skill=SKILL,
    epoch=2,
    step=17,
    title="answer in the unit asked for",
    why="Six of forty rollouts lost points on unit mismatch (q17, q22, q31).\n\nThe rule about metres caused four.",
    base=6,
    version=7,
    edits=(
        EditRecord(op=Op.INSERT_AFTER, file="SKILL.md", support=4, source=EditSource.FAILURE, anchor="5f1c0000"),
        EditRecord(op=Op.DELETE, file="SKILL.md", support=2, source=EditSource.FAILURE, anchor="9ab00000"),
    ),
    changes=(Change(sign="+", text="Answer in the unit the question asks for, and say it."),),
    patch=PATCH,
    evaluation=summary(0.725, 0.7712),
    verdict=verdict(Decision.ACCEPT_NEW_BEST, 0.725, 0.7, 0.7),
    fixed=("q17", "q22", "q31"),
    broken=("q03", "q39"),
    models=MODELS,
    cost=COST,
)
REJECTED_EVENT = Event(
    kind=EventKind.REJECTED,
    run=RUN,
    skill=SKILL,
    epoch=2,
    step=18,
    title="one-word answers",
    base=7,
    patch=PATCH,
    evaluation=summary(0.675, 0.7),
    verdict=verdict(Decision.REJECT, 0.675, 0.725, 0.725),
    broken=("q03", "q39"),
    models=MODELS,
    cost=COST,
)
SKIPPED_EVENT = Event(
    kind=EventKind.SKIPPED,
    run=RUN,
    skill=SKILL,
    epoch=2,
    step=15,
    title="no usable patch",
    patch=PATCH,
    models=MODELS,
    cost=COST,
)
GUIDANCE_EVENT = Event(
    kind=EventKind.SLOW_PROPOSED,
    run=RUN,
    skill=SKILL,
    epoch=2,
    step=20,
    title="say less, quote more",
    base=8,
    guidance="Quote the row before you answer.",
    memory="Edits about length lose.",
    evaluation=summary(0.75, 0.8),
    verdict=verdict(Decision.FORCE_ACCEPT, 0.75, 0.75, 0.75),
    models=MODELS,
    cost=COST,
)
MERGED_EVENT = Event(
    kind=EventKind.SLOW_MERGED,
    run=RUN,
    skill=SKILL,
    epoch=2,
    step=20,
    title="merge epoch-2 guidance",
    version=9,
    base=8,
    evaluation=summary(0.75, 0.8),
    verdict=verdict(Decision.FORCE_ACCEPT, 0.75, 0.75, 0.75),
)
REVERTED_EVENT = Event(
    kind=EventKind.REVERTED,
    run=RUN,
    skill=SKILL,
    epoch=2,
    step=14,
    title="back to the text of v4",
    version=6,
    base=5,
    target=4,
    evaluation=summary(0.7, 0.7),
)
FINISHED_EVENT = Event(
    kind=EventKind.RUN_FINISHED,
    run=RUN,
    skill=SKILL,
    epoch=2,
    step=20,
    title="finished, improved",
    outcome=RunOutcome.IMPROVED,
    evaluations=(summary(0.54, 0.6, Split.TEST, 0), summary(0.71, 0.77, Split.TEST, 8)),
    models=MODELS,
    cost=COST,
)
FINISHED = row("run-finished", commit=oid("f1n15"), step=20, epoch=2, title="finished, improved", time=ago(1))

ITEMS = (
    ItemChange(item="q03", task_type="jeopardy", before=1.0, after=0.0, change="broken"),
    ItemChange(item="q04", task_type="jeopardy", before=1.0, after=1.0, change="pass"),
    ItemChange(item="q05", task_type="jeopardy", before=0.25, after=0.25, change="fail"),
    ItemChange(item="q17", task_type="units", before=0.0, after=1.0, change="fixed"),
    ItemChange(item="q22", task_type="units", before=0.25, after=0.5, change="fixed"),
    ItemChange(item="q40", task_type="", before=0.0, after=None, change="missing"),
)


LEFT_OUT = LeftOut(
    edit="replace: Read the question twice.", status="anchor-missing", reason="the anchor does not occur in the file"
)


def shown(line: LogRow, event: object, diff: str = "", left_out: tuple[LeftOut, ...] = ()) -> Shown:
    return Shown(
        row=line,
        event=event,  # type: ignore[arg-type]
        parents=(oid("0c0ffee"),),
        evidence_tree=oid("ef1de4ce"),
        message="skill: answer in the unit asked for (v7, +0.0250)\n",
        diff=diff,
        items=ITEMS[:1],
        left_out=left_out,
    )


SHOWN = {
    "v7": shown(V7, ACCEPTED_EVENT, DIFF, (LEFT_OUT,)),
    "r18": shown(R18, REJECTED_EVENT),
    "s15": shown(S15, SKIPPED_EVENT),
    "slow": shown(GUIDANCE, GUIDANCE_EVENT),
    "v9": shown(V9, MERGED_EVENT),
    "v6": shown(V6, REVERTED_EVENT),
    "v0": shown(V0, STARTED_EVENT),
    "end": shown(FINISHED, FINISHED_EVENT),
}
