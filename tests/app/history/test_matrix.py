from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pytest
from asking import ask
from sample_run import MODELS, RUN

from skillgit.app.history.matrix import Difference, matrix
from skillgit.errors import DataError, RevisionNotFoundError
from skillgit.index.own_conditions import Otherwise
from skillgit.store import notes
from skillgit.view.score_tables import matrix_lines
from skillgit.view.surface import Screen


def line(**changes: object) -> dict[str, object]:
    told = {
        "kind": "evaluation",
        "split": "selection",
        "item_set": "4be1",
        "environment": "e4f",
        "n": 10,
        "scored": 10,
        "hard": 0.9,
        "soft": 0.9,
        "seed": 42,
        "target": "other/model",
        "time": "2026-11-22T00:00:00Z",
    }
    return told | changes


def note_on(repo, records, version: int, *lines: dict[str, object]) -> None:
    commit = next(record.commit for record in records if record.event.version == version)
    notes.append(repo, {commit: lines}, time=datetime(2026, 11, 22, tzinfo=UTC))


def cell_of(table, version: int, model: str):
    (row,) = (row for row in table.rows if row.row.version == version)
    return next(cell for cell in row.cells if cell.model == model)


@pytest.mark.usefixtures("records")
def test_the_run_s_own_scores_stand_under_its_own_model(context):
    table = ask(matrix, context, None, "selection")
    assert (table.run, table.metric, table.models) == (RUN, "hard", (MODELS.target,))
    assert [row.cells[0].score for row in table.rows] == [0.4, 0.6, 0.7, 0.8]
    assert all(cell.measured and cell.source == "run" for row in table.rows for cell in row.cells)
    tests = ask(matrix, context, RUN, "test")
    assert [(row.row.version, row.cells[0].score) for row in tests.rows] == [(0, 0.5), (3, 0.7)]
    assert ask(matrix, context, RUN, "train").rows == ()


def test_the_newest_note_of_a_model_stands_in_its_cell(context, repo, records):
    note_on(repo, records, 3, line(hard=0.5), line(hard=0.6, time="2026-11-24T00:00:00Z"), line(hard=0.7))
    found = cell_of(ask(matrix, context, None, "selection"), 3, "other/model")
    assert (found.hard, found.others) == (0.6, 2)


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"item_set": "ffff"}, ("items",)),
        ({"environment": "ffff"}, ("environment",)),
        ({"item_set": "ffff", "environment": "ffff"}, ("environment", "items")),
        ({"environment": ""}, ()),
    ],
)
def test_what_does_not_compare_is_marked(changes, differs, context, repo, records):
    note_on(repo, records, 1, line(**changes))
    assert cell_of(ask(matrix, context, None, "selection"), 1, "other/model").differs == differs


def test_a_newer_number_that_does_not_compare_hides_none_that_does(context, repo, records):
    note_on(repo, records, 1, line(hard=0.3), line(hard=0.9, n=3, item_set="ffff", time="2026-11-25T00:00:00Z"))
    found = cell_of(ask(matrix, context, None, "selection"), 1, "other/model")
    assert (found.hard, found.n, found.differs) == (0.3, 10, ())


def test_candidates_stand_last_and_only_where_they_were_measured_later(context, repo, records):
    commit = next(record.commit for record in records if record.branch.startswith("refs/heads/rejected/"))
    notes.append(repo, {commit: [line()]}, time=datetime(2026, 11, 22, tzinfo=UTC))
    table = ask(matrix, context, None, "selection")
    assert [row.row.version for row in table.rows] == [0, 1, 2, 3, None]
    assert [cell.model for cell in table.rows[-1].cells] == ["other/model"]


def test_lines_of_strangers_break_nothing(context, repo, records):
    note_on(
        repo, records, 1, {"kind": "evaluation"}, line(hard="high"), line(hard=7.0), line(split="selection", scored=0)
    )
    found = cell_of(ask(matrix, context, None, "selection"), 1, "other/model")
    assert found.score <= 1.0


@pytest.mark.usefixtures("records")
def test_unknown_splits_and_runs_are_errors(context):
    with pytest.raises(DataError, match="no split 'exam'"):
        ask(matrix, context, None, "exam")
    with pytest.raises(RevisionNotFoundError):
        ask(matrix, context, "nobody", "test")


def test_every_condition_but_the_model_of_a_column_is_a_mark_with_a_meaning():
    assert {*get_args(Difference)} == {*get_args(Otherwise)} - {"model"}


@pytest.mark.parametrize(
    ("field", "mark"),
    [({"environment": "ffff"}, "!"), ({"judge": "other/judge"}, "?"), ({"item_set": "ffff"}, "*")],
)
def test_a_note_with_another_condition_bears_its_mark(field, mark, context, repo, records):
    note_on(repo, records, 1, line(**field))
    text = "\n".join(matrix_lines(ask(matrix, context, None, "selection"), Screen()))
    assert f"{mark}.9000" in text
    assert f"\n{mark} " in text
