"""Steps, slow updates, reverts, edits by hand and interventions in any order: one history, however it is read."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

from chronicle import RUN, Chronicle
from hypothesis import given
from soaking import examples
from stories import Story, moves, told

from skillgit.domain.cost import Cost
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.run_state import advance, begin, fold
from skillgit.index import queries
from skillgit.index.log_filter import Selection
from skillgit.index.refresh import open_index
from skillgit.store.history_reader import read_commit, read_new, read_run
from skillgit.store.repo import Repo


@examples(0.3)
@given(moves)
def test_a_history_is_read_in_the_order_in_which_it_can_be_folded(tmp_path_factory, made):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    written = Chronicle(repo, told(made)).go_on().records

    records = read_run(repo, RUN)

    assert {record.commit for record in records} == {record.commit for record in written}
    assert all(before.order < after.order for before, after in pairwise(records))
    assert [read_commit(repo, record.commit) for record in records] == records
    first, *rest = (record.event for record in written)
    live, again = reduce(advance, rest, begin(first)), fold(record.event for record in records)
    assert (again.versions, again.best, again.memory) == (live.versions, live.best, live.memory)
    with open_index(repo) as index:
        rows = queries.log_rows(index, RUN)
        assert [row.commit for row in reversed(rows)] == [record.commit for record in records]


@examples(0.3)
@given(moves, moves)
def test_what_is_new_is_what_was_not_there(tmp_path_factory, first, second):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    chronicle = Chronicle(repo, told([*first, *second])).go_on(len(first) + 1)
    before = repo.tips()
    known = {record.commit for record in read_run(repo, RUN)}
    chronicle.go_on()

    fresh = read_new(repo, RUN, before)

    assert fresh == [record for record in read_run(repo, RUN) if record.commit not in known]


def test_a_slow_update_follows_a_revert_of_the_same_step(repo):
    story = Story(RUN).proposed(0.5).proposed(0.375).skipped().reverted(0).slow(0.625)

    records = Chronicle(repo, story).go_on().records

    assert [record.event for record in read_run(repo, RUN)] == [record.event for record in records]
    assert [record.event.kind for record in records[-3:]] == ["reverted", "slow-proposed", "slow-merged"]


def test_an_edit_tells_its_author_and_has_no_score_until_it_is_measured(repo):
    story = Story(RUN).proposed(0.5).proposed(0.375).edited()
    with open_index(repo) as index:
        chronicle = Chronicle(repo, story).go_on()
        index.refresh()
        (row, *_) = queries.log_rows(index, RUN)
        assert (row.kind, row.version, row.base, row.step, row.author) == ("edited", 2, 1, 2, "Ada")
        assert (row.score, row.delta) == (None, None)
        assert (row.title, row.is_head, row.is_best) == ("mend v1", True, False)
        assert queries.selected_rows(index, Selection(run=RUN, words="mend"))[0].commit == row.commit

        story.measured(0.75)
        chronicle.waiting = story.events[-1:]
        chronicle.go_on()
        index.refresh()
        measured, edited, *_ = queries.log_rows(index, RUN)
        assert (measured.kind, measured.version, measured.score, measured.delta) == ("measured", None, 0.75, 0.25)
        assert (edited.score, edited.delta, edited.is_best) == (0.75, 0.25, True)
        assert [item.item for item in queries.item_rows(index, edited) if item.hard] == [f"q{n}" for n in range(6)]
        (run,) = queries.run_rows(index, {})
        assert (run.versions, run.best_version, run.best_score) == (3, 2, 0.75)
        assert queries.progress(index, RUN).measured == 2


def test_interventions_stand_in_the_log_with_their_number_and_where_they_came_from(repo):
    Chronicle(repo, Story(RUN).proposed(0.5).intervened(0.375).finished().intervened(0.75)).go_on()
    with open_index(repo) as index:
        later, finished, earlier, *_ = queries.log_rows(index, RUN)
    assert (later.kind, later.version, later.number, later.of, later.origin) == (
        "accepted",
        2,
        2,
        "other/v3",
        "cherry-pick",
    )
    assert {finished.kind, earlier.kind} == {"run-finished", "rejected"}
    assert repo.tip(f"refs/heads/rejected/{RUN}/0001-cherry-pick-1")


def test_costs_of_an_edit_are_none(repo):
    records = Chronicle(repo, Story(RUN).edited()).go_on().records
    assert records[-1].event.kind is EventKind.EDITED
    assert fold(record.event for record in records).cost == records[0].event.cost + Cost()
