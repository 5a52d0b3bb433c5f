from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asking import ask
from sample_run import RUN, write_run

from skillgit.app.history.log import log
from skillgit.app.history.show import event_detail
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import change_stamp, git_settings
from skillgit.domain.score import Score
from skillgit.index.log_filter import NumberComparison, Selection
from skillgit.verbs import browse
from skillgit.verbs.filter_language import narrowed

if TYPE_CHECKING:
    from skillgit.store.repo import Repo

ALL = Selection(run=RUN)


@pytest.fixture
def context(repo: Repo, clock) -> Context:
    write_run(repo)
    return Context(directory=repo.workdir, environ={}, clock=clock, entropy=bytes)


def test_pages_put_together_are_the_log(context):
    whole = ask(log, context).rows
    pages = [ask(browse.page, context, ALL, offset, 4) for offset in range(0, len(whole), 4)]
    assert tuple(row for page in pages for row in page.rows) == whole
    assert {(page.total, page.everything) for page in pages} == {(len(whole), len(whole))}


def test_an_event_is_found_on_its_page(context):
    whole = ask(log, context).rows
    for place, row in enumerate(whole):
        found = ask(browse.page, context, ALL, 0, 4, row.commit)
        assert (found.position, found.offset) == (place, place // 4 * 4)
        assert found.rows[place - found.offset] == row
        assert ask(browse.page, context, Selection(), 0, 4, row.commit).position == place, (
            "all runs, of which there is one"
        )


def test_an_event_that_is_filtered_away_is_not_found(context):
    rejected = next(row for row in ask(log, context).rows if row.kind == "rejected")
    found = ask(browse.page, context, Selection(run=RUN, with_rejected=False), 0, 50, rejected.commit)
    assert found.position is None
    assert rejected not in found.rows
    assert found.total == found.everything - 2


@pytest.mark.parametrize(
    ("narrowing", "labels"),
    [
        (Selection(run=RUN, comparisons=(NumberComparison(number="score", sign=">", value=0.65),)), [8, 7, 7, 8]),
        (Selection(run=RUN, comparisons=(NumberComparison(number="step", sign="=", value=2),)), [5]),
        (Selection(run=RUN, kinds=frozenset({"skipped"})), [None]),
    ],
)
def test_numbers_and_kinds_narrow(context, narrowing, labels):
    rows = ask(browse.page, context, narrowing, 0, 50).rows
    scores = [None if row.score is None else round(row.score * 10) for row in rows]
    assert sorted(scores, key=str) == sorted(labels, key=str)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("event:rejected score>.9", "2 without score"),
        ("step:99 event:accepted", "2 without step"),
        ("nothing-of-this", "9 without text:"),
        ("score>.1", ""),
    ],
)
def test_an_empty_list_says_what_would_be_listed_without_one_part_of_the_filter(context, text, why):
    assert ask(browse.page, context, narrowed(ALL, text, context.clock()), 0, 50).why_empty == why


def test_slow_updates_can_be_left_out(context):
    rows = ask(browse.page, context, Selection(run=RUN, slow=False), 0, 50).rows
    assert rows
    assert not {row.kind for row in rows} & {"slow-proposed", "slow-merged"}


def test_edits_narrow(context):
    with_edits = ask(browse.page, context, Selection(run=RUN, operation="append"), 0, 50).rows
    for row in with_edits:
        edits = ask(event_detail, context, row.commit).shown.event.edits
        assert "append" in {edit.op.value for edit in edits}
    assert ask(browse.page, context, Selection(run=RUN, operation="none"), 0, 50).total == 0


def test_the_score_line_is_in_order(context):
    points, apart = ask(browse.score_line, context, RUN, 50)
    assert [point.step for point in points] == sorted(point.step for point in points)
    assert (points[0].score, points[0].kind, apart) == (Score(0.4), "run-started", 1)


def test_the_overview_names_runs_and_the_default_one(context, repo):
    found = ask(browse.overview, context)
    assert ([run.name for run in found.runs], found.run, found.fresh) == ([RUN], RUN, True)
    repo.set_config("skillgit.run", "gone")
    assert ask(browse.overview, context).run == RUN, "a deleted default run does not hide the others"


def test_no_runs_are_no_error(repo, clock):
    context = Context(directory=repo.workdir, environ={}, clock=clock, entropy=bytes)
    assert ask(browse.overview, context).runs == ()
    assert ask(browse.page, context, Selection(), 0, 10).total == 0


def test_an_event_in_full_has_difference_edits_and_evidence(context):
    accepted = next(row for row in ask(log, context).rows if row.version == 1)
    found = ask(event_detail, context, accepted.commit)
    assert found.present
    assert [file.path for file in found.files]
    assert found.shown.row.commit == accepted.commit
    started = next(row for row in ask(log, context).rows if row.kind == "run-started")
    assert ask(event_detail, context, started.commit).edits == ()


def test_a_look_changes_when_a_ref_moves(context, repo):
    before = change_stamp(context)
    assert change_stamp(context) == before
    repo.raw.references.create("refs/heads/other", repo.raw.lookup_reference(f"refs/heads/run/{RUN}").target)
    assert change_stamp(context) != before


def test_settings_are_those_that_git_has(context, repo):
    repo.set_config("skillgit.tui.theme", "light")
    found = git_settings(context, ["skillgit.tui.theme", "skillgit.tui.keymap.history.mark"])
    assert found == {"skillgit.tui.theme": "light"}
