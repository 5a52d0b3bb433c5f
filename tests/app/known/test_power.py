from __future__ import annotations

import json

import pytest

from skillgit.app.known.scores import after_baseline, before_baseline
from skillgit.domain.evaluation import Evaluation, Metric, Scored, Split
from skillgit.domain.event import Inherited, Models, RunStarted
from skillgit.domain.gate import GateRule


def told(scores, rule: GateRule | None = None) -> list[str]:
    outcomes = {f"q{place}": Scored(*one) for place, one in enumerate(scores)}
    measured = Evaluation(split=Split.SELECTION, item_set="x", outcomes=outcomes, seed=1)
    rows = [{"id": item, "hard": one.hard, "soft": one.soft} for item, one in outcomes.items()]
    event = RunStarted(
        run="r", skill="s", config="c", splits="s", environment="e", models=Models(target="", optimizer=""),
        evaluation=measured.summary(),
    )  # fmt: skip
    return after_baseline(event, {"selection.json": json.dumps(rows).encode()}, rule or GateRule())


def test_before_anything_is_spent_the_detectable_gain_is_told() -> None:
    assert before_baseline(40, GateRule()) == (
        "40 selection items: the paired test at alpha 0.05 finds a true gain of 16.2 points or more four times out of"
        " five, if nothing that was solved breaks"
    )
    assert "too few" in before_baseline(4, GateRule())
    assert "alpha 0.2" in before_baseline(4, GateRule(alpha=0.2))


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([(1.0, 1.0)] * 8, "ceiling: "),
        ([(0.0, 0.0)] * 8, "floor: "),
        ([(0.0, 1.0)] * 39 + [(1.0, 1.0)], "the baseline is 0.0250"),
        ([(1.0, 1.0)] * 38 + [(0.0, 0.0)] * 2, "underpowered: "),
    ],
)
def test_after_the_baseline_splits_that_tell_nothing_are_named(scores, word) -> None:
    found = told(scores)

    assert len(found) == 1
    assert found[0].startswith(word)


def test_a_tie_of_soft_scores_is_named_with_what_it_leaves_to_gain() -> None:
    found = told([(0.0, 0.5)] * 100, GateRule(metric=Metric.SOFT))

    assert found[0] == "all-tied: every selection item scores 0.5000, so that they tell nothing apart"
    assert found[1].startswith("the baseline is 0.5000, which leaves 50.0 points to gain; ")


def test_an_inherited_baseline_says_nothing() -> None:
    event = RunStarted(
        run="r", skill="s", config="c", splits="s", environment="e", models=Models(target="", optimizer=""),
        evaluation=Inherited(version=1),
    )  # fmt: skip

    assert after_baseline(event, {}, GateRule()) == []
