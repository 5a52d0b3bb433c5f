from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import timedelta

import cli_sample as sample
import pytest
from rich.console import Console

from skillgit.app.measure.eval import ArmScores, Evaluated, SplitScores
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.recorded.evaluation_notes import KnownEvaluation
from skillgit.app.recorded.score_summary import Scores, SkillComparison
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.model_session import EvalProgress
from skillgit.cli.diagnostics import Diagnostics
from skillgit.cli.watchers import LiveEvalWatcher
from skillgit.domain.cost import Cost
from skillgit.errors import BudgetError, ExitCode, StoppedError
from skillgit.view.surface import Screen


def group(task_type: str, n: int, scored: int, hard: float | None) -> Scores:
    return Scores(
        task_type=task_type,
        n=n,
        scored=scored,
        coverage=scored / n,
        hard=hard,
        solved_items=None if hard is None or (hard * scored) % 1 else round(hard * scored),
        hard_interval=None if hard is None else (hard / 2, 1.0),
        soft=hard,
        soft_interval=None if hard is None else (hard / 2, 1.0),
    )


def arm(name: str, hard: float, **changes: object) -> ArmScores:
    kinds = (group("date", 10, 10, hard), group("units", 30, 0, None))
    scores = SplitScores(split="test", item_set="4be1", overall=group("", 40, 38, hard), types=kinds)
    values = {"run": sample.RUN, "version": 8, "commit": sample.oid("1b22c07"), "test_reads": 2}
    values |= {"text": f"skills/searchqa/SKILL.md of {name}"}
    return ArmScores(name=name, splits=(scores,), **(values | changes))


RESULT = Evaluated(
    basis=ResultBasis(
        run="demo",
        reason="the run of v8",
        target="openai_chat m at 127.0.0.1",
        data="40 test, of searchqa: mine.json",
    ),
    config=f"run {sample.RUN}",
    environment="searchqa",
    target="offline/target",
    seed=42,
    metric="hard",
    arms=(arm("v8", 0.75), arm("none", 0.5, run="", version=None, commit="", test_reads=0)),
    comparisons=(
        SkillComparison(
            split="test",
            name="v8",
            against="none",
            metric="hard",
            n=38,
            delta=0.25,
            interval=(-0.0125, 0.4),
            fixed=("q1", "q2"),
            broken=("q3",),
            p=0.5,
        ),
    ),
    noted=1,
    cost=Cost(calls=40, tokens_in=12_000, tokens_out=400),
    warnings=("the items are not those of run x",),
    exit_code=ExitCode.OK,
)
TEXT = """\
searchqa · target offline/target · seed 42

test  40 items
      scored         hard  95 %              soft  95 %
v8     38/40        .7500  .3750 to 1.0000  .7500  .3750 to 1.0000
none   38/40  .5000 19/38  .2500 to 1.0000  .5000  .2500 to 1.0000

task type, hard  items     v8   none
date                10  .7500  .5000
units               30   none   none

                 hard gained  95 %              fixed  broken  paired test
v8 against none       +.2500  -.0125 to +.4000      2       1  p 0.5000

test   evaluated so far: v8 2 times
notes  1 new evaluation on refs/notes/skillgit/evals
by     the configuration of run demo (the run of v8); 40 test, of searchqa: mine.json; target openai_chat m at 127.0.0.1
text   skills/searchqa/SKILL.md of v8
       skills/searchqa/SKILL.md of none
cost   40 calls · 12k in · 400 out
"""


def test_versions_stand_side_by_side(skillgit, fake):
    fake("measure.eval.evaluate", RESULT)
    ended = skillgit("eval", "best", "--split", "test", "--against", "none")
    assert ended.text == TEXT
    assert (ended.code, ended.err) == (0, "the items are not those of run x\n")


