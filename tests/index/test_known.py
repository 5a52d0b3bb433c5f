from __future__ import annotations

import pytest
from sample_run import RUN, START, transitions, write_run

from skillgit.index import queries, version_queries
from skillgit.index.refresh import open_index
from skillgit.store import notes

_UNFINISHED = len(transitions(RUN, "skills/demo")) - 1


def test_notes_come_line_by_line_and_final_scores_by_version(repo):
    records = write_run(repo)
    notes.append(repo, {records[0].commit: [{"a": 1}, {"b": 2}]}, time=START)
    with open_index(repo) as index:
        assert version_queries.note_lines(index, records[0].commit) == ('{"a":1}', '{"b":2}')
        assert version_queries.note_lines(index, records[1].commit) == ()
        (final,) = version_queries.final_rows(index, RUN, 3)
        assert (final.split, final.hard, final.n, final.seed) == ("test", 0.7, 10, 42)
        assert final.time == records[-1].time
        assert version_queries.final_rows(index, RUN, 1) == ()


@pytest.mark.parametrize(
    ("first", "best", "scores"),
    [
        ({}, {}, (0.25, 0.75)),
        ({}, None, (None, None)),
        (None, {}, (None, 0.75)),
        ({"item_set": "other"}, {}, (None, 0.75)),
        ({"environment": "other"}, {}, (None, 0.75)),
        ({}, {"target": "other/model"}, (None, None)),
        ({}, {"split": "selection"}, (None, None)),
        ({}, {"hard": "much"}, (None, None)),
        ({}, {"hard": 7}, (None, None)),
        ({}, {"hard": True}, (None, None)),
    ],
)
def test_notes_tell_the_test_scores_of_the_runs_own_model_on_the_same_items(repo, first, best, scores):
    made = {record.event.version: record.commit for record in write_run(repo, events=_UNFINISHED)}
    noted = {
        made[version]: [{"kind": "evaluation", "split": "test", "item_set": "s", "hard": score, "soft": 0, **more}]
        for version, score, more in ((0, 0.25, first), (3, 0.75, best))
        if more is not None
    }
    notes.append(repo, noted, time=START)
    with open_index(repo) as index:
        (run,) = queries.run_rows(index, {})
    assert (run.outcome, run.best_version) == ("", 3)
    assert (run.first_test, run.best_test) == scores


def test_what_a_run_measured_at_its_end_comes_before_notes(repo):
    records = write_run(repo)
    note = {"kind": "evaluation", "split": "test", "item_set": "s", "hard": 1.0, "soft": 1.0}
    notes.append(repo, {records[0].commit: [note]}, time=START)
    with open_index(repo) as index:
        (run,) = queries.run_rows(index, {})
    (first, best) = (found.hard for found in records[-1].event.evaluations[:2])
    assert (run.first_test, run.best_test) == (first, best)
