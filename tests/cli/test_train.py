from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace

import cli_sample as sample
import pytest
from rich.console import Console

from skillgit.app.recorded.stagnation import Cause, Diagnosis
from skillgit.app.setup.plan import Plan, total_of
from skillgit.app.train.requests import TrainRequest
from skillgit.app.train.run_report import ReportRow, Trained
from skillgit.cli.diagnostics import Diagnostics
from skillgit.cli.watchers import LineWatcher, LiveWatcher
from skillgit.domain.cost import Cost
from skillgit.domain.event import RunOutcome
from skillgit.errors import BudgetError, ExitCode, NotLoadedError, StoppedError
from skillgit.view.surface import Screen

TRAINED = Trained(
    run=sample.RUN,
    outcome=RunOutcome.IMPROVED,
    words="improved",
    facts={},
    sentence="v8 scores .7500 on selection, .2000 more than the seed.",
    exit_code=ExitCode.OK,
    resumed=False,
    report=(
        ReportRow(label="seed", version=0, selection=0.55, test=0.54),
        ReportRow(label="best", version=8, selection=0.75, test=0.71),
        ReportRow(label="last", version=9, selection=0.75, test=None),
    ),
    metric="hard",
    cost=sample.COST,
    next_commands=("skillgit log --graph", "skillgit diff v0 v8 --items"),
)
TRAINED_TEXT = """\
searchqa-20261121-7k2m  improved
v8 scores .7500 on selection, .2000 more than the seed.

          selection hard  test hard
seed  v0           .5500      .5400
best  v8           .7500      .7100
last  v9           .7500       none

cost  212 calls · 481k in (37% cached, 45% of the target's) · 40k out · $0.84 · 3 min
next  skillgit log --graph
      skillgit diff v0 v8 --items
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    epoch: int = 2
    epochs: int = 4
    step: int = 18
    steps: int = 40
    last: int = 0
    stage: str = "rollout"
    done: int = 32
    total: int = 40
    score: float | None = 0.725
    best: float | None = 0.75
    spent: Cost = sample.COST
    share: float = 0.43
    seconds_left: float | None = 1_020.0


def test_train_tells_how_the_run_ended(skillgit, fake):
    fake("train.train.train", TRAINED)
    ended = skillgit("train", "demo")
    assert (ended.code, ended.text, ended.err) == (0, TRAINED_TEXT, "")


def test_train_hands_the_request_on(skillgit, fake):
    calls = fake("train.train.train", TRAINED)
    skillgit(
        *("train", "demo", "-o", "train.num_epochs=2", "--cfg-options", "seed=7", "--run", "mine", "--from", "v3"),
        *("--max-calls", "10", "--max-tokens", "1000", "--max-usd", "2.5"),
    )
    request, _ = calls[0]
    assert request == TrainRequest(
        config="demo",
        overrides=("train.num_epochs=2", "seed=7"),
        run="mine",
        start="v3",
        max_calls=10,
        max_tokens=1000,
        max_usd=2.5,
    )


def test_train_exits_with_the_code_of_the_run(skillgit, fake):
    fake("train.train.train", replace(TRAINED, exit_code=ExitCode.SERVICE, outcome=RunOutcome.PROVIDER_FAILURE))
    assert skillgit("train", "demo").code == ExitCode.SERVICE


@pytest.mark.parametrize(
    ("outcome", "usual", "strict"),
    [(RunOutcome.IMPROVED, 0, 0), (RunOutcome.CEILING, 0, 22), (RunOutcome.NULL_RESULT, 0, 20)],
)
def test_exit_code_tells_a_run_that_gained_nothing(outcome, usual, strict, skillgit, fake):
    fake("train.train.train", replace(TRAINED, outcome=outcome))
    assert skillgit("train", "demo").code == usual
    ended = skillgit("train", "demo", "--exit-code", "--json")
    assert (ended.code, json.loads(ended.out)["exit_code"]) == (strict, strict)


def test_an_error_with_a_result_prints_it_as_json_only(skillgit, fake):
    error = BudgetError("the cap", hint="more")
    error.result = replace(TRAINED, outcome=RunOutcome.BUDGET, exit_code=ExitCode.BUDGET)
    fake("train.train.train", error)
    ended = skillgit("train", "demo", "--json")
    assert (ended.code, json.loads(ended.out)["outcome"]) == (7, "budget")
    assert ended.err == "skillgit: the cap\nhint: more\n"
    assert skillgit("train", "demo").out == b""


def test_remarks_stand_among_the_events(skillgit, monkeypatch):
    def run(context: object, request: object, watcher: LineWatcher) -> Trained:
        del context, request
        watcher.happened(sample.REJECTED_EVENT, sample.oid("4b9ede6"))
        watcher.remark("5 steps in a row brought nothing")
        return TRAINED

    monkeypatch.setattr("skillgit.app.train.train.train", run)
    assert skillgit("train", "demo").err.splitlines()[-1] == "5 steps in a row brought nothing"
    assert not skillgit("train", "demo", "-q").err


def test_status_shows_the_diagnosis(skillgit, fake):
    diagnosis = Diagnosis(cause=Cause.CEILING, steps=5, sentence="5 steps in a row brought nothing: ceiling")
    fake("history.status.status", replace(sample.STATUS, diagnosis=diagnosis))
    assert "diagnosis   5 steps in a row brought nothing: ceiling" in skillgit("status").text.splitlines()
    document = json.loads(skillgit("status", "--json").out)
    assert document["diagnosis"]["cause"] == "ceiling"


@pytest.mark.parametrize(("error", "code"), [(StoppedError, 130), (BudgetError, 7), (NotLoadedError, 9)])
def test_a_stopped_run_says_how_to_go_on(error, code, skillgit, fake):
    fake("train.train.train", error("run x is stopped", hint="skillgit train demo --run x goes on"))
    ended = skillgit("train", "demo")
    assert ended.code == code
    assert ended.err == "skillgit: run x is stopped\nhint: skillgit train demo --run x goes on\n"


def test_train_as_json(skillgit, fake):
    fake("train.train.train", TRAINED)
    document = json.loads(skillgit("train", "demo", "--json").out)
    assert document["schema"] == "skillgit.train/1"
    assert document["report"][1] == {"label": "best", "version": 8, "selection": 0.75, "test": 0.71, "loads": None}
    assert (document["outcome"], document["exit_code"]) == ("improved", 0)


def test_a_dry_run_trains_nothing(skillgit, fake):
    fake("train.train.plan_train", Plan(command="train", total=total_of(())))
    trained = fake("train.train.train", TRAINED)
    assert skillgit("train", "demo", "--dry-run").text.endswith("nothing was run or written\n")
    assert not trained


@pytest.mark.parametrize("option", ["--max-calls", "--max-tokens", "--max-usd"])
def test_caps_are_positive(option, skillgit):
    ended = skillgit("train", "demo", option, "0")
    assert ended.code == ExitCode.USAGE
    assert option in ended.err


def watched(monkeypatch) -> None:
    def run(context: object, request: object, watcher: LineWatcher) -> Trained:
        del context, request
        watcher.happened(sample.STARTED_EVENT, sample.oid("d15ea5e"))
        watcher.progress(Look())
        watcher.happened(sample.ACCEPTED_EVENT, sample.oid("9f1c2ab"))
        watcher.happened(sample.REJECTED_EVENT, sample.oid("4b9ede6"))
        watcher.happened(sample.SKIPPED_EVENT, sample.oid("e0d1c55"))
        return TRAINED

    monkeypatch.setattr("skillgit.app.train.train.train", run)


def test_on_a_pipe_each_event_is_one_line_on_stderr(skillgit, monkeypatch):
    watched(monkeypatch)
    ended = skillgit("train", "demo")
    assert ended.text == TRAINED_TEXT
    assert ended.err.splitlines() == [
        "run searchqa-20261121-7k2m",
        "2026-11-21T17:10:00Z        0  ○  v0   .5500          run: train skills/searchqa on searchqa    d15ea5e",
        "2026-11-21T17:10:00Z    17/40  ●  v7   .7250 +.0250   skill: answer in the unit asked for       9f1c2ab",
        "2026-11-21T17:10:00Z    18/40  ×  r18  .6750 -.0500   skill: one-word answers                   4b9ede6",  # noqa: RUF001 - the sign
        "2026-11-21T17:10:00Z    15/40  ·  s15                 no usable patch                           e0d1c55",
    ]


def test_quiet_means_quiet(skillgit, monkeypatch):
    watched(monkeypatch)
    assert not skillgit("train", "demo", "-q").err


def drawn(watcher: LiveWatcher, columns: int) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, color_system=None)
    with console.capture() as capture:
        console.print(watcher)
    return capture.get().splitlines()


def live(columns: int, screen: Screen) -> tuple[LiveWatcher, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, width=columns, color_system=None)
    return LiveWatcher(Diagnostics(stream, screen), lambda: sample.NOW, console), stream


def test_the_live_display_shows_place_stage_scores_cost_and_time_left():
    watcher, stream = live(100, Screen(terminal=True, width=100))
    assert drawn(watcher, 100) == ["preparing"]
    watcher.progress(Look(step=17, done=0))
    watcher.progress(Look())
    watcher.happened(sample.ACCEPTED_EVENT, sample.oid("9f1c2ab"))
    assert drawn(watcher, 100) == [
        "▶ ━━━━━━━━───────────  43%  epoch 2/4  step 18/40  rollout 32/40",
        "  about 17 min left · current .7250 · best .7500 · 212 calls · 521k tokens · $0.84",
    ]
    assert stream.getvalue().splitlines()[0] == "run searchqa-20261121-7k2m"


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_the_live_display_never_wraps(columns):
    watcher, _ = live(columns, Screen(terminal=True, width=columns, unicode=False))
    watcher.progress(Look())
    lines = drawn(watcher, columns)
    assert len(lines) == 2
    assert all(line.isascii() and len(line) < columns for line in lines)
