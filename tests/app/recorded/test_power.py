from __future__ import annotations

import json

import pytest

from skillgit.app.recorded.score_summary import after_baseline, before_baseline
from skillgit.domain.evaluation import Evaluation, Metric, Scored, Split
from skillgit.domain.event import Event, Inherited, Models
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule


def told(scores, rule: GateRule | None = None) -> list[str]:
    outcomes = {f"q{place}": Scored(*one) for place, one in enumerate(scores)}
    measured = Evaluation(split=Split.SELECTION, item_set="x", outcomes=outcomes, seed=1)
    rows = [{"id": item, "hard": one.hard, "soft": one.soft} for item, one in outcomes.items()]
    event = Event(kind=EventKind.RUN_STARTED,
        run="r", skill="s", config="c", splits="s", environment="e", models=Models(target="", optimizer=""),
        evaluation=measured.summary(),
    )  # fmt: skip
    return after_baseline(event, {"selection.json": json.dumps(rows).encode()}, rule or GateRule())


def test_before_anything_is_spent_the_detectable_gain_is_told() -> None:
    assert before_baseline(40, GateRule()) == (
        "40 selection items: gains of less than 16.2 points look like chance; more items find smaller ones"
    )
    assert before_baseline(4, GateRule()) == "4 selection items are too few: any gain on them may be chance"
    assert before_baseline(1, GateRule()) == "1 selection item is too few: any gain on it may be chance"
    assert "too few" not in before_baseline(4, GateRule(alpha=0.2))


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([(1.0, 1.0)] * 8, "ceiling: "),
        ([(0.0, 0.0)] * 8, "floor: "),
        ([(1.0, 1.0)] * 38 + [(0.0, 0.0)] * 2, "underpowered: "),
    ],
)
def test_after_the_baseline_splits_that_tell_nothing_are_named(scores, word) -> None:
    found = told(scores)

    assert len(found) == 1
    assert found[0].startswith(word)


def test_a_tie_of_soft_scores_is_named_is_named() -> None:
    found = told([(0.0, 0.5)] * 100, GateRule(metric=Metric.SOFT))

    assert found == ["all-tied: every selection item scores 0.5000, so that they tell nothing apart"]


def test_a_split_that_can_show_a_gain_is_not_spoken_of_again() -> None:
    assert told([(0.0, 1.0)] * 39 + [(1.0, 1.0)]) == []


def test_an_inherited_baseline_says_nothing() -> None:
    event = Event(kind=EventKind.RUN_STARTED,
        run="r", skill="s", config="c", splits="s", environment="e", models=Models(target="", optimizer=""),
        evaluation=Inherited(version=1),
    )  # fmt: skip

    assert after_baseline(event, {}, GateRule()) == []
