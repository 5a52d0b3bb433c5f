from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate_decision import GateRule, NoRegression, decide
from skillgit.domain.gate_policies import PAIRED, POLICIES
from skillgit.engine.measure import EarlyStop, order

if TYPE_CHECKING:
    from random import Random

PASS, FAIL, BROKEN = Scored(1.0, 1.0), Scored(0.0, 0.0), FailedToEvaluate("timeout")
OUTCOMES = st.sampled_from([PASS, PASS, FAIL, FAIL, Scored(0.0, 0.5), Scored(0.3, 0.3), BROKEN])
RULES = st.builds(
    GateRule, policy=st.sampled_from([*POLICIES.values()]), metric=st.sampled_from(Metric),
    soft_weight=st.sampled_from([0.0, 0.3]),
    min_coverage=st.sampled_from([0.0, 0.5, 0.9, 1.0]), enabled=st.sampled_from([True, True, True, False]),
    alpha=st.sampled_from([0.05, 0.3, 0.6]), margin=st.sampled_from([0.0, 0.05, 0.3]),
    no_regression=st.sampled_from(NoRegression), pinned=st.frozensets(st.sampled_from(["q0", "q1", "q9"])),
)  # fmt: skip


def evaluation(outcomes) -> Evaluation:
    named = {f"q{place}": outcome for place, outcome in enumerate(outcomes)}
    return Evaluation(split=Split.SELECTION, item_set="x", seed=1, outcomes=named)


@st.composite
def tables(draw, most=24):
    size = draw(st.integers(0, most))
    base = draw(st.lists(OUTCOMES, min_size=size, max_size=size))
    other = draw(st.lists(OUTCOMES, min_size=size, max_size=size))
    kept = draw(st.sampled_from([0.0, 0.5, 0.9]))
    keeps = draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    mixed = [old if keep < kept else new for old, new, keep in zip(base, other, keeps, strict=True)]
    return evaluation(base), evaluation(mixed)


def one_by_one(rule: GateRule, base: Evaluation, candidate: Evaluation, wave: int) -> tuple[int, int | None]:
    """Evaluate item by item; return how many are rolled out and how many of them are needed."""
    stop = EarlyStop(rule, base, wave)
    for item in stop.items:
        if stop.needed is not None:
            break
        stop.take(item, candidate.outcomes[item])
    return stop.sure, stop.needed


@dataclass
class Chase:
    """An evaluation whose items end in an order that ``random`` picks."""

    rule: GateRule
    base: Evaluation
    candidate: Evaluation
    wave: int
    random: Random
    workers: int = 64
    rolled: list[str] = field(default_factory=list)
    refused_early: bool = False

    def run(self) -> EarlyStop:
        look = EarlyStop(self.rule, self.base, self.wave)
        waiting, running = list(look.items[: look.sure]), []
        while waiting or running:
            while waiting and len(running) < self.workers:
                running.append(waiting.pop(0))
            item = running.pop(self.random.randrange(len(running)))
            self.rolled.append(item)
            look.take(item, self.candidate.outcomes[item])
            before = look.sure
            look.look()
            assert look.sure >= before
            waiting = [one for one in look.items[: look.sure] if one not in {*self.rolled, *running}]
            self.refused_early = self.refused_early or look.refused
        return look


@examples(1.5)
@given(RULES, tables(), st.integers(1, 8), st.integers(1, 30), st.randoms(use_true_random=False))
def test_neither_order_nor_workers_say_which_items_are_rolled_out(rule, table, wave, workers, random):
    base, candidate = table
    rolled, needed = one_by_one(rule, base, candidate, wave)
    chase = Chase(rule=rule, base=base, candidate=candidate, wave=wave, random=random, workers=workers)
    look = chase.run()
    assert (sorted(chase.rolled), look.needed) == (sorted(order(base, rule)[:rolled]), needed)
    if chase.refused_early:
        assert not decide(rule, candidate, base).decision.accepted


def sides(solved: int, failed: int) -> Evaluation:
    """The failed items come first in the order of evaluation."""
    return evaluation([FAIL] * failed + [PASS] * solved)


def look_at(base: Evaluation, rule: GateRule | None = None) -> EarlyStop:
    return EarlyStop(rule or GateRule(), base, 8)


def test_all_items_that_may_have_to_be_looked_at_first_start_at_once():
    assert look_at(sides(60, 40)).sure == 40


def test_a_slow_item_holds_back_only_what_hangs_on_it():
    """Ten of forty are fixed while the first is still open: ten must break before it can be refused."""
    look = look_at(sides(60, 40))
    for place in range(1, 40):
        look.take(f"q{place}", PASS if place <= 10 else FAIL)
    assert look.sure == 40
    look.look()
    assert look.sure == 50
    look.take("q0", FAIL)
    assert look.sure == 50
    assert look.needed is None


def test_a_refusal_is_known_before_the_stragglers_of_its_wave_have_ended():
    look = look_at(sides(60, 4))
    for place in (0, 1, 2):
        look.take(f"q{place}", FAIL)
    assert not look.refused
    look.take("q3", FAIL)
    assert look.refused
    assert look.needed is None, "the wave is paid for in full"
    for place in range(4, 8):
        look.take(f"q{place}", PASS)
    assert (look.needed, look.sure) == (4, 8)


@pytest.mark.parametrize(("metric", "certain"), [(Metric.HARD, True), (Metric.SOFT, False)])
def test_the_paired_test_of_partial_scores_is_left_to_the_ends_of_waves(metric, certain):
    look = look_at(sides(60, 40), GateRule(policy=PAIRED, metric=metric, alpha=0.3))
    for place in range(1, 40):
        look.take(f"q{place}", PASS)
    before = look.sure
    look.look()
    assert (look.sure > before) is certain


def test_a_base_that_solves_everything_needs_no_rollout():
    look = look_at(sides(5, 0))
    assert (look.sure, look.needed, look.refused) == (0, 0, False)
