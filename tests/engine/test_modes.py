"""Update modes, edit budgets, accumulation and the ways to merge, on the toy task."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest
from toy import ONE_STEP, SEED, WORDS, History, ToyBackend, ToyEnvironment, run_to_end, trainer
from update_modes import SCRIPT, body, listed, missing

from skillgit.domain.document_rewrite import UpdateMode, rewritten
from skillgit.domain.edit import Edit, Op, apply
from skillgit.domain.event import CANDIDATES
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import BudgetSource
from skillgit.domain.skill import Skill

KEEP = "<!-- skillgit:keep -->\n- people say so\n<!-- /skillgit:keep -->"
SLOW = "<!-- skillgit:slow -->\n- guidance\n<!-- /skillgit:slow -->"


def run(script=None, *, skill: Skill | None = None, **sections) -> tuple[History, ToyBackend]:
    backend, history = ToyBackend(script=SCRIPT | (script or {})), History()
    made = trainer(backend, history, environment=Environment(skill), **sections)
    if skill is not None:
        object.__setattr__(made.start, "skill", skill)
    return asyncio.run(run_to_end(made, history)), backend


class Environment(ToyEnvironment):
    def __init__(self, skill: Skill | None) -> None:
        super().__init__()
        self.skill = skill or SEED

    def seed_skill(self) -> Skill:
        return self.skill


def kinds(backend: ToyBackend) -> Counter[str]:
    headings = (
        request.messages[0].text.splitlines()[0] for request in backend.requests if request.model == "optimizer"
    )
    return Counter(heading.removeprefix("# ") for heading in headings)


def many(prompt: str) -> str:
    edits = [
        {"op": "append", "content": f"- {word} {number}", "items": []} for number, word in enumerate(missing(prompt))
    ]
    return json.dumps({"edits": edits})


REWRITES = (UpdateMode.SUGGESTIONS, UpdateMode.FULL)


@pytest.mark.parametrize("mode", UpdateMode)
def test_a_run_learns_in_every_update_mode(mode):
    history, _ = run(optimizer={"skill_update_mode": mode})
    accepted = [transition.event for transition in history if transition.event.kind is EventKind.ACCEPTED]
    assert len(accepted) >= 3
    assert history[-1].event.kind is EventKind.RUN_FINISHED
    assert {event.patch.mode for event in accepted} == {mode}
    state = history.state()
    assert state.evaluation(state.version).hard == 1.0


@pytest.mark.parametrize("mode", UpdateMode)
def test_the_evidence_applied_to_the_base_gives_the_committed_skill(mode):
    history, _ = run(optimizer={"skill_update_mode": mode})
    for transition in history:
        event = transition.event
        if event.kind not in CANDIDATES:
            continue
        patch = json.loads(transition.evidence["patch.json"])
        base = history.skill(event.base)
        if mode is UpdateMode.PATCH:
            edits = [Edit(op=Op(e["op"]), anchor=e["anchor"], content=e["content"]) for e in patch["edits"]]
            assert apply(base, edits).skill == transition.skill
        else:
            assert rewritten(base, patch["rewrite"]) == transition.skill
        assert event.edits


@pytest.mark.parametrize("mode", REWRITES)
def test_a_rewrite_keeps_frontmatter_keep_regions_and_slow_region(mode):
    seed = Skill("toy", {"SKILL.md": f"{SEED.document}\n{KEEP}\n\n{SLOW}\n".encode()})
    history, backend = run(skill=seed, optimizer={"skill_update_mode": mode, "use_slow_update": False})
    skills = [t.skill for t in history if t.skill is not None]
    assert len(skills) > 3
    for skill in skills:
        assert skill.document.startswith("---\nname: toy\ndescription: Toy.\n---\n")
        assert skill.document.count(KEEP) == skill.document.count(SLOW) == 1
    prompts = [r.messages for r in backend.requests if r.messages[0].text.startswith(("# Rewrite", "# Merge rewrites"))]
    assert prompts
    for messages in prompts:
        assert "skillgit:" not in body(messages[1].text)
        assert body(messages[1].text).count("[[protected:") == 2


@pytest.mark.parametrize(
    ("mode", "heading"), [(UpdateMode.SUGGESTIONS, "Rewrite the skill"), (UpdateMode.FULL, "Rewrite from failures")]
)
def test_a_rewrite_that_loses_a_placeholder_is_asked_for_once_more_and_is_then_a_recorded_failure(mode, heading):
    seed = Skill("toy", {"SKILL.md": f"{SEED.document}\n{KEEP}\n".encode()})
    careless = {heading: lambda _: json.dumps({"body": "# Toy\n\n- amber birch coral dune"})}
    history, backend = run(careless, skill=seed, train=ONE_STEP, optimizer={"skill_update_mode": mode})
    skipped = history[1].event
    assert skipped.kind is EventKind.SKIPPED
    assert skipped.title in {"no usable rewrite", "no usable reply"}
    again = [r for r in backend.requests if len(r.messages) == 4]
    assert len(again) == 1
    assert "[[protected:1]] is missing" in again[0].messages[-1].text
    assert kinds(backend)[heading] == 2


def test_a_rewrite_that_is_mended_at_the_second_attempt_is_used():
    seed = Skill("toy", {"SKILL.md": f"{SEED.document}\n{KEEP}\n".encode()})
    answers = iter([json.dumps({"body": "# lost"}), json.dumps({"body": "# Toy\n\n- amber\n\n[[protected:1]]"})])
    history, _ = run(
        {"Rewrite the skill": lambda _: next(answers)},
        skill=seed,
        train=ONE_STEP,
        optimizer={"skill_update_mode": "rewrite_from_suggestions"},
    )
    assert history[1].event.kind is EventKind.ACCEPTED
    assert KEEP in history[1].skill.document


def test_a_text_inside_a_reply_may_hold_code_fences():
    text = "# Toy\n\n- amber\n\n```bash\necho\n```"
    reply = f"Here:\n```json\n{json.dumps({'title': 't', 'body': text})}\n```"
    history, _ = run(
        {"Rewrite the skill": lambda _: reply},
        train=ONE_STEP,
        optimizer={"skill_update_mode": "rewrite_from_suggestions"},
    )
    assert history[1].skill.document.endswith(f"{text}\n")


def test_a_rewrite_that_changes_nothing_costs_no_evaluation():
    history, backend = run(
        {"Rewrite the skill": lambda prompt: json.dumps({"body": body(prompt)})},
        train=ONE_STEP,
        optimizer={"skill_update_mode": "rewrite_from_suggestions"},
    )
    assert history[1].event.title == "the rewrite leaves the skill as it was"
    assert sum(request.model == "target" for request in backend.requests) == 8 + 8 + 8


def test_suggestions_are_ranked_within_the_budget_and_carried_out_in_one_call():
    def suggest_all(prompt: str) -> str:
        found = [{"type": "add_rule", "title": word, "instruction": f"add {word}"} for word in missing(prompt)]
        return json.dumps({"suggestions": found})

    script = {
        "Suggest changes from failures": suggest_all,
        "Rank suggestions": lambda _: json.dumps({"selected": [3, 1]}),
        "Edit budget": lambda _: json.dumps({"edits": 2}),
    }
    optimizer = {"skill_update_mode": "suggestions", "lr_control_mode": "autonomous"}
    history, backend = run(script, train=ONE_STEP, optimizer=optimizer)
    event = history[1].event
    assert (event.patch.merged, event.patch.ranked, event.patch.budget) == (4, 2, 2)
    assert kinds(backend)["Rewrite the skill"] == 1
    told = json.loads(history[1].evidence["patch.json"])["suggestions"]
    assert [entry["title"] for entry in told] == ["dune", "birch"]
    assert history[1].skill.document.endswith("- dune\n- birch\n")


def test_whole_documents_know_neither_ranking_nor_budget():
    history, backend = run(
        train=ONE_STEP, gradient={"minibatch_size": 2}, optimizer={"skill_update_mode": "full_rewrite_minibatch"}
    )
    event = history[1].event
    assert event.kind is EventKind.ACCEPTED
    assert (event.patch.budget, event.patch.by) == (None, BudgetSource.NONE)
    assert kinds(backend)["Rank edits"] == kinds(backend)["Edit budget"] == 0
    assert not any("<budget>" in r.messages[1].text for r in backend.requests if r.model == "optimizer")


def test_after_a_failed_merge_of_documents_the_best_supported_one_is_kept_and_the_failure_recorded():
    history, _ = run(
        {"Merge rewrites": lambda _: "no"},
        train=ONE_STEP,
        gradient={"minibatch_size": 3},
        optimizer={"skill_update_mode": "full_rewrite_minibatch"},
    )
    assert history[1].event.kind is EventKind.ACCEPTED
    assert json.loads(history[1].evidence["findings.json"])["unusable_calls"] == ["merge"]


@pytest.mark.parametrize(
    ("said", "budget", "by"),
    [
        (2, 2, BudgetSource.OPTIMIZER),
        (2.0, 2, BudgetSource.OPTIMIZER),
        ("about 3", 3, BudgetSource.OPTIMIZER),
        (99, 4, BudgetSource.OPTIMIZER),
        ("some", 3, BudgetSource.FALLBACK),
        (True, 3, BudgetSource.FALLBACK),
        (None, 3, BudgetSource.FALLBACK),
    ],
)
def test_the_optimizer_sets_the_budget_and_the_schedule_holds_where_its_answer_cannot_be_used(said, budget, by):
    optimizer = {"lr_control_mode": "autonomous", "lr_scheduler": "constant", "learning_rate": 3}
    script = {
        "Analyse failures": lambda p: json.dumps({"edits": json.loads(many(p))["edits"]}),
        "Edit budget": lambda _: json.dumps({"edits": said}),
        "Rank edits": lambda _: json.dumps({"selected": [0, 1, 2, 3]}),
    }
    history, _ = run(script, train=ONE_STEP, gradient={"minibatch_size": 1}, optimizer=optimizer)
    event = history[1].event
    assert (event.patch.budget, event.patch.by) == (min(budget, event.patch.merged), by)
    assert event.patch.applied == event.patch.budget
    told = json.loads(history[1].evidence["budget.json"])
    assert (told["budget"], told["by"], told["available"]) == (event.patch.budget, by, event.patch.merged)


@pytest.mark.parametrize("said", [0, -2, "-1"])
@pytest.mark.parametrize("aggregate", ["hierarchical", "one_call"])
def test_a_budget_of_zero_changes_nothing(said, aggregate):
    script = {"Analyse failures": many, "Edit budget": lambda _: json.dumps({"edits": said})}
    optimizer = {"lr_control_mode": "autonomous", "aggregate": aggregate}
    history, _ = run(script, train=ONE_STEP, optimizer=optimizer)
    event = history[1].event
    assert event.kind is EventKind.SKIPPED
    assert (event.patch.budget, event.patch.ranked, event.patch.by) == (0, 0, BudgetSource.OPTIMIZER)
    assert event.title == "the optimizer chose to change nothing"


def test_the_schedule_autonomous_is_the_control_mode_autonomous():
    history, backend = run(train=ONE_STEP, optimizer={"lr_scheduler": "autonomous"})
    assert history[1].event.patch.by is BudgetSource.OPTIMIZER
    assert kinds(backend)["Edit budget"] == 1


@pytest.mark.parametrize("scheduler", ["cosine", "autonomous"])
def test_no_budget_means_no_limit(scheduler):
    optimizer = {"lr_control_mode": "none", "learning_rate": 1, "min_learning_rate": 1, "lr_scheduler": scheduler}
    history, backend = run({"Analyse failures": many}, train=ONE_STEP, optimizer=optimizer)
    event = history[1].event
    assert event.patch.applied == event.patch.merged == len(WORDS)
    assert (event.patch.budget, event.patch.by) == (None, BudgetSource.NONE)
    assert kinds(backend)["Rank edits"] == 0
    assert any("<budget>none</budget>" in r.messages[1].text for r in backend.requests)


def test_more_edits_than_a_message_shows_can_be_made_without_a_budget():
    lots = {
        "Analyse failures": lambda _: json.dumps(
            {"edits": [{"op": "append", "content": f"- amber {n}"} for n in range(40)]}
        )
    }
    history, _ = run(lots, train=ONE_STEP, optimizer={"lr_control_mode": "none"})
    event = history[1].event
    assert event.patch.applied == 40
    assert len(event.edits) == 24


def test_merging_and_ranking_in_one_call_is_one_call_and_keeps_to_the_budget():
    optimizer = {"aggregate": "one_call", "learning_rate": 2, "min_learning_rate": 2}
    script = {"Analyse failures": many}
    history, backend = run(script, train=ONE_STEP, gradient={"minibatch_size": 1}, optimizer=optimizer)
    assert kinds(backend)["Merge and rank edits"] == 1
    assert kinds(backend)["Merge patches"] == kinds(backend)["Rank edits"] == 0
    assert history[1].event.patch.applied == 2
    prompt = next(r.messages[1].text for r in backend.requests if r.messages[0].text.startswith("# Merge and rank"))
    assert prompt.count("<skill") == 1
    assert "<budget>2</budget>" in prompt


def test_without_a_usable_reply_to_the_one_call_the_best_supported_edits_are_kept():
    optimizer = {"aggregate": "one_call", "learning_rate": 1, "min_learning_rate": 1}
    script = {"Analyse failures": many, "Merge and rank edits": lambda _: "no"}
    history, _ = run(script, train=ONE_STEP, gradient={"minibatch_size": 1}, optimizer=optimizer)
    assert history[1].event.patch.applied == 1
    assert json.loads(history[1].evidence["findings.json"])["unusable_calls"] == ["merge and rank"]


def test_what_several_analysts_propose_alike_is_joined_without_asking_anybody():
    same = lambda _: json.dumps({"edits": [{"op": "append", "content": "- amber", "items": ["none", "of these"]}]})  # noqa: E731
    history, backend = run({"Analyse failures": same}, train=ONE_STEP, gradient={"minibatch_size": 1})
    event = history[1].event
    assert kinds(backend)["Analyse failures"] == 8
    assert kinds(backend)["Merge patches"] == 0
    assert (event.patch.merged, event.edits[0].support) == (1, 8)


def test_the_support_of_a_merged_edit_is_counted_from_what_it_joins_and_not_believed():
    def boast(prompt: str) -> str:
        entries = listed(prompt, "edits")
        joined = {
            "op": "append",
            "content": "- amber birch",
            "support": 500,
            "joins": [entry["number"] for entry in entries],
        }
        return json.dumps({"edits": [joined]})

    history, _ = run({"Analyse failures": many, "Merge patches": boast}, train=ONE_STEP, gradient={"minibatch_size": 4})
    assert history[1].event.edits[0].support <= 8


def test_an_analyst_cannot_claim_more_trajectories_than_it_saw():
    boast = {
        "Analyse failures": lambda _: json.dumps({"edits": [{"op": "append", "content": "- amber", "support": 99}]})
    }
    history, _ = run(boast, train=ONE_STEP)
    assert history[1].event.edits[0].support == 8


@pytest.mark.parametrize(("accumulation", "size", "steps"), [(1, 2, 4), (2, 2, 2), (3, 2, 2), (4, 2, 1), (9, 3, 1)])
def test_a_step_has_as_many_batches_as_accumulation_says(accumulation, size, steps):
    history, backend = run(train={"num_epochs": 1, "batch_size": size, "accumulation": accumulation, "seed": 1})
    assert history.state().step == steps
    rolled = [json.loads(t.evidence["rollout.json"]) for t in history if "rollout.json" in t.evidence]
    seen = [row["id"] for rows in rolled for row in rows]
    assert sorted(seen) == sorted(set(seen)), "no item twice in an epoch"
    assert len(seen) == 8
    for prompt in (r.messages[1].text for r in backend.requests if "<trajectories" in r.messages[-1].text):
        assert prompt.count("<trajectory ") <= size


def test_all_batches_of_a_step_see_the_same_skill_and_history():
    _, backend = run(train={"num_epochs": 1, "batch_size": 2, "accumulation": 2, "seed": 1})
    prompts = [r.messages[1].text for r in backend.requests if r.messages[0].text.startswith("# Analyse failures")]
    before = [prompt.partition("<trajectories")[0] for prompt in prompts]
    first_step = [head for head in before if "<history>" not in head]
    assert len(first_step) == 2
    assert len(set(first_step)) == 1


def test_the_skill_stands_once_in_a_prompt():
    for optimizer in (
        {},
        {"skill_update_mode": "suggestions"},
        {"skill_update_mode": "full_rewrite"},
        {"aggregate": "one_call"},
    ):
        _, backend = run(train=ONE_STEP, gradient={"minibatch_size": 2}, optimizer=optimizer)
        prompts = [r.messages[1].text for r in backend.requests if r.model == "optimizer"]
        assert prompts
        assert all(f"\n{prompt}".count("\n<skill ") == prompt.count("\n- begin well") == 1 for prompt in prompts)
