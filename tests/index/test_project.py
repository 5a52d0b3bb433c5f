from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, answering, moves, recorded, summary, told

from skillgit.domain.evaluation import Gauge, Metric, Split
from skillgit.domain.score import Score
from skillgit.index import event_pages, index_check, queries, schema, table_writer
from skillgit.index.log_filter import NumberComparison, Selection

RUN = "demo-20261121-aaaa"


def indexed(*batches):
    connection = schema.in_memory()
    for batch in batches:
        table_writer.insert(connection, batch[0].event.run, batch, lambda record: f"text of {record.event.skill}")
        for run in sorted({record.event.run for record in batch}):
            table_writer.summarise(connection, [run])
    return answering(connection)


def told_story():
    return Story().proposed(0.5).proposed(0.375).skipped().slow(0.75).proposed(0.625).reverted(1).finished()


def test_the_log_tells_scores_distances_and_places():
    rows = queries.log_rows(indexed(recorded(told_story().events)), RUN)
    assert [(row.kind, row.version, row.base, row.step, row.score, row.delta) for row in rows] == [
        ("run-finished", None, None, 4, None, None),
        ("reverted", 3, 2, 4, 0.5, -0.25),
        ("rejected", None, 2, 4, 0.625, -0.125),
        ("slow-merged", 2, 1, 3, 0.75, 0.25),
        ("slow-proposed", None, 1, 3, 0.75, 0.25),
        ("skipped", None, None, 3, None, None),
        ("rejected", None, 1, 2, 0.375, -0.125),
        ("accepted", 1, 0, 1, 0.5, 0.25),
        ("run-started", 0, None, 0, 0.25, None),
    ]
    assert [row.version for row in rows if row.is_best] == [2]
    assert [row.version for row in rows if row.is_head] == [3]
    assert [row.version for row in rows if not row.measured] == [3]
    assert [row.decision for row in rows if row.decision] == [
        "reject",
        "accept_new_best",
        "accept_new_best",
        "reject",
        "accept_new_best",
    ]


def test_a_run_is_summed_up():
    (row,) = queries.run_rows(indexed(recorded(told_story().events)), {RUN: 4127})
    assert (row.name, row.skill, row.outcome, row.running_pid) == (RUN, "skills/demo", "improved", 4127)
    assert (row.steps, row.versions, row.rejected, row.merges, row.best_version) == (4, 4, 2, 1, 2)
    assert (row.best_score, row.first_score, row.metric, row.total_steps) == (0.75, 0.25, "hard", 0)
    assert (row.calls, row.tokens_in, row.tokens_out) == (21, 700, 70)
    assert row.usd == pytest.approx(0.7)
    assert (row.updated - row.started).total_seconds() == 8 * 60


def test_scores_are_those_of_the_runs_metric_before_any_gate_has_used_it():
    connection = schema.in_memory()
    table_writer.insert(connection, RUN, recorded(Story().events), lambda _: "")
    for metric, score in (("mixed", 0.75 * 0.25 + 0.25 * 0.125), ("soft", 0.125), ("hard", 0.25), ("", 0.25)):
        connection.execute("DELETE FROM plan")
        connection.execute("INSERT INTO plan VALUES (?, 'searchqa', ?, 0.25, 12)", (RUN, metric))
        table_writer.summarise(connection, [RUN])
        (row,) = queries.run_rows(answering(connection), {})
        assert (row.metric, row.first_score, row.total_steps) == (metric or "hard", score, 12)
        assert queries.best_row(answering(connection), RUN).score == score


def test_text_is_found_by_the_beginnings_of_its_words():
    index = indexed(recorded(told_story().events))

    def found(words):
        return [row.kind for row in queries.selected_rows(index, Selection(words=words))]

    assert found("feet 1") == ["accepted"]
    assert found("MISM") == ["rejected", "rejected", "accepted"]
    assert found("exact spans") == ["slow-proposed"]
    assert found("text of") == ["run-started"]
    assert found("metres mismatch 2") == ["rejected"]
    assert found('no "such* OR (text') == []
    assert found("---") == []


def test_events_can_be_chosen():
    index = indexed(recorded(told_story().events))
    assert len(queries.selected_rows(index, Selection(run=RUN, with_rejected=False))) == 7
    assert [row.step for row in queries.log_rows(index, RUN, kinds=frozenset({"rejected"}))] == [4, 2]
    assert [row.kind for row in queries.log_rows(index, RUN, limit=2)] == ["run-finished", "reverted"]
    assert queries.log_rows(index, "other") == ()


