"""What the commands that change a run print: the decision, its numbers, and what to type next."""

from __future__ import annotations

import json
from dataclasses import replace

import cli_sample as sample
import pytest

from skillgit.app.interventions.ablate import Ablated, AblatedRule, Ablation
from skillgit.app.interventions.cherry_pick import Retried, RetryResult
from skillgit.app.interventions.intervention import Decided
from skillgit.app.interventions.merge import MeasuredChoice, Merged, Stretch
from skillgit.app.interventions.requests import CherryPickRequest
from skillgit.app.interventions.shorten import Pruned
from skillgit.app.setup.basis import ResultBasis
from skillgit.domain.cost import Cost
from skillgit.domain.edit import LeftOut
from skillgit.domain.evaluation import EvaluationSummary, Metric, Split
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.domain.skill_rules import Region, Worth
from skillgit.errors import BudgetError, ExitCode, RunLockedError, SkillgitError
from skillgit.view.show import gate
from skillgit.view.surface import Screen

VERDICT = Verdict(
    decision=Decision.ACCEPT_NEW_BEST,
    policy="strict",
    metric=Metric.HARD,
    score=0.775,
    current=0.75,
    best=0.75,
    fixed=2,
    broken=1,
    p=0.5,
)
SUMMARY = EvaluationSummary(split=Split.SELECTION, item_set="s", n=40, scored=40, hard=0.775, soft=0.8, seed=42)
BASIS = ResultBasis(run="demo", target="openai_chat m", data="40 selection, of searchqa: mine.json")
ACCEPTED = Decided(
    basis=BASIS,
    event=sample.row(
        "accepted",
        version=10,
        base=9,
        step=20,
        origin="cherry-pick",
        number=1,
        title="answer in the unit asked for",
        score=0.775,
        delta=0.025,
        decision="accept_new_best",
        is_best=True,
    ),
    of="other/v3",
    base=9,
    accepted=True,
    branch=f"run/{sample.RUN}",
    verdict=VERDICT,
    evaluation=SUMMARY,
    fixed=("q1", "q2"),
    broken=("q3",),
    left_out=(LeftOut(edit="append: - A rule.", status="duplicate", reason="the text is in the file already"),),
    tokens_before=200,
    tokens_after=212,
    notes=("something to know",),
    cost=Cost(calls=40, tokens_in=20_000, tokens_out=300),
)
REFUSED = replace(
    ACCEPTED,
    event=replace(ACCEPTED.event, kind="rejected", version=None, decision="reject", score=None, delta=None, bound=0.75),
    accepted=False,
    branch=f"rejected/{sample.RUN}/0020-cherry-pick-1",
    verdict=replace(VERDICT, decision=Decision.REJECT, policy="not-worse", score=0.7),
    evaluation=replace(SUMMARY, scored=12, unneeded=28),
    fixed=(),
    left_out=(),
    notes=(),
    cost=Cost(),
)


def rule(
    number: int, worth: Worth, delta: float, *, broken: tuple[str, ...] = (), last: int | None = None
) -> AblatedRule:
    found = Ablation(
        rule=number,
        text=f"Rule {number}.",
        first=10 + number,
        last=last or 10 + number,
        region=Region.SLOW if number == 2 else Region.BODY,
        score=0.75 + delta,
        delta=delta,
        fixed=(),
        broken=broken,
        p=0.25,
        worth=worth,
    )
    return AblatedRule(ablation=found, since="v3" if number < 3 else "seed")


ABLATED = Ablated(
    basis=BASIS,
    run=sample.RUN,
    name=f"{sample.RUN}/v9",
    short="v9",
    commit=sample.oid("abc"),
    is_head=True,
    split="selection",
    n=40,
    metric="hard",
    score=0.75,
    rules=(rule(2, Worth.WORKS, -0.05, broken=("q1", "q2")), rule(1, Worth.DEAD, 0.0, last=12)),
    every=2,
    noted=2,
    cost=Cost(),
    warnings=("the items are not those of run x",),
    exit_code=ExitCode.OK,
)
MERGED = Merged(
    ours=f"{sample.RUN}/v9",
    theirs="other/v3",
    ancestor="the seed that both runs began with",
    stretches=(Stretch(file="SKILL.md", line=12, ours="- Ours.\n", theirs="", choices=("ours", "theirs")),),
    decided=ACCEPTED,
)


