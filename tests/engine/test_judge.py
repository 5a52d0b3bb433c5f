from __future__ import annotations

import asyncio
import json

import pytest
from toy import SEED, History, ToyBackend, ToyEnvironment, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_decision import Decision, NoRegression
from skillgit.engine.measure import WAVE, evaluate, measure, order
from skillgit.engine.search import Search, Session
from skillgit.errors import EnvironmentFaultError

HALF = SEED.with_text("SKILL.md", SEED.document + "\n- amber birch\n")
"""Solves the items that need amber or birch: half of them."""


class Toy:
    """A run of the toy task that has begun with ``HALF``, with ``count`` selection items."""

    def __init__(self, backend=None, *, count=8, environment=None, **sections) -> None:
        self.backend = backend or ToyBackend()
        self.environment = environment or ToyEnvironment()
        self.history = History()
        self.trainer = trainer(self.backend, self.history, environment=self.environment, **sections)
        session = self.trainer.session
        items = dict(session.task.items)
        from toy import items as made  # noqa: PLC0415 - a name of its own here

        items[Split.SELECTION] = made("selection", count)
        task = type(session.task)(environment=self.environment, items=items)
        self.session = Session(
            **{name: getattr(session, name) for name in Session.__dataclass_fields__ if name != "task"}, task=task
        )
        object.__setattr__(self.trainer, "session", self.session)
        object.__setattr__(self.trainer.start, "skill", HALF)
        self.history.append(asyncio.run(self.trainer.next(None)))

    def judged(self, text: str, **options):
        self.asked = len(self.backend.requests)
        candidate = HALF.with_text("SKILL.md", text)
        search = Search.of(self.session, self.history.state(), self.history)
        found = asyncio.run(measure(search, candidate, **options))
        self.asked = len(self.backend.requests) - self.asked
        return found


def without(*words: str) -> str:
    text = HALF.document
    for word in words:
        text = text.replace(word, "")
    return text


def test_a_candidate_that_fixes_nothing_is_given_up_after_the_failed_items():
    toy = Toy(count=40)
    found = toy.judged(HALF.document + "\n- nothing new\n")
    assert found.verdict.decision is Decision.REJECT
    assert (found.evaluation.n, found.evaluation.scored, found.evaluation.unneeded) == (40, 20, 20)
    assert found.evaluation.stopped
    assert (found.verdict.score, found.verdict.current) == (0.5, 0.5)
    assert toy.asked == 20
    rows = json.loads(found.evidence["selection.json"])
    assert len(rows) == 20
    assert {row["hard"] for row in rows} == {0.0}


def test_waves_are_completed_and_what_was_not_needed_is_not_recorded():
    """It fixes ten of twenty and then breaks amber: each wave is paid, the record ends where it was certain."""
    toy = Toy(count=40)
    found = toy.judged(without("amber") + "\n- coral\n")
    summary = found.evaluation
    assert found.verdict.decision is Decision.REJECT
    assert summary.scored + summary.unneeded == 40
    assert toy.asked == summary.scored + summary.spare
    assert summary.spare < WAVE
    assert len(found.fixed) == len(found.broken) == 10
    assert found.verdict.score <= found.verdict.current


def test_an_accepted_candidate_is_evaluated_in_full():
    toy = Toy(count=40)
    found = toy.judged(HALF.document + "\n- coral\n")
    assert found.verdict.decision is Decision.ACCEPT_NEW_BEST
    assert (found.evaluation.scored, found.evaluation.stopped) == (40, False)
    assert found.verdict.score == 0.75


def test_early_stop_can_be_switched_off_without_another_decision():
    toy = Toy(count=40, gate={"early_stop": False})
    found = toy.judged(HALF.document + "\n- nothing new\n")
    assert found.verdict.decision is Decision.REJECT
    assert found.evaluation.scored == 40


def test_without_a_gate_nothing_is_stopped():
    toy = Toy(count=40)
    found = toy.judged(without("amber"), has_gate=False)
    assert found.verdict.decision is Decision.FORCE_ACCEPT
    assert found.evaluation.scored == 40
    assert not found.verdict.gated


@pytest.mark.parametrize("workers", [1, 3, 64])
def test_neither_workers_nor_the_order_of_completion_change_what_is_asked_and_recorded(workers):
    class Jumbled(ToyEnvironment):
        async def rollout(self, item, skill, target):
            for _ in range(hash(item.id) % 7):
                await asyncio.sleep(0)
            return await super().rollout(item, skill, target)

    toy, other = Toy(count=40), Toy(count=40, environment=Jumbled())
    object.__setattr__(other.session, "workers", workers)
    text = without("amber") + "\n- coral\n"
    one, two = toy.judged(text), other.judged(text)
    assert (one, toy.asked) == (two, other.asked)


def test_the_order_of_evaluation_begins_with_what_the_base_failed():
    toy = Toy(count=12)
    base = asyncio.run(evaluate(toy.session, HALF, Split.SELECTION)).evaluation
    listed = order(base, toy.session.rule)
    solved = [base.scored[item].passed for item in listed]
    assert solved == sorted(solved)


