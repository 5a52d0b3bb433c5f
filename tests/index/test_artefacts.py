from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from skillgit.index import event_rows

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def encoded(**files):
    return {f"{name}.json": json.dumps(value).encode() for name, value in files.items()}


def test_outcomes_are_scores_or_reasons():
    rows = [
        {"id": "q1", "task_type": "unit", "hard": 1, "soft": 1.0, "answer": "1,063 ft"},
        {"id": "q2", "task_type": "unit", "failed": "timeout"},
        {"id": "q3", "hard": 0.0, "soft": 0.5, "tokens": 312},
    ]
    assert event_rows.outcomes(encoded(selection=rows)) == [
        ("q1", "unit", 1.0, 1.0, "", None),
        ("q2", "unit", None, None, "timeout", None),
        ("q3", "", 0.0, 0.5, "", 312),
    ]


def test_rows_that_are_not_outcomes_are_left_out_and_a_repeated_item_counts_once():
    rows = [
        7,
        {"id": 3, "hard": 1, "soft": 1},
        {"id": "q1", "hard": 2, "soft": 1},
        {"id": "q2", "hard": float("nan"), "soft": 1},
        {"id": "q3", "hard": True, "soft": 1},
        {"id": "q4", "hard": 0, "soft": 0},
        {"id": "q4", "hard": 1, "soft": 1},
    ]
    assert event_rows.outcomes(encoded(selection=rows)) == [("q4", "", 1.0, 1.0, "", None)]


def test_the_plan_names_environment_metric_and_steps():
    config = {
        "env": {"name": "searchqa"},
        "evaluation": {"gate_metric": "mixed", "gate_mixed_weight": 0.25},
        "train": {"num_epochs": 3, "batch_size": 4},
    }
    splits = {"train": [{"id": f"t{place}", "digest": "00"} for place in range(9)], "selection": [], "test": []}
    assert event_rows.plan_rows("r", encoded(config=config, splits=splits)) == [("r", "searchqa", "mixed", 0.25, 9)]
    assert event_rows.plan_rows("r", encoded(config=config)) == [("r", "searchqa", "mixed", 0.25, 0)]
    named = event_rows.plan_rows("r", encoded(config={}, environment={"name": "docvqa"}))
    assert named == [("r", "docvqa", "", 0.5, 0)]
    assert event_rows.plan_rows("r", encoded(splits=splits)) == []


@given(st.dictionaries(st.sampled_from(event_rows.NEEDED), json_values.map(json.dumps).map(str.encode) | st.binary()))
def test_damaged_evidence_is_never_an_error(files):
    event_rows.outcomes(files)
    event_rows.plan_rows("r", files)


def test_deeply_nested_evidence_is_never_an_error():
    assert event_rows.outcomes({"selection.json": b"[" * 100_000}) == []
