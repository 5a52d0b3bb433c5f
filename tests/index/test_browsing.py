from __future__ import annotations

from itertools import product

import pytest
from bench.histories.fast_import import write_history
from bench.histories.story import gain_of
from chronicle import Chronicle
from stories import Story

from skillgit.index import event_pages, queries
from skillgit.index.log_filter import NumberComparison, Selection
from skillgit.index.refresh import open_index
from skillgit.store.repo import Repo

RUN = "demo-000"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    history = write_history(tmp_path_factory.mktemp("browsing") / "small", 160, runs=2)
    with open_index(Repo.discover(history.path)) as index:
        yield index


@pytest.mark.parametrize(("run", "rejected", "slow"), list(product([RUN, ""], [True, False], [True, False])))
def test_so_many_events_are_counted_as_there_are_rows(index, run, rejected, slow):
    narrowing = Selection(run=run, with_rejected=rejected, slow=slow)
    kinds = [row.kind for row in event_pages.rows(index, narrowing, 0, 1_000)]
    assert event_pages.count(index, narrowing) == len(kinds)
    assert ("rejected" in kinds, "slow-proposed" in kinds) == (rejected, slow)


@pytest.mark.parametrize("run", [RUN, ""])
def test_pages_counted_from_the_oldest_event_on_are_the_same(index, run):
    narrowing = Selection(run=run)
    everything = event_pages.rows(index, narrowing, 0, 1_000)
    total = len(everything)
    for offset in range(0, total, 7):
        assert event_pages.rows(index, narrowing, offset, 20, total=total) == everything[offset : offset + 20]
    assert event_pages.rows(index, narrowing, total, 20, total=total) == ()


def test_words_are_looked_up_in_one_run_or_in_all(index):
    found = {run: event_pages.rows(index, Selection(run=run, words="unit"), 0, 1_000) for run in (RUN, "demo-001", "")}
    assert {row.run for row in found[RUN]} == {RUN}
    assert len(found[""]) == len(found[RUN]) + len(found["demo-001"])


FILTERS = [
    {"words": "unit"},
    {"words": "u s"},
    {"words": "unit", "with_rejected": False},
    {"words": "unit", "kinds": frozenset({"accepted"})},
    {"comparisons": (NumberComparison(number="score", sign=">", value=0.1),)},
    {"operation": "delete", "slow": False},
    {"words": "nothing-says-this"},
]


@pytest.mark.parametrize("run", [RUN, "demo-001", ""])
@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_what_is_gathered_once_is_what_is_looked_for_each_time(index, run, wanted):
    narrowing = Selection(run=run, **wanted)
    asked = event_pages.rows(index, narrowing, 0, 1_000), event_pages.count(index, narrowing)
    commits = [row.commit for row in asked[0]]
    places = [event_pages.place(index, narrowing, commit) for commit in commits[:3]]

    meant = event_pages.gather(index, narrowing)

    assert meant.is_gathered
    assert (event_pages.rows(index, meant, 0, 1_000), event_pages.count(index, meant)) == asked
    assert [event_pages.place(index, meant, commit) for commit in commits[:3]] == places == list(range(len(places)))
    assert bool(commits) == (wanted.get("words") != "nothing-says-this")


def test_runs_whose_events_came_in_turns_are_told_apart(repo):
    chronicles = [Chronicle(repo, Story(run).proposed(0.5).proposed(0.25)) for run in ("one", "two")]
    with open_index(repo) as index:
        for _ in range(3):
            for chronicle in chronicles:
                chronicle.go_on(1)
                index.refresh()
        for run in ("one", "two"):
            meant = event_pages.gather(index, Selection(run=run, words="mismatch"))
            found = event_pages.rows(index, Selection(run=run, words="mismatch"), 0, 9)
            assert event_pages.count(index, meant) == len(found) > 0
            assert {row.run for row in event_pages.rows(index, meant, 0, 9)} == {run}


def test_all_events_are_not_gathered(index):
    narrowing = Selection(run=RUN, with_rejected=False)
    assert event_pages.gather(index, narrowing) is narrowing


def test_a_short_run_has_all_its_scores(index):
    points, apart = event_pages.sampled_points(index, RUN, 1_000)
    assert apart == 1
    rows = event_pages.rows(index, Selection(run=RUN), 0, 1_000)
    assert {point.commit for point in points} == {row.commit for row in rows if row.known is not None}


def test_of_a_long_run_scores_are_taken_evenly_and_with_the_best(index):
    points, apart = event_pages.sampled_points(index, RUN, 5)
    everything, _ = event_pages.sampled_points(index, RUN, 1_000)
    assert apart > 1
    assert set(points) < set(everything)
    best = queries.best_row(index, RUN)
    assert best.commit in {point.commit for point in points}
    steps = {point.step for point in points} - {best.step}
    last = max(row.step for row in event_pages.rows(index, Selection(run=RUN), 0, 1_000))
    assert all(step % apart == 0 or step == last for step in steps)


def test_a_run_without_events_has_no_scores(index):
    assert event_pages.sampled_points(index, "none", 5) == ((), 1)


def test_a_long_story_leaves_room_for_all_its_gains():
    assert gain_of(100) == gain_of(1_000) > gain_of(100_000) > 0
