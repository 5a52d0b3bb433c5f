"""What refine holds for any run: looks are small and only at train items, and one candidate a step is measured."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import cache
from itertools import count, product

import pytest
from branching import BranchingBackend, carried_out
from hypothesis import given
from hypothesis import strategies as st
from sample_run import clock_from
from toy import History, ToyBackend, run_to_end, trainer

from skillgit.app.upkeep.evidence_checks import look_problems
from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.evaluation import FailedToEvaluate, FailureKind, Metric, Scored
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import LOOKS
from skillgit.domain.trajectory import Item, Rollout
from skillgit.domain.untrusted.json_limits import loads
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.strategy import PARTIAL, DraftShape, LookResult, gains, helps
from skillgit.store.event_writer import RunWriter
from skillgit.strategies.refine import ATTEMPTS, DRAFTS, LOOKED_FAILING, LOOKED_SOLVED, Refine

SEEDS = range(1, 5)
OPTIONS = {
    "gate": {"screening": 0},
    "gradient": {"failure_only": True, "minibatch_size": 2},
    "optimizer": {"budget_unit": "rules", "use_slow_update": False},
}


def options(seed: int, **train) -> dict[str, dict[str, object]]:
    return {**OPTIONS, "train": {"seed": seed, **train}}


@cache
def run(seed: int) -> tuple[BranchingBackend, History]:
    return asyncio.run(carried_out("refine", **options(seed)))


def steps(seed: int):
    """Return the events of steps with their evidence and the looks in it."""
    for transition in run(seed)[1]:
        if transition.event.patch is not None:
            yield transition.event, transition.evidence, loads(transition.evidence.get(LOOKS, b"[]"))


@pytest.mark.parametrize("seed", SEEDS)
def test_looks_are_small_and_at_train_items_only_and_say_what_their_rollouts_say(seed):
    total = 0
    for _, evidence, looks in steps(seed):
        before = {row["id"]: row["hard"] for row in loads(evidence["rollout.json"])}
        assert len({look["draft"] for look in looks}) <= DRAFTS
        for look in looks:
            assert look["attempt"] <= ATTEMPTS
            assert look["failing"] <= LOOKED_FAILING
            assert look["solved"] <= LOOKED_SOLVED
            assert look["failing"] + look["solved"] == look["rollouts"]
            if look["rollouts"]:
                after = {
                    row["id"]: row["hard"] for row in loads(evidence[f"look-{look['draft']}-{look['attempt']}.json"])
                }
                assert set(after) <= set(before)
                assert look["fixed"] == [item for item in after if after[item] > before[item]]
                assert look["broken"] == [item for item in after if after[item] < before[item]]
                assert look["gain"] == sum(after.values()) - sum(before[item] for item in after)
                assert "partial" not in look, "the toy scores no parts of an answer"
                total += 1
    assert total > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_candidate_is_measured_only_if_a_draft_gained_and_the_reasons_say_what_each_draft_did(seed):
    for event, _, looks in steps(seed):
        last = {look["draft"]: look for look in looks}
        kept = [look for look in last.values() if look["ending"] == "kept"]
        judged = [look for look in kept if look["failing"] or look["shape"] == DraftShape.REMOVAL]
        assert all(helps(look["gain"], look.get("partial", look["gain"])) for look in judged)
        assert all(look["ending"] == "dropped" for look in last.values() if look not in kept)
        if looks:
            assert bool(kept) is (event.kind is not EventKind.SKIPPED)
            assert all(f"Draft {number} (" in event.why for number in last)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_pays_the_selection_split_once_at_most(seed):
    for event, _, _ in steps(seed):
        paid = sum(part.cost.calls for part in event.cost.parts if (part.role, part.stage) == ("target", "selection"))
        assert paid <= 16
        assert paid == 0 or event.kind is not EventKind.SKIPPED


@pytest.mark.parametrize("seed", SEEDS)
def test_the_budget_holds_in_rules_and_only_the_first_measured_text_is_outside_of_it(seed):
    is_used = False
    for event, _, _ in steps(seed):
        patch = event.patch
        is_text = patch.mode.proposals is ProposalKind.DOCUMENTS
        assert (patch.budget is None) is (is_text and not is_used and event.kind is not EventKind.SKIPPED)
        assert patch.budget is None or (patch.rules is not None and patch.rules <= patch.budget)
        is_used |= is_text and event.kind is not EventKind.SKIPPED
    assert is_used


def test_the_runs_have_drafts_of_every_shape_and_ending():
    looks = [look for seed in SEEDS for _, _, rows in steps(seed) for look in rows]
    assert {look["shape"] for look in looks} == {shape.value for shape in DraftShape}
    assert {look["ending"] for look in looks} == {"kept", "narrowed", "written again", "dropped"}
    assert any(look.get("objection") for look in looks)
    equal = [look for look in looks if look["shape"] == DraftShape.REMOVAL and look["rollouts"] and not look["gain"]]
    assert equal
    assert {look["ending"] for look in equal} == {"dropped"}, "an equal score is no reason to remove a rule"


def test_who_writes_a_draft_again_sees_the_tried_items_with_both_answers():
    prompts = [r.messages[1].text for r in run(1)[0].requests if "## A draft was tried" in r.messages[0].text]
    assert prompts
    for prompt in prompts:
        shown = prompt[prompt.index("<look") :]
        assert shown.count("<tried ") == shown.count("<answer_before>") == shown.count("<feedback>") > 0
        assert "selection" not in shown
        assert "<draft>" in prompt
        assert "<trajectories" not in prompt


def test_who_merges_drafts_sees_what_each_did():
    merges = [
        r.messages for s in SEEDS for r in run(s)[0].requests if "## The patches were tried" in r.messages[0].text
    ]
    kept = [
        look for s in SEEDS for _, _, rows in steps(s) for look in rows if look["ending"] == "kept" and look["rollouts"]
    ]
    effects = {
        f"fixed {len(look['fixed'])} of {look['failing']} and broke {len(look['broken'])} of {look['solved']}"
        for look in kept
    }
    assert merges
    for _, question in merges:
        section = question.text[question.text.index("<patches") :]
        rows = json.loads(section[section.index("[") : section.rindex("]") + 1])
        assert len(rows) > 1
        assert {row["tried"] for row in rows} <= effects


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_refine_is_what_fsck_expects(seed, repo):
    writer = RunWriter(repo, "toy-1", clock_from(count()))
    records = [writer.append(each.event, each.skill, each.evidence) for each in run(seed)[1]]
    steps_of_run = {record.commit for record in records if record.event.patch is not None}
    assert [each.sentence for each in check_run(repo, "toy-1") if each.commit in steps_of_run] == []


@pytest.mark.parametrize("mode", ["rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_other_update_modes_are_one_draft(mode):
    text = json.dumps({"title": "words", "body": "# Toy\n\n- begin\n- begin well\n- amber birch"})
    wish = {"type": "add_rule", "title": "w", "instruction": "Add amber.", "items": ["train0"]}
    script = {
        "Suggest changes from failures": lambda _: json.dumps({"suggestions": [wish]}),
        "Suggest changes from successes": lambda _: json.dumps({"suggestions": []}),
        "Merge suggestions": lambda _: json.dumps({"suggestions": [wish]}),
        "Rewrite the skill": lambda _: text,
        "Rewrite from failures": lambda _: text,
        "Rewrite from successes": lambda _: text,
        "Merge rewrites": lambda _: text,
    }
    history = History()
    made = trainer(ToyBackend(script=script), history, strategy=Refine(), optimizer={"skill_update_mode": mode})
    asyncio.run(run_to_end(made, history))
    [accepted] = [transition for transition in history if transition.event.kind is EventKind.ACCEPTED]
    assert accepted.event.patch.mode.value == mode
    assert {look["shape"] for look in loads(accepted.evidence[LOOKS])} == {"whole text"}


scores = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0]))


@given(st.lists(st.tuples(scores, scores), max_size=8))
def test_an_item_that_could_not_be_evaluated_is_neither_gain_nor_loss(pairs):
    def rollout(number: int, score: float | None) -> Rollout:
        outcome = FailedToEvaluate("down", FailureKind.PROVIDER) if score is None else Scored(float(score == 1), score)
        return Rollout(item=Item(id=f"i{number}", content={}), trajectory=None, outcome=outcome)

    before, after = (tuple(rollout(number, pair[side]) for number, pair in enumerate(pairs)) for side in range(2))
    rule = replace(MethodSettings().rule(), metric=Metric.SOFT)
    scored = [(old, new) for old, new in pairs if old is not None and new is not None]
    expected = pytest.approx(sum(new - old for old, new in scored))
    assert gains(before, after, rule) == (expected, expected)
    assert len(set(gains(before, after, rule))) == 1, "under the soft metric parts are all that there is"
    hard, soft = gains(before, after, replace(rule, metric=Metric.HARD))
    assert (hard, soft) == (sum(float(new == 1) - float(old == 1) for old, new in scored), expected)
    look = LookResult(
        draft=1,
        attempt=1,
        shape=DraftShape.EDITS,
        title="",
        proposals=(),
        tokens=0,
        before=before,
        after=after,
        gain=0.0,
    )
    assert len(look.fixed) == sum(old < 1 <= new for old, new in scored)
    assert len(look.broken) == sum(new < 1 <= old for old, new in scored)
    for whole, part in product((0.0, 1.0), (0.0, 0.5)):
        said = replace(look, gain=whole, partial=part).effect
        assert ("in parts of answers" in said) == bool(after and part and not whole), "only where whole ones are level"


@pytest.mark.parametrize(
    ("gain", "partial", "verdict"),
    [(1, 0.0, True), (1, -2.0, True), (0, PARTIAL, True), (0, PARTIAL / 2, False), (0, 0.0, False), (-1, 3.0, False)],
)
def test_parts_of_answers_count_where_whole_ones_are_level(gain, partial, verdict):
    assert helps(gain, partial) is verdict


def test_fsck_finds_looks_that_say_something_else_than_their_rollouts():
    event, evidence, looks = next(
        (event, evidence, looks) for event, evidence, looks in steps(1) if any(look["fixed"] for look in looks)
    )
    assert list(look_problems(event, evidence)) == []
    forged = [look | {"fixed": []} for look in looks]
    [sentence, *_] = look_problems(event, {**evidence, LOOKS: json.dumps(forged).encode()})
    assert "something else than the rollouts" in sentence
    dropped = [look | {"ending": "dropped"} for look in looks]
    problems = list(look_problems(event, {**evidence, LOOKS: json.dumps(dropped).encode()}))
    assert bool(problems) is (event.kind is not EventKind.SKIPPED)
    assert list(look_problems(event, {**evidence, LOOKS: b"[{"})) == [f"{LOOKS} in the evidence cannot be read"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_whole_text_names_the_items_that_it_was_written_for(seed):
    texts = [loads(each.evidence["patch.json"]) for each in run(seed)[1] if "patch.json" in each.evidence]
    texts = [patch for patch in texts if "rewrite" in patch]
    assert texts
    assert all(patch["items"] for patch in texts)
