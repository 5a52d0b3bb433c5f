"""What differs besides the text is named before any number, and then no test says what the text did."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from asking import ask
from hypothesis import given
from hypothesis import strategies as st
from once import copy_folder
from program import QUICK, skillgit
from soaking import sampled
from trained_runs import trained_run, user

from skillgit.app.history.diff.items import items
from skillgit.app.history.diff.stat import stat
from skillgit.app.history.log import log
from skillgit.app.history.requests import LogRequest
from skillgit.app.history.show import show
from skillgit.app.setup.comparable_conditions import Conditions, differences
from skillgit.app.setup.config.resolved import measuring_settings
from skillgit.domain.conditions import Aspect, matter
from skillgit.domain.served_model import ServedModel

if TYPE_CHECKING:
    from pathlib import Path

SERVER = ServedModel(backend="b", model="m", address="http://h:1/v1", facts=(("size", "1"),))
ONE = Conditions(
    target="b/m",
    judge="b/j@0123456789ab",
    environment="e",
    version="d1",
    items=frozenset({"s1"}),
    seed=1,
    parameters={"calls.temperature": None},
    servers={"target": SERVER},
)
OTHER = {
    Aspect.TARGET: {"target": "b/n"},
    Aspect.JUDGE: {"judge": "b/j@ba9876543210"},
    Aspect.SERVER: {"servers": {"target": replace(SERVER, address="http://h:2/v1")}},
    Aspect.ENVIRONMENT: {"version": "d2"},
    Aspect.ITEMS: {"items": frozenset({"s2"})},
    Aspect.PARAMETERS: {"parameters": {"calls.temperature": 0.5}},
    Aspect.SEED: {"seed": 2},
}
SHORT = ("-o", "train.num_epochs=1", "-o", "train.batch_size=40", "-o", "evaluation.eval_test=false")
"""For runs of which only the seed's measurement is looked at."""
RUNS = {
    "target": ("-o", "model.target=agent"),
    "items": ("-o", "evaluation.sel_env_num=15"),
    "parameters": ("-o", "calls.temperature=0.5"),
    "seed": ("-o", "train.seed=7"),
}


def test_every_aspect_is_tried():
    assert set(OTHER) == set(Aspect)


@given(st.sets(st.sampled_from(list(Aspect))))
def test_what_differs_is_named_and_nothing_else(changed):
    other = replace(ONE, **{name: value for aspect in changed for name, value in OTHER[aspect].items()})
    found = differences(ONE, other)
    assert {one.aspect for one in found} == changed
    assert matter(found) == bool(changed - {Aspect.SEED})
    back = differences(other, ONE)
    assert [(one.aspect, one.a, one.b) for one in back] == [(one.aspect, one.b, one.a) for one in found]
    for one in found:
        assert one.a != one.b
        assert one.sentence.startswith(one.aspect.value)
        assert one.a in one.sentence
        assert one.b in one.sentence


@pytest.mark.parametrize(
    "unknown",
    [{"items": frozenset()}, {"seed": None}, {"parameters": None}, {"judge": "b/j"}, {"servers": {}}],
    ids=str,
)
def test_what_is_not_known_is_no_difference(unknown):
    assert differences(ONE, replace(ONE, **unknown)) == differences(replace(ONE, **unknown), ONE) == ()


