from __future__ import annotations

import asyncio
import json

import pytest
from paced import Held, target_on
from toy import SEED, WORDS, History, ToyBackend, ToyEnvironment, items, run, trainer

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.protected_regions import slow_guidance
from skillgit.domain.skill import MOST_DOCUMENT
from skillgit.engine.epoch_end import Category, compare_versions
from skillgit.engine.method_settings import OptimizerSettings, PairPolicy
from skillgit.engine.search import epoch_of, slow_sample, step_items

STILL = {"Analyse failures": lambda _: json.dumps({"edits": []})}
ALL_WORDS = SEED.with_text("SKILL.md", SEED.document + "".join(f"- {word}\n" for word in WORDS))
TWO_WORDS = SEED.with_text("SKILL.md", SEED.document + "- amber\n- birch\n")


def harmful(_: str) -> str:
    return json.dumps({"guidance": "- be silent"})


class Silenced(ToyEnvironment):
    """Everything is solved until the skill asks for silence."""

    async def rollout(self, item, skill, target):
        trajectory = await super().rollout(item, skill, target)
        object.__setattr__(
            trajectory, "answer", "no" if "silent" in skill.document else "yes" if item.id != "selection0" else "no"
        )
        return trajectory


def test_forced_guidance_is_merged_though_it_lowers_the_score_and_has_its_own_measured_one():
    options = {"slow_update_gate_with_selection": False}
    history = run(ToyBackend(script=STILL | {"Slow update": harmful}), environment=Silenced(), optimizer=options)
    proposed, merged = (
        transition.event
        for transition in history
        if transition.event.kind in {EventKind.SLOW_PROPOSED, EventKind.SLOW_MERGED}
    )
    assert proposed.verdict.decision is merged.verdict.decision is Decision.FORCE_ACCEPT
    assert not merged.verdict.gated
    state = history.state()
    assert state.evaluation(0).hard == 0.875
    assert (state.version, state.evaluation(1).hard) == (1, 0.0)
    assert state.best == 0, "a lower score is never the best"
    assert len(json.loads(next(t for t in history if t.event is proposed).evidence["selection.json"])) == 8


def test_forced_guidance_that_scores_best_is_the_new_best():
    history = run(ToyBackend(script=STILL), optimizer={"slow_update_gate_with_selection": False})
    state = history.state()
    assert (state.best, state.version, state.evaluation(1).hard) == (1, 1, 1.0)


def test_guidance_has_a_gate_of_its_own_in_a_run_without_one():
    history = run(
        ToyBackend(script=STILL | {"Slow update": harmful}), environment=Silenced(), evaluation={"use_gate": False}
    )
    proposed = next(t.event for t in history if t.event.kind is EventKind.SLOW_PROPOSED)
    assert proposed.verdict.decision is Decision.REJECT
    assert not any(t.event.kind is EventKind.SLOW_MERGED for t in history)


def test_what_is_measured_is_what_is_merged_even_where_a_secret_is_left_out():
    secret = "sk-" + "a1B2" * 12
    script = STILL | {"Slow update": lambda _: json.dumps({"guidance": f"- amber birch coral dune {secret}"})}
    backend = ToyBackend(script=script)
    history = run(backend)
    merged = next(t for t in history if t.event.kind is EventKind.SLOW_MERGED)
    seen = [r.messages[0].text for r in backend.requests if r.model == "target" and "amber birch" in r.messages[0].text]
    assert secret not in merged.skill.document
    assert {slow_guidance(text) for text in seen} == {slow_guidance(merged.skill.document)}


