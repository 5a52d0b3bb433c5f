"""A run that cannot succeed says so before its first call; one that can says nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "engine"))

from toy import SEED, ToyBackend, ToyEnvironment, items

from skillgit.app.setup.plan import Bound, Plan, PlanRow, total_of
from skillgit.app.train.prospects import obstacles, with_unpaid
from skillgit.calls.client import Route
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Split
from skillgit.domain.statistics import sign_test
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.prompt_sections import skill_tokens
from skillgit.engine.search import Task

ROLES = ("target", "optimizer")


def setup_of(*, selection=20, window=None, **sections):
    settings = MethodSettings.model_validate(sections)
    environment = ToyEnvironment()
    parts = {split: items(split.value, selection if split is Split.SELECTION else 4) for split in Split}
    routes = {role: Route(backend=ToyBackend(), backend_name="toy", model=f"toy-{role}", price=None) for role in ROLES}
    windows = {f"toy-{role}": window for role in ROLES if window}
    values = SimpleNamespace(method=settings, model=SimpleNamespace(context_window=windows))
    task = Task(environment=environment, items=parts)
    return SimpleNamespace(config=SimpleNamespace(values=values), task=task, routes=routes)


def long(tokens, path="SKILL.md"):
    return SEED.with_text(path, ("" if path != "SKILL.md" else SEED.document) + "- word\n" * (tokens * 4 // 7))


def test_a_run_that_can_succeed_says_nothing():
    assert obstacles(setup_of(), SEED) == ()


@pytest.mark.parametrize("tokens", [4_980, 5_001, 9_200])
def test_a_text_without_room_for_a_rule_is_named_with_the_option_that_leads_out(tokens):
    skill = long(tokens)
    (sentence,) = obstacles(setup_of(), skill)
    assert f"{skill_tokens(skill):,} tokens and optimizer.max_skill_tokens allows 5,000" in sentence
    raised = int(sentence.rpartition("optimizer.max_skill_tokens=")[2])
    assert obstacles(setup_of(optimizer={"max_skill_tokens": raised}), skill) == ()
    assert obstacles(setup_of(optimizer={"files": ["references/*.md"]}), skill) == ()


def test_the_same_holds_for_other_files_that_steps_may_change():
    skill = long(9_000, "references/words.md")
    assert obstacles(setup_of(), skill) == ()
    (sentence,) = obstacles(setup_of(optimizer={"files": ["SKILL.md", "references/*.md"]}), skill)
    assert "references/words.md has about" in sentence
    assert "optimizer.max_file_tokens" in sentence


@given(st.integers(1, 30), st.sampled_from([0.05, 0.01, 0.2]))
def test_a_paired_gate_with_too_few_items_is_named_just_where_even_a_full_gain_is_chance(count, alpha):
    told = obstacles(setup_of(selection=count, gate={"policy": "paired", "alpha": alpha}), SEED)
    assert bool(told) is (sign_test(count, 0) > alpha)
    assert all("gate.policy=paired" in sentence and f"{count} selection items" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("sections", "hopeless"),
    [
        ({"gate": {"policy": "margin", "margin": 1.0}}, True),
        ({"gate": {"policy": "margin", "margin": 0.5}}, False),
        ({"gate": {"policy": "strict"}}, False),
        ({"gate": {"policy": "paired"}, "evaluation": {"use_gate": False}}, False),
        ({"gate": {"policy": "paired"}, "evaluation": {"gate_metric": "soft"}}, True),
    ],
)
def test_a_gate_that_takes_no_candidate_is_named(sections, hopeless):
    told = obstacles(setup_of(selection=3, **sections), SEED)
    assert bool(told) is hopeless
    assert all("no candidate can pass" in sentence for sentence in told)


@pytest.mark.parametrize(("window", "roles"), [(None, ()), (1_000_000, ()), (10, ROLES)])
def test_a_context_that_is_known_and_too_small_is_named(window, roles):
    told = obstacles(setup_of(window=window), SEED)
    assert [sentence.split(" of the ")[1].split(" ")[0] for sentence in told] == [*roles]


ROW = PlanRow(
    role="target",
    stage="baseline",
    model="m",
    calls=4,
    bound=Bound.EXACTLY,
    tokens_in=900,
    tokens_out=100,
    usd=2.0,
    seconds=None,
)


@pytest.mark.parametrize(
    ("caps", "named"),
    [
        (Caps(), ""),
        (Caps(max_tokens=1000, max_usd=2.0), ""),
        (Caps(max_tokens=999), "--max-tokens 999"),
        (Caps(max_usd=1.5), "--max-usd 1.5"),
    ],
)
def test_a_cap_below_the_baseline_is_named(caps, named):
    rows = (ROW, replace(ROW, stage="rollout"))
    plan = with_unpaid(Plan(command="train", stages=rows, total=total_of(rows), notes=("n",)), caps)
    assert plan.notes[-1] == "n"
    assert (named in plan.notes[0]) is True
    assert len(plan.notes) == 1 + bool(named)
