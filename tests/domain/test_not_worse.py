"""The gate of shorter texts: a tie passes, a loss does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from skillgit.domain.evaluation import Evaluation, Scored, Split
from skillgit.domain.gate_decision import Decision, GateRule, NoRegression, consistent, decide
from skillgit.domain.gate_policies import NOT_WORSE, PAIRED, STRICT
from skillgit.engine.method_settings import GateSettings

RULE = GateRule(policy=NOT_WORSE)


def evaluation(passed: list[bool], first: int = 0) -> Evaluation:
    outcomes = {f"q{first + number}": Scored(float(one), float(one)) for number, one in enumerate(passed)}
    return Evaluation(split=Split.SELECTION, item_set="s", outcomes=outcomes, seed=1)


def judged(after: list[bool], before: list[bool], rule: GateRule = RULE, best: float = 1.0) -> Decision:
    verdict = decide(rule, evaluation(after), evaluation(before), best)
    assert consistent(verdict)
    return verdict.decision


def test_a_tie_passes_whatever_changed_and_a_loss_does_not():
    assert judged([True, False], [True, False]) is Decision.ACCEPT
    assert judged([False, True], [True, False]) is Decision.ACCEPT
    assert judged([False, False], [True, False]) is Decision.REJECT
    assert judged([True, True], [True, False], best=0.5) is Decision.ACCEPT_NEW_BEST


def test_items_that_may_not_score_lower_still_may_not():
    rule = replace(RULE, no_regression=NoRegression.ALL)
    assert judged([False, True], [True, False], rule) is Decision.REJECT


def test_repeats_are_made_for_a_tie_too():
    assert RULE.first_pass(3).policy is NOT_WORSE
    assert replace(RULE, policy=PAIRED).first_pass(3).policy is STRICT


def test_a_configuration_cannot_ask_steps_for_no_gain():
    with pytest.raises(ValidationError, match="steps have to gain"):
        GateSettings(policy="not-worse")