def test_outcomes_are_those_that_the_score_rests_on():
    records = recorded(told_story().events)
    index = indexed(records)
    rows = {row.kind: row for row in queries.log_rows(index, RUN)}
    for number, item in ((1, "seed"), (2, "first"), (5, "slow")):
        index.select("INSERT INTO item_outcome VALUES (?, ?, 't', 1.0, 1.0, '', NULL)", (number, item))
    items = {kind: [found.item for found in queries.item_rows(index, row)] for kind, row in rows.items()}
    assert items["run-started"] == ["seed"]
    assert items["accepted"] == ["first"]
    assert items["slow-proposed"] == items["slow-merged"] == ["slow"]
    assert items["reverted"] == ["first"]
    assert items["skipped"] == items["run-finished"] == []
    history = index.select("SELECT version, item FROM item_history WHERE run = ? ORDER BY version", (RUN,))
    assert history == [(0, "seed"), (1, "first"), (2, "slow"), (3, "first")]


def test_deleting_a_run_leaves_nothing_of_it_and_everything_of_others():
    other = recorded(told([("step", 0.5), ("slow", 0.75)], "other").events)
    index = indexed(other)
    kept = index_check.content(index)
    connection = index.connection
    table_writer.insert(connection, RUN, recorded(told_story().events), lambda _: "")
    table_writer.summarise(connection, [RUN])
    assert index_check.content(index) != kept
    table_writer.delete(connection, RUN)
    assert index_check.content(index) == kept


@given(moves, st.data())
def test_growing_event_by_event_gives_the_rows_of_building_at_once(found, data):
    records = recorded(told(found).events)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(records)), max_size=4)))
    batches = [records[start:end] for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True) if start < end]
    assert index_check.content(indexed(*batches)) == index_check.content(indexed(records))


def test_what_the_early_stop_saved_is_counted_and_its_scores_are_bounds():
    part = summary(0.0, scored=2, unneeded=6, spare=1)
    story = Story().proposed(0.5).proposed(0.375, evaluation=part).slow(0.75)
    index = indexed(recorded(story.events))

    (run,) = queries.run_rows(index, {})
    assert (run.selection_items, run.selection_saved) == (24, 5), "a merge is measured with its proposal"
    assert [row.kind for row in queries.log_rows(index, RUN) if row.bound] == ["rejected"]


SCORES = st.integers(0, 8).map(lambda number: number / 8)
PROPOSED = st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=6)


SIGNS = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__, "=": float.__eq__}


def may_be(score: Score) -> list[float]:
    """Return what stands for all numbers that a score may be: below zero, between the eighths, and on them."""
    return [step / 16 for step in range(-1, 17) if step / 16 <= score.value] if score.at_most else [score.value]


@given(PROPOSED, st.sampled_from(sorted(SIGNS)), SCORES)
def test_a_filter_lists_exactly_the_events_whose_score_keeps_the_comparison_for_certain(found, sign, number):
    story = Story()
    for score, stopped in found:
        part = summary(0.0, scored=4, unneeded=4) if stopped else summary(score)
        story = story.proposed(min(score, story.scores[-1]) if stopped else score, evaluation=part)
    index = indexed(recorded(story.events))
    narrowing = Selection(run=RUN, comparisons=(NumberComparison(number="score", sign=sign, value=number),))
    listed = {row.commit for row in event_pages.rows(index, narrowing, 0, 100)}
    rows = queries.log_rows(index, RUN)
    kept = [row for row in rows if row.known and all(SIGNS[sign](value, number) for value in may_be(row.known))]
    assert listed == {row.commit for row in kept}
    assert all((row.score is None) != (row.bound is None) for row in rows if row.known is not None)
    assert all(row.delta is None for row in rows if row.bound is not None)


TESTED = st.builds(lambda hard, scored: (hard, scored), SCORES, st.sampled_from([8, 7]))


@given(TESTED, TESTED)
def test_a_run_that_was_recorded_as_improved_beside_a_fall_of_its_test_scores_is_listed_as_not_confirmed(seed, best):
    story = Story().proposed(0.5).finished()
    tests = tuple(
        summary(hard, split=Split.TEST, version=version, scored=scored)
        for version, (hard, scored) in enumerate((seed, best))
    )
    story.events[-1] = replace(story.events[-1], evaluations=tests)
    (run,) = queries.run_rows(indexed(recorded(story.events)), {})
    assert (run.first_test, run.best_test) == (seed[0], best[0])
    compared = seed[1] == best[1] == tests[0].n and best[0] < seed[0]
    assert run.outcome == ("not-confirmed" if compared else "improved")


@pytest.mark.parametrize(
    ("metric", "weight", "score"), [("soft", 0.5, 0.5), ("mixed", 0.25, 0.3125), ("hard", 0.5, 0.25)]
)
def test_a_run_without_a_candidate_is_told_by_the_metric_that_its_start_names(metric, weight, score):
    story = Story()
    gauge = Gauge(metric=Metric(metric), soft_weight=weight)
    story.events[0] = replace(story.events[0], gauge=gauge, evaluation=replace(summary(0.25), soft=0.5))
    index = indexed(recorded(story.events))
    (run,) = queries.run_rows(index, {})
    assert (run.metric, run.first_score) == (metric, score)
    assert queries.gauge(index, RUN) == gauge
