"""What ``items --models``, ``retest`` and ``verify`` print and exit with."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import cli_sample as sample
import pytest
from sample_run import MODELS, RUN, write_run

from skillgit.app.measure.requests import EvalRequest
from skillgit.app.measure.retest import Retested, RetestPlan, RetestRow
from skillgit.app.measure.verify import Claim, ClaimVerdict, Verified, VerifyPlan
from skillgit.app.recorded.score_summary import Scores, SkillComparison
from skillgit.app.setup.basis import ResultBasis
from skillgit.domain.cost import Cost
from skillgit.errors import BudgetError, ExitCode
from skillgit.store import notes

COST = Cost(calls=40, tokens_in=12_000, tokens_out=400)


@pytest.fixture
def history(repo, skillgit):
    """Run a command line in the repository of the sample run, one version of which has a note."""
    records = write_run(repo)
    note = {"kind": "evaluation", "split": "selection", "item_set": "ffff", "environment": "e4f", "n": 5, "scored": 4}
    note |= {"hard": 0.5, "soft": 0.5, "seed": 42, "target": "other/model", "time": "2026-11-22T00:00:00Z"}
    notes.append(repo, {records[1].commit: [note]}, time=datetime(2026, 11, 22, tzinfo=UTC))
    return lambda *arguments: skillgit("-C", str(repo.workdir), *arguments)


def test_versions_stand_by_models_and_marks_are_explained(history):
    body = history("items", "--models").text.splitlines()
    assert body[0] == f"run {RUN} · selection split · hard score"
    assert body[1].startswith("* measured on other items"), "before any number"
    assert body[3].split() == [MODELS.target, "n", "other/model", "n"]
    assert body[5].split()[:5] == ["v1", ".6000", "10", "*.5000", "4/5"]
    assert body[4].split()[:4] == ["v0", ".4000", "10", "·"]


def test_the_matrix_has_machine_formats(history):
    document = json.loads(history("items", "--models", "--json").out)
    assert (document["schema"], document["models"]) == ("skillgit.matrix/1", [MODELS.target, "other/model"])
    assert len(document["scores"]) == 5
    plain = [line.split("\t") for line in history("items", "--models", "--plain").text.splitlines()]
    assert plain[2][0] == "v1"
    assert plain[2][2:4] == ["other/model", "0.5"]
    assert plain[2][9] == "items"


def test_a_split_without_scores_says_what_to_do(history):
    ended = history("items", "--models", "--split", "train")
    assert (ended.code, ended.text) == (0, "")
    assert ended.err == (
        f"no version of run {RUN} has a score on the train split\nhint: skillgit eval {RUN} --split train\n"
    )


def scores(hard: float) -> Scores:
    return Scores(
        task_type="",
        n=40,
        scored=40,
        coverage=1.0,
        hard=hard,
        solved_items=round(hard * 40),
        hard_interval=(0.1, 0.9),
        soft=hard,
        soft_interval=None,
    )


SAMPLE = ("eval", "--fresh")
PLAN = RetestPlan(target="other/model", split="test", items=40, names=("v8",))
PAIR = SkillComparison(
    split="test", name="v8", against="offline/target", metric="hard", n=40, delta=-0.25, interval=(-0.4, -0.1),
    fixed=(), broken=("q1", "q2"), p=1.0,
)  # fmt: skip
ROW = RetestRow(
    name="v8", run=sample.RUN, version=8, commit=sample.oid("1b22c07"), text="SKILL.md of v8", found=scores(0.5),
    score=0.5, own=scores(0.75), own_score=0.75, comparison=PAIR, p=0.5, draw=0, test_reads=2,
)  # fmt: skip
BASIS = ResultBasis(run="demo", target="openai_chat m", data="40 selection, of searchqa: mine.json")
RETESTED = Retested(
    basis=BASIS, plan=PLAN, own_target="offline/target", differs=(), metric="hard", rows=(ROW,), noted=1, cost=COST
)


def test_a_retest_stands_beside_what_was_recorded(skillgit, fake):
    calls = fake("measure.retest.retest", RETESTED)
    ended = skillgit("eval", "v8", "--model", "other/model", "--split", "test", "--max-usd", "1")
    body = ended.text.splitlines()
    assert body[0] == "test  40 items, hard scores"
    assert body[2].split()[:6] == ["v8", "40/40", ".5000", "20/40", ".1000", "to"]
    assert "-.2500" in body[2]
    assert body[4:] == [
        "test   evaluated so far: v8 2 times",
        "notes  1 new evaluation on refs/notes/skillgit/evals",
        "by     the configuration of run demo; 40 selection, of searchqa: mine.json; target openai_chat m",
        "text   SKILL.md of v8",
        "cost   40 calls · 12k in · 400 out",
        f"next   skillgit items {sample.RUN} --models --split test",
    ]
    request = calls[0][0]
    assert request == EvalRequest(revisions=("v8",), model="other/model", split="test", max_usd=1.0)


def verified(verdict: ClaimVerdict, cost: Cost | None = COST) -> Verified:
    plan = VerifyPlan(name="v8", target="offline/target", split="selection", items=10, of=40)
    claim = Claim(score=0.75, n=40, target="offline/target", paired=True)
    return Verified(
        basis=BASIS,
        name="v8", metric="hard", row=sample.V8, plan=plan, claim=claim, verdict=verdict, items=("q1",), noted=True,
        test_reads=0, cost=cost,
    )  # fmt: skip


LOWER = ClaimVerdict(
    word="lower",
    n=10,
    measured=0.2,
    recorded=0.8,
    solved_items=2,
    recorded_items=8,
    delta=-0.6,
    interval=(-0.9, -0.3),
    p=0.03,
    lower=("q1", "q2"),
)
LOWER_TEXT = """\
v8  lower than recorded

