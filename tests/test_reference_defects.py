"""Defects of the reference implementation that skillgit does not have, one test each; the names are the list.

The numbers are those of the survey of the reference: 1.4 edge behaviour, 2 edits, 5 selection of edits, 6 schedules, 9
step buffer, 10 slow update and memory, 12.3 crashes and resuming, 12.4 other weaknesses.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from once import copy_folder
from program import QUICK, git, new_repository, refs, skillgit
from remembered import remembered
from toy import SEED, History, ToyBackend, ToyEnvironment, analyse, run_to_end, trainer
from trained_runs import trained_run

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.document_rewrite import RewriteError, rewritten
from skillgit.domain.edit import Edit, EditStatus, Op, apply
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Scored, Split
from skillgit.domain.event import Event, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, GateRule, decide
from skillgit.domain.gate_policies import PAIRED
from skillgit.domain.protected_regions import SLOW_END, SLOW_START, slow_guidance, with_slow_guidance
from skillgit.domain.run_state import fold
from skillgit.domain.skill import Skill
from skillgit.engine.candidate import edit_budget
from skillgit.engine.method_settings import OptimizerSettings
from skillgit.engine.prompt_sections import history_section
from skillgit.engine.replies import FailurePattern
from skillgit.engine.search import slow_sample, step_items
from skillgit.errors import BudgetError, ConfigError, DataError, FatalBackendError, InvariantError, ProviderFailureError
from skillgit.plugin.redaction import redact
from skillgit.plugin.splits import check, divide

if TYPE_CHECKING:
    from pathlib import Path

ONE_STEP = {"num_epochs": 1, "batch_size": 8, "seed": 1}
NO_SLOW = {"use_slow_update": False, "use_meta_skill": False}


def run(backend=None, *, history=None, **options) -> History:
    """Train on the toy."""
    history = History() if history is None else history
    options = {"train": ONE_STEP} | options
    return asyncio.run(run_to_end(trainer(backend or ToyBackend(), history, **options), history))


def proposing(*edits, **reply) -> ToyBackend:
    """Return a toy whose analysts of failures propose ``edits``."""
    text = json.dumps({"title": "t", "reasoning": "r", "edits": list(edits)} | reply)
    return ToyBackend(script={"Analyse failures": lambda _: text})


def append(content: str, **more) -> dict[str, object]:
    return {"op": "append", "content": content} | more


def targets(backend: ToyBackend) -> int:
    return sum(request.model == "target" for request in backend.requests)


def prompts(backend: ToyBackend, kind: str) -> list[str]:
    return [
        "\n".join(message.text for message in request.messages[1:])
        for request in backend.requests
        if request.model == "optimizer" and request.messages[0].text.startswith(f"# {kind}")
    ]


def events(history: History, kind: EventKind) -> list:
    return [transition.event for transition in history if transition.event.kind is kind]


def document(body: str) -> Skill:
    return Skill("s", {"SKILL.md": f"---\nname: s\ndescription: D.\n---\n\n{body}".encode()})


def status(skill: Skill, edit: Edit) -> EditStatus:
    (report,) = apply(skill, [edit]).reports
    assert report.status is EditStatus.APPLIED or apply(skill, [edit]).skill == skill
    return report.status


# 1.4 edge behaviour


def test_1_4_without_failures_and_with_failure_only_a_step_is_a_recorded_skip_that_cost_no_optimizer_call():
    backend, history = ToyBackend(), History()
    made = trainer(backend, history, train=ONE_STEP, gradient={"failure_only": True})
    solved = SEED.with_text("SKILL.md", SEED.document + "- amber birch coral dune\n")
    object.__setattr__(made.start, "skill", solved)
    asyncio.run(run_to_end(made, history))
    assert [event.title for event in events(history, EventKind.SKIPPED)] == ["all train items of the step are solved"]
    assert not [request for request in backend.requests if request.model == "optimizer"]


def test_1_4_an_empty_merge_is_a_skip_and_no_paid_evaluation():
    related = {"Analyse failures": lambda text: analyse(text).replace('"- ', '"- word ')}
    backend = ToyBackend(script=related | {"Merge patches": lambda _: json.dumps({"edits": []})})
    history = run(backend, gradient={"minibatch_size": 2})
    assert events(history, EventKind.SKIPPED)
    assert targets(backend) == 3 * 8, "baseline, batch, test"


def test_1_4_edits_that_all_fail_to_apply_are_a_skip_and_no_paid_evaluation():
    backend = proposing({"op": "replace", "anchor": "nowhere", "content": "x"})
    assert events(run(backend), EventKind.SKIPPED)
    assert targets(backend) == 3 * 8


def test_1_4_an_unparsable_analyst_is_asked_once_more_and_then_counted():
    backend = ToyBackend(script={"Analyse failures": lambda _: "no JSON here"})
    history = run(backend)
    assert len(prompts(backend, "Analyse failures")) == 2
    assert json.loads(history[1].evidence["findings.json"])["unusable_replies"] == 1


def test_1_4_an_empty_selection_split_is_an_error_and_not_a_score_of_zero():
    with pytest.raises(DataError):
        divide(ToyEnvironment().items(Split.TRAIN)[:3], "2:1:70", 42)


def test_1_4_a_fraction_of_a_hard_score_is_a_failure_for_every_stage_alike():
    class Partial(ToyEnvironment):
        async def score(self, item, trajectory, judge):
            scored, feedback = await super().score(item, trajectory, judge)
            return Scored(max(scored.hard, 0.3), scored.soft), feedback

    backend = ToyBackend()
    run(backend, environment=Partial())
    assert prompts(backend, "Analyse failures")
    assert not prompts(backend, "Analyse successes")
    assert not Scored(0.3, 0.3).passed


# 2 edits


def test_2_an_empty_append_changes_no_byte():
    assert status(SEED, Edit(op=Op.APPEND, content="  \n")) is EditStatus.INVALID


def test_2_an_insert_whose_target_is_missing_is_never_appended_instead():
    assert status(SEED, Edit(op=Op.INSERT_AFTER, anchor="nowhere", content="x")) is EditStatus.ANCHOR_MISSING


def test_2_an_ambiguous_target_is_reported_and_not_guessed():
    assert status(SEED, Edit(op=Op.DELETE, anchor="begin")) is EditStatus.AMBIGUOUS


def test_2_the_same_text_does_not_land_twice():
    made = apply(SEED, [Edit(op=Op.APPEND, content="- new"), Edit(op=Op.APPEND, content="*  NEW.")])
    assert [report.status for report in made.reports] == [EditStatus.APPLIED, EditStatus.DUPLICATE]


def test_2_deleting_a_line_leaves_no_blank_lines_behind():
    made = apply(document("One.\n\nTwo.\n\nThree.\n"), [Edit(op=Op.DELETE, anchor="Two.")])
    assert made.skill.document.endswith("One.\n\nThree.\n")


@pytest.mark.parametrize("count", ["about a dozen", None, [], {}, 3.5, "7 of 8"])
def test_2_a_count_that_is_no_number_kills_no_run(count):
    finding = {"pattern": "p", "count": count, "items": ["train1"]}
    history = run(proposing(append("- amber", support=count), findings=[finding], batch_size=count))
    assert events(history, EventKind.ACCEPTED)


def test_2_support_is_no_larger_than_what_the_analyst_saw():
    history = run(proposing(append("- amber", support=999)))
    assert events(history, EventKind.ACCEPTED)[0].edits[0].support <= 8


REGION = f"{SLOW_START}\nkept guidance\n{SLOW_END}\n"


def test_2_4_a_target_that_runs_into_a_protected_region_cannot_erase_it():
    skill = document(f"Body.\n\n{REGION}")
    assert status(skill, Edit(op=Op.DELETE, anchor=f"Body.\n\n{SLOW_START}\nkept")) is EditStatus.PROTECTED


def test_2_4_a_marker_without_its_partner_protects_too_much_and_never_too_little():
    skill = document(f"Body.\n\n{SLOW_START}\nkept guidance\n")
    assert status(skill, Edit(op=Op.REPLACE, anchor="kept guidance", content="x")) is EditStatus.PROTECTED


def test_2_4_text_that_stands_in_a_region_and_in_the_body_is_edited_in_the_body():
    skill = document(f"{REGION}\nkept guidance\n")
    made = apply(skill, [Edit(op=Op.REPLACE, anchor="kept guidance", content="changed")])
    assert slow_guidance(made.skill.document) == "kept guidance"
    assert made.skill.document.endswith("\nchanged\n")


def test_2_4_an_edit_cannot_bring_a_marker_of_its_own():
    assert status(SEED, Edit(op=Op.APPEND, content=f"{SLOW_START}\nmine\n{SLOW_END}")) is EditStatus.INVALID


def test_2_4_writing_the_slow_region_changes_no_other_byte():
    body = "a\n\n\n\nb  \n\n"
    skill = document(f"{body}{REGION}\n\n\nc\n")
    assert with_slow_guidance(skill.document, "new").replace("new", "kept guidance") == skill.document


@pytest.mark.parametrize("mode", ["rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_2_4_a_rewrite_cannot_drop_a_region_or_the_frontmatter(mode):
    skill = document(f"Body.\n\n{REGION}")
    try:
        made = rewritten(skill, "Something else altogether.\n")
    except RewriteError:
        return
    assert slow_guidance(made.document) == "kept guidance", mode
    assert made.document.startswith("---\nname: s\n")


# 5 selection of edits

MANY = [append(f"- rule {number}", support=number + 1) for number in range(6)]


def own_rules(prompt: str) -> str:
    """Propose a rule of its own for each of the first trajectories that an analyst is shown."""
    names = ("amethyst", "basalt", "citrine", "diorite", "emerald", "feldspar", "garnet", "hematite")
    shown = [names[int(number)] for number in re.findall(r'trajectory id="train(\d)"', prompt)]
    edits = [append(f"- {name}", support=1 + place) for place, name in enumerate(shown)]
    return json.dumps({"title": "t", "reasoning": "r", "edits": edits})


def selecting(reply: object) -> Event:
    """Return what becomes of four merged edits of two analysts with a budget of two, ranked by ``reply``."""
    script = {"Analyse failures": own_rules, "Rank edits": lambda _: json.dumps(reply)}
    optimizer = {"learning_rate": 2, "min_learning_rate": 1, "lr_scheduler": "constant"}
    backend = ToyBackend(script=script)
    event = run(backend, optimizer=optimizer, gradient={"minibatch_size": 4})[1].event
    assert prompts(backend, "Rank edits")
    assert event.patch.merged == 4
    return event


def test_5_a_budget_of_zero_selects_nothing():
    backend = proposing(*MANY)
    backend.script["Edit budget"] = lambda _: json.dumps({"edits": 0, "reasoning": "enough"})
    history = run(backend, optimizer={"lr_control_mode": "autonomous"})
    assert history[1].event.kind is EventKind.SKIPPED
    assert history[1].event.patch.applied == 0


def test_5_true_is_no_index():
    kept = [change.text for change in selecting({"selected": [1]}).changes]
    assert kept not in [[change.text for change in selecting({"selected": [true]}).changes] for true in (True, "true")]


@pytest.mark.parametrize("reply", [{"selected": ["x"]}, {"selected": []}, {"nothing": 1}, {"selected": [99]}])
def test_5_without_a_usable_ranking_the_edits_with_the_most_support_are_kept(reply):
    assert selecting(reply).patch.applied == 2


def test_5_an_edit_that_is_selected_twice_counts_once():
    assert len(selecting({"selected": [0, 0, 0]}).changes) == 1


# 6 schedules


def test_6_skipped_steps_do_not_shift_the_schedule_nor_does_resuming():
    optimizer = {"learning_rate": 8, "min_learning_rate": 2, "lr_scheduler": "linear"}
    train = {"num_epochs": 6, "batch_size": 8, "seed": 1}
    wanted = [edit_budget(OptimizerSettings(**optimizer), step, 6) for step in range(1, 7)]
    nothing = ToyBackend(script={"Analyse failures": lambda _: json.dumps({"edits": []})})
    skipped = run(nothing, train=train, optimizer=optimizer | {"use_slow_update": False, "use_meta_skill": False})
    assert [event.patch.budget for event in events(skipped, EventKind.SKIPPED)] == wanted


@pytest.mark.parametrize("scheduler", ["linear", "cosine"])
def test_6_no_schedule_leaves_its_bounds(scheduler):
    settings = OptimizerSettings(learning_rate=7, min_learning_rate=3, lr_scheduler=scheduler)
    budgets = [edit_budget(settings, step, 13) for step in range(1, 14)]
    assert budgets == sorted(budgets, reverse=True)
    assert (max(budgets), min(budgets)) == (7, 3)


def test_6_a_floor_above_the_ceiling_is_refused():
    with pytest.raises(ValueError, match="min_learning_rate"):
        OptimizerSettings(learning_rate=2, min_learning_rate=4)


def test_6_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match="lr_scheduler"):
        OptimizerSettings(lr_scheduler="cosin")


def test_6_the_control_mode_none_means_no_budget():
    history = run(proposing(*MANY), optimizer={"lr_control_mode": "none", "learning_rate": 1, "min_learning_rate": 1})
    patch = history[1].event.patch
    assert (patch.budget, patch.applied) == (None, 6)


def test_6_the_scheduled_budget_reaches_the_analysts():
    backend = proposing(*MANY)
    run(backend, optimizer={"learning_rate": 3, "min_learning_rate": 3})
    assert "<budget>3</budget>" in prompts(backend, "Analyse failures")[0]


def test_6_a_budget_that_the_optimizer_did_not_say_falls_back_to_the_schedule_and_not_to_zero():
    backend = proposing(append("- amber"))
    backend.script["Edit budget"] = lambda _: "I would rather not say."
    history = run(backend, optimizer={"lr_control_mode": "autonomous"})
    assert history[1].event.kind is EventKind.ACCEPTED


# 9 step buffer

USELESS = append("- useless advice")


def test_9_the_memory_of_rejected_edits_outlives_the_epoch():
    backend = proposing(USELESS)
    run(backend, train={"num_epochs": 2, "batch_size": 8, "seed": 1})
    assert "useless advice" not in prompts(backend, "Analyse failures")[0]
    assert "+ - useless advice" in prompts(backend, "Analyse failures")[1]


def test_9_the_memory_of_rejected_edits_outlives_a_restart():
    whole, history, ledger, backend = ToyBackend(), History(), Ledger.in_memory(), ToyBackend()
    run(whole, train={"num_epochs": 2, "batch_size": 4, "seed": 1})
    with pytest.raises(BudgetError):
        run(
            backend,
            history=history,
            ledger=ledger,
            caps=Caps(max_calls=45),
            train={"batch_size": 4, "seed": 1, "num_epochs": 2},
        )
    again = ToyBackend()
    run(again, history=history, ledger=ledger, train={"num_epochs": 2, "batch_size": 4, "seed": 1})
    found = prompts(backend, "Analyse failures") + prompts(again, "Analyse failures")
    assert found == prompts(whole, "Analyse failures")


def test_9_the_memory_counts_the_held_out_items_that_an_edit_broke():
    memory = remembered(
        epoch=1, step=1, decision=Decision.REJECT, title="t", score=0.1, current=0.2, broken=("q7", "q9")
    )
    shown = history_section([memory])
    assert "0 items fixed, 2 broken" in shown
    assert "q7" not in shown


def test_9_accepted_edits_are_remembered_with_their_effect():
    backend = ToyBackend()
    run(backend, train={"num_epochs": 1, "batch_size": 4, "seed": 1})
    assert re.search(r"step 1 .*accept_new_best 0\.2500 .*0\.0000", prompts(backend, "Analyse failures")[1])


def test_9_the_memory_has_a_length():
    memory = [
        remembered(epoch=1, step=step, decision=Decision.REJECT, title="title " * 9, why="", broken=("q" * 90,) * 40)
        for step in range(1, 400)
    ]
    assert len(history_section(memory)) < 40_000


def test_9_a_pattern_keeps_its_own_count_and_items():
    backend = proposing(
        append("- amber"),
        findings=[{"pattern": "a", "count": 1, "items": ["train1"]}, {"pattern": "b", "count": 2, "items": ["train2"]}],
    )
    found = json.loads(run(backend)[1].evidence["findings.json"])["findings"]
    assert {row["pattern"]: row["items"] for row in found} == {"a": ["train1"], "b": ["train2"]}
    assert FailurePattern(pattern="a").items == ()


def test_9_ranking_sees_what_was_rejected_before():
    backend = proposing(*MANY)
    optimizer = {"learning_rate": 1, "min_learning_rate": 1}
    run(
        backend,
        train={"num_epochs": 2, "batch_size": 8, "seed": 1},
        optimizer=optimizer,
        gradient={"minibatch_size": 2},
    )
    ranked = prompts(backend, "Rank edits")
    assert not ranked or "<history>" in ranked[-1]


# 10 slow update and memory

NOTHING = {"Analyse failures": lambda _: json.dumps({"edits": []})}
FORCED = {"slow_update_gate_with_selection": False}
TWO_EPOCHS = {"num_epochs": 2, "batch_size": 8, "seed": 1}


def test_10_the_first_epoch_changes_no_byte_of_the_skill():
    history = run(ToyBackend(script=NOTHING))
    assert all(transition.skill in (None, SEED) for transition in history)


@given(st.integers(0, 50), st.integers(5, 80))
def test_10_the_sample_of_a_slow_update_is_no_part_of_another_epochs_shuffle(seed, count):
    items = [replace(item, id=f"t{n}") for n, item in enumerate(ToyEnvironment().items(Split.TRAIN) * 10)][:count]
    sample = slow_sample(items, seed=seed, epoch=2, size=len(items))
    others = [step_items(items, seed=seed, step=epoch, step_size=count) for epoch in range(1, 9)]
    assert count < 8 or all(sample != other for other in others)


def test_10_guidance_that_is_merged_without_a_gate_has_a_score_of_its_own():
    history = run(ToyBackend(script=NOTHING), train=TWO_EPOCHS, optimizer=FORCED)
    (merged,) = events(history, EventKind.SLOW_MERGED)
    assert merged.evaluation.hard == 1.0, "measured, not taken over from the 0.0 before it"
    assert history.state().evaluation(1).hard == 1.0
    assert history.state().best == 1


def test_10_guidance_that_harms_is_known_to_harm_even_without_a_gate():
    class Spoilt(ToyBackend):
        def _target(self, messages):
            return "no" if "spoil" in messages[0].text else super()._target(messages)

    backend = Spoilt(script=NOTHING | {"Slow update": lambda _: json.dumps({"guidance": "- spoil everything"})})
    history = History()
    made = trainer(backend, history, train=TWO_EPOCHS, optimizer=FORCED)
    object.__setattr__(made.start, "skill", SEED.with_text("SKILL.md", SEED.document + "- amber\n"))
    asyncio.run(run_to_end(made, history))
    state = history.state()
    assert (state.evaluation(0).hard, state.evaluation(1).hard, state.best) == (0.25, 0.0, 0)


def test_10_no_memory_is_computed_after_the_last_epoch():
    backend = ToyBackend()
    run(backend, train=TWO_EPOCHS)
    assert prompts(backend, "Slow update")
    assert not prompts(backend, "Optimizer memory")


def test_10_an_epoch_without_anything_to_remember_erases_no_memory():
    answers = iter(["- words help"])
    backend = ToyBackend(
        script=NOTHING
        | {"Slow update": lambda _: json.dumps({"guidance": ""})}
        | {"Optimizer memory": lambda _: json.dumps({"memory": next(answers, "")})}
    )
    history = run(backend, train={"num_epochs": 4, "batch_size": 8, "seed": 1})
    assert len(events(history, EventKind.SLOW_PROPOSED)) == 3
    assert history.state().optimizer_memory == "- words help"
    assert "<memory>\n- words help" in prompts(backend, "Analyse failures")[-1]


def test_10_the_prompt_says_how_many_pairs_there_really_are():
    backend = ToyBackend(script=NOTHING)
    run(backend, train=TWO_EPOCHS, optimizer={"slow_update_samples": 5})
    (prompt,) = prompts(backend, "Slow update")
    counts = dict(re.findall(r'(\w+)="(\d+)"', re.search(r"<comparison[^>]*>", prompt).group()))
    shown = ("regressed", "persistent_fail", "improved", "stable_success")
    assert sum(int(counts[name]) for name in shown) == 5
    assert "20 " not in "".join(re.findall(r"\b20 tasks", prompt))


# 12.3 crashes and resuming


def test_12_3_1_a_rollout_is_known_by_skill_item_and_model_and_by_no_folder():
    ledger, backend = Ledger.in_memory(), ToyBackend()
    run(backend, ledger=ledger)
    first = targets(backend)
    run(backend, ledger=ledger)
    assert targets(backend) == first, "the same work is not paid for twice"
    history = History()
    other = trainer(backend, history, ledger=ledger, train=ONE_STEP)
    other = replace(other, start=replace(other.start, skill=SEED.with_text("SKILL.md", SEED.document + "- dune\n")))
    asyncio.run(run_to_end(other, history))
    assert history[0].event.evaluation.hard == 0.25, "another skill is never given the outcomes of this one"


def test_12_3_2_a_crash_loses_no_finished_rollout_and_scores_no_part_of_a_split():
    ledger, history, backend = Ledger.in_memory(), History(), ToyBackend()
    with pytest.raises(BudgetError):
        run(backend, history=history, ledger=ledger, caps=Caps(max_calls=5))
    assert history == []
    again = ToyBackend()
    run(again, history=history, ledger=ledger)
    assert history[0].event.evaluation.scored == 8
    assert targets(backend) + targets(again) == targets_of_a_whole_run()


def targets_of_a_whole_run() -> int:
    backend = ToyBackend()
    run(backend)
    return targets(backend)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_folder(trained_run(tmp_path_factory, "demo", *QUICK), tmp_path_factory.mktemp("defects") / "run")


def test_12_3_3_a_finished_run_is_not_trained_on_under_its_old_test_results(trained):
    before = refs(trained)
    longer = ("-o", "train.num_epochs=3")
    refused = skillgit("train", "demo", "--run", "demo", *QUICK, *longer, cwd=trained, code=2)
    assert "another configuration" in refused.err
    assert refs(trained) == before


def test_12_3_4_a_score_of_exactly_zero_is_a_score():
    state = run(ToyBackend(script=NOTHING), train=TWO_EPOCHS | {"num_epochs": 1}).state()
    assert state.evaluation(0).hard == 0.0
    history, ledger, backend = History(), Ledger.in_memory(), ToyBackend(script=NOTHING)
    with pytest.raises(BudgetError):
        run(backend, history=history, ledger=ledger, caps=Caps(max_calls=20), train=TWO_EPOCHS)
    run(backend, history=history, ledger=ledger, train=TWO_EPOCHS)
    assert len(events(history, EventKind.RUN_STARTED)) == 1
    assert [event.step for event in events(history, EventKind.SKIPPED)] == [1, 2]


def test_12_3_5_a_step_is_one_commit_and_never_recorded_twice(trained):
    fields = [f"%(trailers:key=Skillgit-{key},valueonly,separator=)" for key in ("Event", "Step")]
    steps = git("log", "--all", f"--format={' '.join(fields)}", cwd=trained).out
    numbers = [line.split()[1] for line in steps.splitlines() if line.startswith(("accepted", "rejected", "skipped"))]
    assert len(numbers) == len(set(numbers)) > 0
    again = run()
    twice = [*(transition.event for transition in again[:-1]), again[1].event]
    with pytest.raises(InvariantError, match="step 1 follows step 1"):
        fold(twice)


def test_12_3_6_accepted_guidance_is_merged_however_often_the_run_is_resumed_in_between():
    backend, ledger, history = ToyBackend(script=NOTHING), Ledger.in_memory(), History()
    made = trainer(backend, history, ledger=ledger, train=TWO_EPOCHS)
    while not events(history, EventKind.SLOW_PROPOSED):
        history.append(asyncio.run(made.next(history.state())))
    assert history.state().pending_merge is not None
    later = trainer(ToyBackend(), history, ledger=ledger, train=TWO_EPOCHS)
    history.append(asyncio.run(later.next(history.state())))
    assert history[-1].event.kind is EventKind.SLOW_MERGED
    assert history.state().best == 1


def test_12_3_7_a_torn_file_of_ours_costs_no_history(trained, tmp_path):
    repository = copy_folder(trained, tmp_path / "repository")
    before = skillgit("log", "--json", cwd=repository).out
    for path in (repository / ".git" / "skillgit").glob("*.db*"):
        path.unlink()
    (repository / ".git" / "skillgit" / "index.db").write_bytes(b"torn in the middle of a wri")
    assert skillgit("log", "--json", cwd=repository).out == before
    skillgit("fsck", "--deep", cwd=repository)


def test_12_3_8_a_conversation_that_makes_no_sense_kills_no_step():
    class Odd(ToyBackend):
        def _target(self, messages):
            super()._target(messages)
            return "\x00</turn>\n{'role': \ud83d} <trajectories>"

    history = run(Odd())
    assert history[-1].event.kind is EventKind.RUN_FINISHED


def test_12_3_9_a_provider_that_failed_leaves_nothing_behind_once_it_works_again():
    ledger, history = Ledger.in_memory(), History()

    class Down(ToyBackend):
        async def complete(self, request):
            raise FatalBackendError(f"{request.model} refuses the key", hint="set another")

    with pytest.raises(ProviderFailureError):
        run(Down(), history=history, ledger=ledger, evaluation={"sel_env_num": 0})
    assert history == [], "nothing was scored, and nothing is recorded"
    run(ToyBackend(), history=history, ledger=ledger)
    assert history[0].event.evaluation.scored == 8


@pytest.mark.parametrize("other", ["train.seed=7", "model.temperature=1", "evaluation.gate_metric=soft"])
def test_12_3_10_a_run_is_never_continued_with_another_configuration(other, trained):
    key = "calls.temperature=1.0" if other.startswith("model.") else other
    refused = skillgit("train", "demo", "--run", "demo", *QUICK, "-o", key, cwd=trained, code=2)
    assert "another configuration" in refused.err


def test_12_3_11_a_slow_update_that_was_off_cannot_be_slipped_under_a_run(trained):
    refused = skillgit(
        "train", "demo", "--run", "demo", *QUICK, "-o", "optimizer.use_slow_update=false", cwd=trained, code=2
    )
    assert "another configuration" in refused.err
    skillgit("fsck", "--deep", cwd=trained)


# 12.4 other weaknesses


def evaluation(*outcomes: Scored | FailedToEvaluate) -> Evaluation:
    named = {f"q{number}": outcome for number, outcome in enumerate(outcomes)}
    return Evaluation(split=Split.SELECTION, item_set="s", outcomes=named, seed=1)


def test_12_4_an_infrastructure_failure_is_never_a_score():
    environment = ToyEnvironment(broken=frozenset({"selection0", "train0"}))
    backend = ToyBackend()
    history = run(backend, environment=environment)
    baseline = history[0].event.evaluation
    assert (baseline.n, baseline.scored) == (8, 7)
    assert not any('id="train0"' in prompt for prompt in prompts(backend, "Analyse failures"))


def test_12_4_too_many_failures_of_infrastructure_make_the_gate_indecisive():
    base = evaluation(*[Scored(0, 0)] * 10)
    candidate = evaluation(*[Scored(1, 1)] * 8, *[FailedToEvaluate("timeout")] * 2)
    assert decide(GateRule(), candidate, base, 0.0).decision is Decision.INDECISIVE


def test_12_4_noise_can_be_kept_from_being_accepted():
    base = evaluation(*[Scored(0, 0)] * 20, *[Scored(1, 1)] * 20)
    lucky = evaluation(Scored(1, 1), *[Scored(0, 0)] * 19, *[Scored(1, 1)] * 20)
    assert decide(GateRule(), lucky, base, 0.5).decision.accepted, "the paper's gate believes one item"
    assert not decide(GateRule(policy=PAIRED), lucky, base, 0.5).decision.accepted


def test_12_4_a_run_can_measure_its_own_false_accepts():
    finished = run(train=ONE_STEP | {"placebo": 2})[-1].event
    assert (finished.placebo.n, finished.placebo.rate) == (2, 0.0)


def test_12_4_means_do_not_depend_on_the_order_of_completion():
    scores = [0.1, 0.2, 0.3, 0.7, 1e-17, 0.6]
    means = {evaluation(*(Scored(0, soft) for soft in order)).summary().soft for order in permutations(scores)}
    assert len(means) == 1


def test_12_4_no_score_is_handed_on_to_a_text_that_was_not_measured():
    history = run(ToyBackend(script=NOTHING), train=TWO_EPOCHS | {"num_epochs": 3}, optimizer=FORCED)
    for transition in history:
        if transition.event.kind is EventKind.SLOW_MERGED:
            proposed = next(
                event for event in events(history, EventKind.SLOW_PROPOSED) if event.epoch == transition.event.epoch
            )
            assert transition.event.evaluation == proposed.evaluation


def test_12_4_a_candidate_that_changes_nothing_can_never_be_a_new_best():
    assert not events(run(proposing(append("- begin"))), EventKind.ACCEPTED)


def test_12_4_the_bonus_for_shouting_words_is_refused(tmp_path):
    repository = new_repository(tmp_path / "repository")
    density = ("-o", "evaluation.use_semantic_density=true")
    assert "not supported" in skillgit("train", "demo", "--dry-run", *density, cwd=repository, code=2).err


def test_12_4_what_is_best_is_always_a_version_that_was_measured():
    state = run(train={"num_epochs": 2, "batch_size": 4, "seed": 1}, evaluation={"eval_test": False}).state()
    assert state.evaluation(state.best).scored == 8


@pytest.mark.parametrize(
    "key", ["azure_openai_api_key", "optimizer_azure_openai_api_key", "qwen_chat_api_key", "minimax_api_key", "api_key"]
)
def test_12_4_a_key_never_enters_a_configuration(key, tmp_path):
    repository = new_repository(tmp_path / "repository")
    refused = skillgit("train", "demo", "--dry-run", "-o", f"model.{key}=hush-hush-1", cwd=repository, code=2)
    assert "holds a secret" in refused.err
    assert "hush" not in refused.err


def test_12_4_what_looks_like_a_key_never_enters_history():
    middle = "a1B2c3D4" * 6
    key = f"sk-ant-api03-{middle}"
    assert middle not in redact(f"it says {key}")
    history = run(proposing(append(f"- use {key}"), append("- amber")))
    assert history[1].event.patch.applied == 1
    assert not any(middle.encode() in content for content in history[1].evidence.values())


def test_12_4_a_prompt_has_a_length():
    class Chatty(ToyBackend):
        def _target(self, messages):
            return super()._target(messages) + " so to speak" * 3_000

    backend = Chatty()
    run(backend, gradient={"max_trajectory_tokens": 500})
    longest = max(len(prompt) for prompt in prompts(backend, "Analyse failures"))
    assert longest < 8 * 500 * 4 * 2


def test_12_4_every_call_is_counted_and_a_cap_holds():
    backend = ToyBackend()
    history = run(backend)
    assert history.state().cost.calls == len(backend.requests)
    capped = ToyBackend()
    with pytest.raises(BudgetError):
        run(capped, caps=Caps(max_calls=10))
    assert len(capped.requests) == 10


def test_12_4_costs_outlive_a_restart():
    ledger, history, first, second = Ledger.in_memory(), History(), ToyBackend(), ToyBackend()
    with pytest.raises(BudgetError):
        run(first, history=history, ledger=ledger, caps=Caps(max_calls=20))
    run(second, history=history, ledger=ledger)
    assert history.state().cost.calls == len(first.requests) + len(second.requests)


def test_12_4_workers_and_completion_order_change_nothing():
    class Shuffled(ToyBackend):
        async def complete(self, request):
            for _ in range(len(request.messages[-1].text) % 7):
                await asyncio.sleep(0)
            return await super().complete(request)

    runs = []
    for backend, workers in ((ToyBackend(), 1), (Shuffled(), 16)):
        history = run(backend, gradient={"analyst_workers": workers, "minibatch_size": 2})
        runs.append([(transition.event, transition.evidence) for transition in history])
    assert runs[0] == runs[1]


def test_12_4_scores_are_told_under_the_metric_that_was_compared():
    history = run(evaluation={"gate_metric": "soft"})
    verdict = events(history, EventKind.ACCEPTED)[0].verdict
    assert verdict.metric == "soft"
    assert verdict.score == events(history, EventKind.ACCEPTED)[0].evaluation.soft


def test_12_4_every_skip_is_counted_whatever_its_reason():
    history = run(proposing({"op": "delete", "anchor": "nowhere"}), train=TWO_EPOCHS, optimizer=NO_SLOW)
    assert [step.decision for step in history.state().memory] == [None, None]
    assert history[-1].event.outcome is RunOutcome.NO_CANDIDATES


def test_12_4_a_known_outcome_is_not_rolled_out_again_in_a_later_epoch():
    backend = proposing(USELESS)
    run(
        backend,
        train={"num_epochs": 3, "batch_size": 8, "seed": 1},
        optimizer=NO_SLOW,
    )
    batches = 8
    assert targets(backend) == 8 + batches + 8 + 8, "baseline, one pass over train, one candidate, test"


def test_12_4_splits_that_share_an_item_are_refused():
    items = ToyEnvironment().items(Split.TRAIN)
    with pytest.raises((DataError, ConfigError)):
        check({Split.TRAIN: items, Split.SELECTION: items[:2], Split.TEST: items[2:4]})