def test_an_accepted_candidate_is_told_with_its_numbers_and_the_next_command(skillgit, fake):
    calls = fake("interventions.cherry_pick.cherry_pick", ACCEPTED)
    done = skillgit("cherry-pick", "other/v3", "--run", "mine", "--max-calls", "9")
    assert done.code == 0
    assert (
        done.text
        == f"""\
v10  ● accepted, new best   .7750 +.0250
{sample.RUN} · base v9 · run/{sample.RUN} · abc0000
cherry-pick: answer in the unit asked for

gate      strict asks for a higher score · .7750 against .7500 · 2 fixed, 1 broken, p 0.5000
fixed     q1 q2
broken    q3
items     40 of 40 selection items scored
length    about 212 tokens, 200 before, +12
skipped   append: - A rule. (duplicate: the text is in the file already)
note      something to know
by        the configuration of run demo; 40 selection, of searchqa: mine.json; target openai_chat m
cost      40 calls · 20k in · 300 out
next      skillgit diff {sample.RUN}/v9 {sample.RUN}/v10 --items · skillgit show {sample.RUN}/v10
"""
    )
    ((request, _),) = calls
    assert request == CherryPickRequest(revision="other/v3", run="mine", max_calls=9)


def test_a_refusal_exits_with_1_and_names_where_the_candidate_stands(skillgit, fake):
    fake("interventions.shorten.compress", REFUSED)
    done = skillgit("shorten", "--words")
    assert done.code == 1
    lines = done.text.splitlines()
    assert lines[0] == "i1  × rejected   ≤.7500"  # noqa: RUF001 - the sign of the screens
    assert f"rejected/{sample.RUN}/0020-cherry-pick-1" in lines[1]
    assert "gate      not-worse asks for a score that is not lower · ≤.7000 against .7500" in done.text
    assert "items     12 of 40 selection items scored, 28 not measured (the decision was settled)" in done.text
    assert "cost      no call: everything had been measured before" in done.text
    assert lines[-1] == f"next      skillgit show {sample.RUN}/i1"


@pytest.mark.parametrize(
    ("words", "verb", "result"),
    [
        (("cherry-pick", "v1"), "interventions.cherry_pick.cherry_pick", ACCEPTED),
        (("shorten", "--words"), "interventions.shorten.compress", ACCEPTED),
        (("ablate",), "interventions.ablate.ablate", ABLATED),
        (("merge", "a", "b"), "interventions.merge.merge", MERGED),
        (("shorten",), "interventions.shorten.prune", Pruned(rules=(), needed=(), measured=0, decided=ACCEPTED)),
    ],
)
def test_machines_get_one_document(skillgit, fake, words, verb, result):
    fake(verb, result)
    done = skillgit(*words, "--json", "-q")
    assert done.code == 0
    assert json.loads(done.out)["schema"].startswith(f"skillgit.{verb.rpartition('.')[2]}/".replace("_", "-"))


def test_an_ablation_is_a_table_with_the_dead_rules_last(skillgit, fake):
    fake("interventions.ablate.ablate", ABLATED)
    done = skillgit("ablate", "v9")
    assert done.err == "the items are not those of run x\n"
    assert (
        done.text
        == f"""\
{sample.RUN}/v9  hard .7500 on 40 selection items · 2 rules left out one at a time

rule  lines  since  without   delta  fixed  broken  p
   2  12 slow  v3       .7000  -.0500      0       2  0.2500  works  Rule 2.
   1  11-12    v3       .7500  +.0000      0       0  0.2500  dead   Rule 1.

works     the score is lower without it
dead      nothing changes without it
notes     2 new ablations on refs/notes/skillgit/evals
by        the configuration of run demo; 40 selection, of searchqa: mine.json; target openai_chat m
cost      no call: everything had been measured before
next      skillgit shorten {sample.RUN}/v9 drops 1 rule that it can do without
""".replace("rule  lines  since", "rule  lines    since")
    )


def test_a_pruned_version_names_the_rules_that_went_and_those_that_are_needed(skillgit, fake):
    one, two = (rule(number, Worth.DEAD, 0.0).ablation for number in (1, 3))
    fake("interventions.shorten.prune", Pruned(rules=(one,), needed=(two,), measured=1, decided=ACCEPTED))
    text = skillgit("shorten").text
    assert "dropped   rule 1   Rule 1.\nneeded    rule 3   Rule 3.\n" in text