def test_guidance_beyond_what_a_skill_may_hold_is_not_measured():
    script = STILL | {"Slow update": lambda _: json.dumps({"guidance": "- amber\n" * (MOST_DOCUMENT // 8)})}
    history = run(ToyBackend(script=script))
    proposed = next(t.event for t in history if t.event.kind is EventKind.SLOW_PROPOSED)
    assert (proposed.title, proposed.verdict) == ("too long: a text is beyond what a skill can hold", None)
    assert not any(t.event.kind is EventKind.SLOW_MERGED for t in history)


def test_the_last_memory_that_is_not_empty_is_kept():
    answers = iter(["- first", ""])
    script = {"Optimizer memory": lambda _: json.dumps({"memory": next(answers)})}
    backend = ToyBackend(script=script)
    history = run(backend, train={"num_epochs": 4, "batch_size": 8, "seed": 1})
    events = [t.event for t in history if t.event.kind is EventKind.SLOW_PROPOSED]
    assert [event.memory for event in events] == ["- first"] * 3
    asked = [r for r in backend.requests if r.messages[0].text.startswith("# Optimizer memory")]
    assert len(asked) == 2, "none is written after the last epoch"
    assert history.state().optimizer_memory == "- first"


def compared(policy: PairPolicy, previous=SEED, current=TWO_WORDS, *, samples: int = 4, workers: int = 4, backend=None):
    history = History()
    made = trainer(
        backend or ToyBackend(),
        history,
        environment=Large(),
        optimizer={"longitudinal_pair_policy": policy, "slow_update_samples": samples},
    )
    object.__setattr__(made.session, "workers", workers)
    return asyncio.run(compare_versions(made.session, previous, current, 2))


class Large(ToyEnvironment):
    def items(self, split):
        return items(split.value, 40)


def test_changed_pairs_are_topped_up_from_other_train_items():
    pairs, rest = compared(PairPolicy.CHANGED, samples=12)
    assert [pair.category for pair in pairs] == [Category.IMPROVED] * 12
    assert compared(PairPolicy.CHANGED, samples=12, workers=1) == (pairs, rest)
    seen = [pair.current.item.id for pair in (*pairs, *rest)]
    assert len(seen) == len(set(seen))
    assert len(seen) == 12 + 8 * -(-(len(seen) - 12) // 8), "rounds have a fixed size"


def test_a_slow_pair_holds_back_no_round_that_is_needed_whatever_it_brings():
    sampled = slow_sample(items("train", 40), seed=1, epoch=2, size=12)
    names = {f"{item.id} " for item in sampled}

    def topping_up(request) -> bool:
        return not any(request.messages[1].text.startswith(name) for name in names)

    backend, plain = Held(target_on(f"{sampled[0].id} "), topping_up), ToyBackend()
    found = compared(PairPolicy.CHANGED, samples=12, workers=64, backend=backend)
    assert backend.overlapped
    assert found == compared(PairPolicy.CHANGED, samples=12, workers=1, backend=plain)
    assert len(backend.requests) == len(plain.requests)


def test_topping_up_ends_with_the_train_items():
    pairs, rest = compared(PairPolicy.CHANGED, TWO_WORDS, TWO_WORDS)
    assert (pairs, len(rest)) == ([], 40)
    assert len(compared(PairPolicy.CHANGED, samples=40)[0]) == 20


def test_unchanged_pairs_are_not_topped_up_and_mixed_ones_are_all():
    pairs, rest = compared(PairPolicy.UNCHANGED, samples=8)
    assert {pair.category for pair in pairs} == {Category.PERSISTENT_FAIL, Category.STABLE_SUCCESS} - (
        set() if any(pair.category is Category.STABLE_SUCCESS for pair in pairs) else {Category.STABLE_SUCCESS}
    )
    assert len(pairs) + len(rest) == 8
    assert len(compared(PairPolicy.MIXED, samples=8)[0]) == 8
    assert compared(PairPolicy.UNCHANGED, SEED, ALL_WORDS)[0] == []


def test_without_a_pair_that_counts_no_guidance_is_asked_for():
    backend = ToyBackend(script=STILL)
    history = run(backend, optimizer={"longitudinal_pair_policy": "changed"})
    assert [t.event.kind for t in history][:6] == [
        EventKind.RUN_STARTED,
        *[EventKind.SKIPPED] * 4,
        EventKind.SLOW_PROPOSED,
    ]
    assert not any(r.messages[0].text.startswith("# Slow update") for r in backend.requests)


def test_the_sample_of_an_epoch_is_not_the_batch_of_a_later_one():
    train = items("train", 200)
    for epoch in range(2, 8):
        sample = {item.id for item in slow_sample(train, seed=42, epoch=epoch, size=20)}
        for step in range(1, 41):
            batch = {item.id for item in step_items(train, seed=42, step=step, step_size=40)}
            assert not sample <= batch, f"epoch {epoch} equals a part of step {step} (epoch {epoch_of(step, 5)})"


@pytest.mark.parametrize(
    ("alias", "policy"),
    [
        *[(alias, PairPolicy.MIXED) for alias in ("mixed", "default", "random", "all")],
        *[(alias, PairPolicy.CHANGED) for alias in ("changed", "change", "delta", "10_01", "01_10")],
        *[(alias, PairPolicy.UNCHANGED) for alias in ("unchanged", "stable", "same", "00_11")],
    ],
)
def test_the_policies_have_the_names_of_the_reference(alias, policy):
    assert OptimizerSettings(longitudinal_pair_policy=alias).longitudinal_pair_policy is policy