def test_an_item_that_may_not_break_blocks_the_candidate():
    environment = ToyEnvironment()
    toy = Toy(count=8, environment=environment, gate={"no_regression": "all"})
    found = toy.judged(without("amber") + "\n- coral dune\n")
    assert found.verdict.decision is Decision.REJECT
    assert (found.verdict.no_regression, found.verdict.blocked) == (NoRegression.ALL, 1)
    assert found.evaluation.stopped
    assert Toy(count=8).judged(without("amber") + "\n- coral dune\n").verdict.decision.accepted


class Flaky(ToyBackend):
    """Gets one item right at the first draw only, with the candidate."""

    def _target(self, messages):
        if "- lucky" in messages[0].text and "selection2 " in messages[1].text:
            self.draws = getattr(self, "draws", 0) + 1
            return "yes" if self.draws == 1 else "no"
        return super()._target(messages)


def test_repeats_take_back_a_gain_that_was_luck():
    lucky = HALF.document + "\n- lucky\n"
    assert Toy(Flaky()).judged(lucky).verdict.decision is Decision.ACCEPT_NEW_BEST
    toy = Toy(Flaky(), gate={"repeats": 4, "policy": "margin", "margin": 0.05})
    found = toy.judged(lucky)
    assert found.verdict.decision is Decision.REJECT
    assert (found.verdict.policy, found.verdict.repeats) == ("margin", 4)
    assert found.verdict.score == pytest.approx(0.5 + 0.2 / 8)
    assert found.verdict.current == 0.5
    assert found.evaluation.hard == 0.625, "the recorded evaluation is the first one"
    assert toy.asked == 8 + 4 + 4, "one item differs; both sides are rolled out four times more"
    rows = json.loads(found.evidence["repeats.json"])
    assert [row["id"] for row in rows] == ["selection2"]
    assert [one["hard"] for one in rows[0]["candidate"]] == [0.0] * 4


def test_repeats_are_not_spent_on_what_scores_no_higher():
    toy = Toy(count=40, gate={"repeats": 3})
    found = toy.judged(HALF.document + "\n- nothing new\n")
    assert found.verdict.repeats == 0
    assert toy.asked == 20


def test_the_paired_policy_rejects_a_gain_that_may_be_chance():
    toy = Toy(gate={"policy": "paired", "alpha": 0.2})
    found = toy.judged(HALF.document + "\n- coral\n")
    assert found.verdict.decision is Decision.REJECT
    assert (found.verdict.p, found.verdict.alpha) == (0.25, 0.2)
    assert found.verdict.score > found.verdict.current


def test_a_test_that_no_candidate_can_pass_costs_nothing():
    toy = Toy(gate={"policy": "paired", "alpha": 0.05})
    found = toy.judged(HALF.document + "\n- coral dune\n")
    assert found.verdict.decision is Decision.REJECT, "four of eight items can be fixed, and four are not enough"
    assert (toy.asked, found.evaluation.scored, found.evaluation.unneeded) == (0, 0, 8)


class Recovering(ToyEnvironment):
    """An environment that cannot evaluate some items, until it can."""

    def __init__(self, *broken: str) -> None:
        super().__init__(frozenset(broken))


def test_what_the_run_has_recorded_of_a_version_is_not_measured_again():
    toy = Toy(count=8)
    object.__setattr__(toy.session.calls, "ledger", Ledger.in_memory())
    found = toy.judged(HALF.document + "\n- coral\n")
    assert found.verdict.decision is Decision.ACCEPT_NEW_BEST
    assert toy.asked == 8, "the candidate's items only"
    assert "base.json" not in found.evidence


def test_items_of_the_base_that_are_measured_again_stand_in_the_evidence():
    environment = Recovering("selection0", "selection2")
    toy = Toy(count=20, environment=environment)
    assert toy.history[0].event.evaluation.scored == 18
    environment.broken = frozenset({"selection2"})
    found = toy.judged(HALF.document + "\n- coral\n")
    assert json.loads(found.evidence["base.json"]) == [{"id": "selection0", "hard": 1.0, "soft": 1.0}]
    assert (found.verdict.compared, found.verdict.lost, found.verdict.regained) == (19, 0, 0)
    assert found.verdict.current == pytest.approx(10 / 19), "of the items that both sides scored"
    assert found.verdict.score == pytest.approx(14 / 19)


def test_a_candidate_is_not_accepted_for_the_items_that_it_makes_fail():
    class Crashing(ToyEnvironment):
        async def rollout(self, item, skill, target):
            if "- crash" in skill.document and item.content["needs"] in {"coral", "dune"}:
                raise EnvironmentFaultError("the sandbox timed out", hint="")
            return await super().rollout(item, skill, target)

    toy = Toy(count=8, environment=Crashing(), evaluation={"min_coverage": 0.5})
    found = toy.judged(HALF.document + "\n- crash\n")
    assert not found.verdict.decision.accepted
    assert (found.verdict.score, found.verdict.current, found.verdict.lost) == (1.0, 1.0, 4)