def test_the_request_is_handed_on(skillgit, fake):
    calls = fake("measure.eval.evaluate", RESULT)
    skillgit(
        *("eval", "v3", "best", "--config", "demo", "-o", "train.seed=1", "--split", "all", "--against", "none,v0"),
        *("--against", "v1", "--no-note", "--max-calls", "9", "--max-tokens", "8", "--max-usd", "0.5"),
    )
    request, _ = calls[0]
    assert request == EvalRequest(
        revisions=("v3", "best"),
        against=("none", "v0", "v1"),
        config="demo",
        overrides=("train.seed=1",),
        split="all",
        note=False,
        max_calls=9,
        max_tokens=8,
        max_usd=0.5,
    )


def test_as_json(skillgit, fake):
    fake("measure.eval.evaluate", RESULT)
    document = json.loads(skillgit("eval", "best", "--json").out)
    assert document["schema"] == "skillgit.eval/1"
    assert document["arms"][0]["splits"][0]["overall"]["hard_interval"] == [0.375, 1.0]
    assert document["comparisons"][0]["fixed"] == ["q1", "q2"]
    assert document["warnings"] == ["the items are not those of run x"]


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (replace(RESULT, exit_code=ExitCode.SERVICE), 5),
        (BudgetError("the cap", hint="more"), 7),
        (StoppedError("stopped", hint="again"), 130),
    ],
)
def test_it_exits_as_train_does(result, code, skillgit, fake):
    fake("measure.eval.evaluate", result)
    assert skillgit("eval", "best").code == code


@pytest.mark.parametrize(
    "arguments", [("eval",), ("eval", "best", "--split", "valid"), ("eval", "a", "--max-calls", "0")]
)
def test_a_mistaken_command_line_is_refused(arguments, skillgit):
    assert skillgit(*arguments).code == ExitCode.USAGE


def test_on_a_pipe_each_result_is_one_line_on_stderr(skillgit, monkeypatch):
    def run(context: object, request: object, watcher: LiveEvalWatcher) -> Evaluated:
        del context, request
        watcher.progress(LOOK)
        watcher.measured("v8", "test", group("", 40, 38, 0.75))
        return replace(RESULT, warnings=())

    monkeypatch.setattr("skillgit.app.measure.eval.evaluate", run)
    assert skillgit("eval", "best").err == "v8  test  hard .7500 · soft .7500 · 38 of 40 items scored\n"
    assert not skillgit("eval", "best", "-q").err


LOOK = EvalProgress(name="v8", split="test", count=10, total=40, before=40, every=80, cost=Cost(calls=50))


def test_the_live_display_shows_what_is_measured_and_how_far_it_is():
    stream = io.StringIO()
    console = Console(file=stream, width=80, color_system=None)
    watcher = LiveEvalWatcher(Diagnostics(stream, Screen(terminal=True, width=80)), lambda: sample.NOW, console)
    watcher.measured("none", "test", group("", 40, 0, None))
    assert stream.getvalue() == "none  test  hard none · soft none · 0 of 40 items scored\n"
    with console.capture() as capture:
        console.print(watcher)
        watcher.progress(LOOK)
        console.print(watcher)
    assert capture.get().splitlines() == [
        "preparing",
        "▶ ━━━━━━━━━──────  62%  v8  test 10/40 · 50 calls",
    ]


def test_show_tells_what_is_known_besides(skillgit, fake):
    final = KnownEvaluation(
        source="run-finished",
        split="test",
        item_set="4be1",
        n=40,
        scored=40,
        hard=0.71,
        soft=0.77,
        seed=42,
        types={},
        time=sample.NOW - timedelta(days=3),
    )
    noted = replace(final, source="note", hard=0.7, target="offline/target", time=None)
    fake("history.show.show", replace(sample.SHOWN["v9"], evaluations=(final, noted), test_evaluations=2))
    assert skillgit("show", "v9").text.splitlines()[-3:] == [
        "known   test hard .7100 · soft .7700 · 40 of 40 items scored · end of the run · 3 days ago",
        "        test hard .7000 · soft .7700 · 40 of 40 items scored · offline/target",
        "        2 evaluations on the test split",
    ]