claimed   .7500 on 40 selection items under offline/target
recorded  .8000 8/10 on the 10 items of the sample
measured  .2000 2/10 on the same 10 items
gained    -.6000, 95 % -.9000 to -.3000, p 0.0300 two-sided, paired item by item
lower     2: q1 q2
by        the configuration of run demo; 40 selection, of searchqa: mine.json; target openai_chat m
text      searchqa-20261121-7k2m/v8, 1b22c07
notes     1 new evaluation on refs/notes/skillgit/evals
cost      40 calls · 12k in · 400 out
"""


def test_a_verdict_comes_first_and_decides_the_exit_code(skillgit, fake):
    fake("measure.verify.verify", verified(LOWER))
    ended = skillgit(*SAMPLE, "v8", "--sample", "10")
    assert (ended.code, ended.text) == (ExitCode.NO, LOWER_TEXT)
    fake(
        "measure.verify.verify",
        verified(ClaimVerdict(word="consistent", n=10, measured=0.8, delta=0.05, interval=(0.4, 0.9))),
    )
    ended = skillgit(*SAMPLE, "v8", "--sample", "20")
    assert ended.code == ExitCode.OK
    assert "could not be paired" in ended.text


def test_what_differs_is_told_and_nothing_was_spent(skillgit, fake):
    fake(
        "measure.verify.verify",
        verified(ClaimVerdict(word="not comparable", differs=("the items are others",)), cost=None),
    )
    ended = skillgit(*SAMPLE, "v8", "--sample", "20")
    assert ended.code == ExitCode.NO
    assert ended.text.splitlines()[0] == "v8  not comparable"
    assert "differs   the items are others" in ended.text
    assert "cost" not in ended.text


def test_a_verification_is_asked_for_in_full(skillgit, fake):
    calls = fake("measure.verify.verify", verified(LOWER))
    options = (
        "--seed",
        "3",
        "--split",
        "test",
        "--config",
        "demo",
        "-o",
        "a.b=c",
        "--no-note",
        "--max-calls",
        "4",
        "--max-tokens",
        "9",
    )
    skillgit(*SAMPLE, "best", "--sample", "5", *options)
    assert calls[0][0] == EvalRequest(
        revisions=("best",),
        fresh=True,
        sample=5,
        seed=3,
        split="test",
        config="demo",
        overrides=("a.b=c",),
        note=False,
        max_calls=4,
        max_tokens=9,
    )
    assert json.loads(skillgit(*SAMPLE, "best", "--sample", "5", "--json").out)["schema"] == "skillgit.verify/2"


@pytest.mark.parametrize(
    ("work", "words"), [("retest", ("eval", "--fresh")), ("verify", ("eval", "--fresh", "--sample", "3"))]
)
def test_a_cap_exits_as_it_does_everywhere(work, words, skillgit, fake):
    fake(f"measure.{work}.{work}", BudgetError("the cap", hint="more"))
    assert skillgit(*words, "v1").code == ExitCode.BUDGET


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify",),
        ("eval", "--fresh", "v1", "--sample", "0"),
        ("eval", "v1", "--sample", "3"),
        ("eval", "v1", "--fresh", "--seed", "3"),
        ("eval", "--fresh", "v1", "v2", "--sample", "3"),
        ("eval", "--fresh", "v1", "--sample", "3", "--model", "m"),
        ("eval", "--fresh", "v1", "--against", "v0"),
        ("eval", "--fresh", "v1", "--split", "all"),
    ],
)
def test_a_mistaken_command_line_is_refused(arguments, skillgit):
    assert skillgit(*arguments).code == ExitCode.USAGE