def test_a_merge_says_what_was_chosen(skillgit, fake):
    tried = (MeasuredChoice(choice="ours", score=0.75), MeasuredChoice(choice="theirs", score=0.775))
    settled = replace(MERGED.stretches[0], tried=tried, chosen="theirs")
    fake("interventions.merge.merge", replace(MERGED, stretches=(settled,), decided=ACCEPTED))
    done = skillgit("merge", sample.RUN, "other").text
    assert "conflict 1  SKILL.md line 12  → theirs" in done
    assert "     ours  theirs\n    .7500   .7750\n" in done


def test_a_score_that_holds_is_told_as_equal_under_the_gate_that_asks_for_no_more():
    held = replace(VERDICT, decision=Decision.ACCEPT, policy="not-worse", score=0.75)
    assert "hard .7500 = current .7500" in gate(held, Screen())
    refused = replace(VERDICT, decision=Decision.REJECT, score=0.75)
    assert "hard .7500 <= current .7500" in gate(refused, Screen(unicode=False))


def test_candidates_stand_then_and_now_and_what_was_not_tried_has_a_reason(skillgit, fake):
    then = Retried(
        name="r5", commit=sample.oid("5"), title="a title", old_score=None, old_delta=None, bound=0.7, old_base=3
    )
    now = replace(then, score=0.8, delta=0.05, fixed=("q1", "q2"), p=0.25, passes=True)
    result = RetryResult(
        basis=BASIS,
        run=sample.RUN,
        base=9,
        base_score=0.75,
        target="offline/reader",
        own_model=True,
        split="selection",
        n=40,
        metric="hard",
        rows=(now, replace(then, name="r7", reason="does not apply")),
        cost=Cost(),
        exit_code=ExitCode.OK,
    )
    fake("interventions.cherry_pick.retry", result)
    done = skillgit("cherry-pick", "--rejected")
    assert done.code == 0
    assert "✓  r5  ≤.7000         v3  .8000  +.0500      2       0  0.2500  a title" in done.text
    assert "· r7  not tried: does not apply" in done.text
    assert done.text.endswith(f"next      skillgit cherry-pick {sample.RUN}/r5 --run {sample.RUN}\n")
    none = replace(
        result, rows=(replace(now, passes=False), *(replace(then, name=f"r{n}", reason="x") for n in (7, 8)))
    )
    fake("interventions.cherry_pick.retry", none)
    refused = skillgit("cherry-pick", "--rejected").text
    assert refused.endswith(f"next      skillgit show {sample.RUN}/r5\n"), "a finished run does not go on"
    assert "\n\n· r7  not tried: x\n· r8  not tried: x\n\n" in refused
    fake("interventions.cherry_pick.retry", replace(result, own_model=False, kept=ACCEPTED))
    assert "not the model of the run" in skillgit("cherry-pick", "--rejected", "--model", "other").text
    many = tuple(replace(then, name=f"r{n}", reason="x") for n in range(1, 12))
    fake("interventions.cherry_pick.retry", replace(result, base_score=None, rows=many))
    nothing = skillgit("cherry-pick", "--rejected").text
    assert "nothing applies to v9" in nothing
    assert nothing.count("not tried: x") == 8
    assert "\n3 more were not tried; --json names all\n" in nothing


def test_work_without_a_result_tells_what_it_spent(skillgit, monkeypatch):
    def spend(_context, _request, watcher):
        watcher.spent(Cost(calls=7))
        raise SkillgitError("it brings nothing", hint="look")

    monkeypatch.setattr("skillgit.app.interventions.merge.merge", spend)
    done = skillgit("merge", "one", "two")
    assert done.code == 1
    assert done.err.splitlines()[0].startswith("cost      7 calls")
    assert done.err.splitlines()[1:] == ["skillgit: it brings nothing", "hint: look"]
    assert "cost" not in skillgit("merge", "one", "two", "-q").err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BudgetError("the cap of 5 calls is reached", hint="a larger cap goes on"), 7),
        (RunLockedError("run x is being trained by process 7", hint="wait for it"), 4),
    ],
)
def test_errors_have_a_hint_and_their_exit_code(skillgit, fake, error, code):
    fake("interventions.shorten.prune", error)
    done = skillgit("shorten", "-q")
    assert done.code == code
    assert done.out == b""
    assert "hint: " in done.err


def test_without_unicode_the_signs_are_ascii(skillgit, fake, monkeypatch):
    fake("interventions.cherry_pick.cherry_pick", ACCEPTED)
    monkeypatch.setattr("skillgit.cli.session.can_show_glyphs", lambda _: False)
    text = skillgit("cherry-pick", "v1").text
    assert text.isascii()
    assert text.startswith("v10  * accepted, new best")
