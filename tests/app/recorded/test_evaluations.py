from __future__ import annotations

from datetime import UTC, datetime

import pytest
from asking import ask
from sample_run import RUN, evaluation

from skillgit.app.history.show import show
from skillgit.app.recorded.evaluation_notes import as_note, known_evaluations, reads_of_test, record
from skillgit.app.recorded.score_summary import scores
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Split
from skillgit.index import queries
from skillgit.store import notes, refs

LATER = datetime(2026, 11, 28, 12, 0, 0, 5, tzinfo=UTC)


def note(passed="1 2 3", split=Split.TEST, time=LATER):
    measured = evaluation(passed, split)
    types = [scores(measured.outcomes.values(), "default")]
    return as_note(measured.summary(), types, target="offline/reader", environment="e4f", setup="5e7", time=time)


def test_a_note_tells_what_was_measured_and_how(context, records):
    with Workspace(context) as workspace:
        assert record(workspace, {records[0].commit: [note()]}, LATER) == 1
        row = queries.row_of_version(workspace.index, RUN, 0)
        final, noted = known_evaluations(workspace, records[0].commit, row)
    assert notes.read(workspace.repo, records[0].commit) == [
        {
            "kind": "evaluation",
            "split": "test",
            "item_set": "4be1",
            "n": 10,
            "scored": 10,
            "hard": 0.3,
            "soft": 0.475,
            "seed": 42,
            "target": "offline/reader",
            "environment": "e4f",
            "setup": "5e7",
            "types": {"default": {"n": 10, "scored": 10, "hard": 0.3, "soft": 0.475}},
            "time": "2026-11-28T12:00:00Z",
        }
    ]
    assert (final.source, final.split, final.hard) == ("run-finished", "test", 0.5)
    assert (noted.source, noted.hard, noted.target, noted.time) == (
        "note",
        0.3,
        "offline/reader",
        LATER.replace(microsecond=0),
    )
    assert noted.types["default"]["hard"] == 0.3


def test_several_notes_are_written_in_one_batch_and_equal_ones_once(context, records, repo):
    one, two = records[0].commit, records[1].commit
    with Workspace(context) as workspace:
        assert record(workspace, {one: [note(), note(split=Split.SELECTION)], two: [note("5")]}, LATER) == 3
        tip = repo.tip(refs.NOTES)
        assert not repo.commit(tip).parent_ids
        later = note(time=datetime(2027, 1, 1, tzinfo=UTC))
        assert record(workspace, {one: [later]}, LATER) == 0
        assert repo.tip(refs.NOTES) == tip
        assert record(workspace, {one: [note("1 2 3 4")]}, LATER) == 1


@pytest.mark.usefixtures("records")
def test_show_tells_what_is_known_and_counts_looks_at_the_test_split(context, records):
    before = ask(show, context, "v0")
    assert (len(before.evaluations), before.test_evaluations) == (1, 1)
    with Workspace(context) as workspace:
        lines = [note("1"), note("2", Split.SELECTION), note("1 2")]
        record(workspace, {records[0].commit: lines, records[2].commit: [note("7")]}, LATER)
    after = ask(show, context, "v0")
    assert [found.split for found in after.evaluations] == ["test", "test", "selection", "test"]
    assert after.test_evaluations == reads_of_test(after.evaluations) == 3
    assert ask(show, context, "r2").test_evaluations == 1
    assert ask(show, context, "v1").test_evaluations == 0


@pytest.mark.parametrize(
    "line",
    [
        "looks odd",
        "[1]",
        "{}",
        '{"kind":"evaluation"}',
        '{"kind":"evaluation","n":1,"scored":1,"seed":1,"hard":NaN,"soft":0}',
        '{"kind":"evaluation","n":true,"scored":1,"seed":1,"hard":0,"soft":0}',
        '{"kind":"evaluation","n":1,"scored":1,"seed":1,"hard":' + "9" * 400 + ',"soft":0}',
        "[" * 100_000,
    ],
)
def test_what_strangers_write_into_notes_is_passed_over(line, context, records, monkeypatch):
    monkeypatch.setattr("skillgit.index.version_queries.note_lines", lambda *_: (line,))
    with Workspace(context) as workspace:
        assert known_evaluations(workspace, records[2].commit, None) == ()