def test_only_settings_that_may_change_what_the_target_does_count():
    document = {
        "calls": {"temperature": 0.5, "concurrency": 4, "max_output_tokens": 9},
        "env": {"name": "e", "max_turns": 3, "data_path": "/x", "corpus_dir": "/y", "limit": 3, "exec_timeout": 9.0},
        "model": {
            "target": "m",
            "target_backend": "b",
            "b_thinking": True,
            "b_base_url": "http://x",
            "target_top_p": 0.9,
            "optimizer_top_p": 0.1,
            "other_thinking": True,
            "prices": {"m": [1, 2]},
            "target_reasoning_effort": "low",
        },
        "train": {"seed": 3},
        "optimizer": {"learning_rate": 3},
    }
    assert sorted(measuring_settings(document)) == [
        "calls.max_output_tokens",
        "calls.temperature",
        "env.max_turns",
        "model.b_thinking",
        "model.target_reasoning_effort",
        "model.target_top_p",
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the run ``one``."""
    return trained_run(tmp_path_factory, "one", *QUICK)


@pytest.mark.parametrize("aspect", sampled(RUNS, 4))
def test_two_runs_are_tested_against_each_other_only_where_they_measured_alike(runs, aspect, tmp_path):
    matters, runs = aspect != "seed", copy_folder(runs, tmp_path / "repository")
    skillgit("train", "demo", "--run", aspect, "-q", *QUICK, *SHORT, *RUNS[aspect], cwd=runs)
    found = ask(items, user(runs), f"{aspect}/v0", "one/best")
    assert [one.aspect.value for one in found.differs] == [aspect]
    assert (found.p is None, found.p_worse is None) == (matters, matters)
    assert ask(stat, user(runs), f"{aspect}/v0", "one/best").differs == found.differs
    text = skillgit("diff", f"{aspect}/v0", "one/best", "--items", cwd=runs).out
    first, *rest = text.splitlines()
    assert first == f"! {found.differs[0].sentence}"
    assert ("for a gain" in text or "for a loss" in text) == (not matters)
    assert ("p 0." in text or "p <" in text) == (not matters)
    assert any("fixed" in line for line in rest) == (not matters)
    document = json.loads(skillgit("diff", f"{aspect}/v0", "one/best", "--items", "--json", cwd=runs).out)
    assert (document["differs"][0]["aspect"], document["p"] is None) == (aspect, matters)
    brief = skillgit("diff", f"{aspect}/v0", "one/best", "--stat", cwd=runs).out
    assert f"! {found.differs[0].sentence}" in brief.splitlines()[-3]


def test_within_a_run_nothing_differs(runs):
    found = ask(items, user(runs), "one/v0", "one/best")
    assert found.differs == ()
    assert found.p is not None


def test_a_retest_under_another_model_names_it_first_and_tests_nothing(runs, tmp_path):
    repository = copy_folder(runs, tmp_path / "repository")
    text = skillgit("eval", "--fresh", "one/best", "--model", "offline/agent", "-q", "--no-note", cwd=repository).out
    assert text.splitlines()[0] == "! target differs: offline/reader against offline/agent"
    assert "p 0." not in text
    again = skillgit("eval", "--fresh", "one/best", "-q", "--no-note", cwd=repository).out
    assert not again.startswith("!")
    assert "p 1.0000" in again


def test_verify_and_eval_say_that_parameters_are_others(runs, tmp_path):
    repository = copy_folder(runs, tmp_path / "repository")
    said = "the parameters are calls.temperature=0.7 here, and were calls.temperature=none in run one"
    options = ("-o", "calls.temperature=0.7", "-q", "--no-note")
    verified = skillgit("eval", "--fresh", "--sample", "20", "one/best", *options, "--json", cwd=repository, code=1)
    assert json.loads(verified.out)["verdict"]["differs"] == [said]
    assert skillgit("eval", "one/best", *options, cwd=repository).err.splitlines()[0] == said


def test_items_that_nobody_measured_are_neither_fixed_nor_broken_nor_missing(runs):
    context = user(runs)
    stopped = [row for row in ask(log, context, LogRequest(words=("one",))).rows if row.bound]
    assert stopped
    for row in stopped:
        evaluation = ask(show, context, row.commit).event.evaluation
        name = f"one/r{row.step}"
        found = ask(items, context, "one/v0", name)
        assert (len(found.rows), len(found.not_measured)) == (evaluation.n, evaluation.unneeded)
        assert found.missing == ()
        kinds = (found.fixed, found.broken, found.stable_pass, found.stable_fail, found.not_measured)
        assert sorted(item for kind in kinds for item in kind) == [change.item for change in found.rows]
        assert {change.change for change in ask(show, context, row.commit).items} >= {"not-measured"}
        settled = f"{evaluation.unneeded} of {evaluation.n} not measured (the decision was settled)"
        for command in (("diff", "one/v0", name, "--items"), ("show", name)):
            text = skillgit(*command, cwd=runs).out
            assert settled in text
            assert "missing" not in text
        if not ask(show, context, row.commit).event.broken:
            among = f"broken among the {evaluation.n - evaluation.unneeded} measured"
            assert among in skillgit("show", name, cwd=runs).out


def test_outcomes_that_were_measured_under_other_parameters_are_not_known(runs):
    """What a run recorded stands for a measurement only where it was measured alike."""
    arguments = ("gate", "--base", "one/v0", "--head", "one/best", "--recorded-only", "--json")
    (alike,) = json.loads(skillgit(*arguments, cwd=runs).out)["skills"]
    assert (alike["word"], alike["base"]["missing"], alike["head"]["missing"]) == ("passes", 0, 0)
    ended = skillgit(*arguments, "--cfg-options", "calls.temperature=0.7", cwd=runs, code=21)
    (other,) = json.loads(ended.out)["skills"]
    assert (other["word"], other["base"]["recorded"], other["head"]["recorded"]) == ("incomplete", 0, 0)
