from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from asking import ask
from real_git import git
from sample_run import RUN, write_run

from skillgit.app.history.log import in_order, log
from skillgit.app.history.requests import LogRequest
from skillgit.app.interventions.fork import fork
from skillgit.index.rows import LogRow
from skillgit.store import refs

ALL = LogRequest(all_runs=True, graph=True)
PERSON = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
BEGUN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def merge_by_hand(repo, run, other, tree_of):
    """Merge the commit ``other`` into ``run`` with the text of another commit."""
    branch = refs.run_branch(run)
    parents = ("-p", repo.tip(branch), "-p", other)
    oid = git(repo.raw.path, *PERSON, "commit-tree", f"{tree_of}^{{tree}}", *parents, "-m", "merge by hand")
    git(repo.raw.path, "update-ref", branch, oid)
    return oid


def row(run, commit, minutes, kind="accepted"):
    return LogRow(
        run=run,
        commit=commit,
        kind=kind,
        version=0,
        base=None,
        step=0,
        epoch=0,
        title="",
        time=BEGUN + timedelta(minutes=minutes),
        score=None,
        delta=None,
        measured=True,
        decision="",
        is_best=False,
        is_head=False,
        refs=(),
    )


def ordered(rows, parents):
    return "".join(row.commit for row in in_order(rows, parents))


def test_a_fork_rests_on_the_version_that_it_began_at(context, repo, records):
    fork(context, "v2", "other")
    found = ask(log, context, ALL)
    assert found.parents == {repo.tip(refs.run_branch("other")): (records[5].commit,)}
    below = [row.commit for row in found.rows].index(records[5].commit)
    assert "other" in {row.run for row in found.rows[:below]}


def test_a_merge_by_hand_rests_on_what_it_took_in(context, repo, records):
    other = write_run(repo, "other", events=3)
    made = merge_by_hand(repo, RUN, other[1].commit, records[1].commit)
    found = ask(log, context, ALL)
    assert found.parents == {made: (other[1].commit,)}
    commits = [row.commit for row in found.rows]
    assert commits.index(made) < commits.index(other[1].commit)


def test_what_is_not_among_the_events_is_no_parent(context, records):
    fork(context, "v2", "other")
    assert records
    assert ask(log, context, replace(ALL, events=frozenset({"run-started"}))).parents == {}
    assert ask(log, context, replace(ALL, limit=1)).parents == {}
    assert ask(log, context, LogRequest(all_runs=True)).parents == {}


def test_a_graph_has_the_events_of_the_plain_log(context, repo, records):
    write_run(repo, "other")
    plain, graph = (ask(log, context, LogRequest(all_runs=True, limit=7, graph=graph)).rows for graph in (False, True))
    assert {row.commit for row in plain} == {row.commit for row in graph}
    runs = [row.run for row in ask(log, context, ALL).rows]
    assert runs == sorted(runs, key=runs.index)
    assert len(runs) == 2 * len(records)


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ({}, "dbca"),
        # b is below the fork that began at it, and d is its run's newest event
        ({"c": ("b",)}, "dcba"),
        # what a merge took in follows it at once
        ({"d": ("c",)}, "dcab"),
        ({"b": ("c",)}, "dbca"),
        ({"d": ("a",)}, "dbca"),
    ],
)
def test_events_stand_above_what_they_rest_on(parents, expected):
    rows = [row("one", "d", 4), row("two", "c", 3), row("one", "b", 2), row("two", "a", 1)]
    assert ordered(rows, parents) == expected


def test_a_fork_that_is_older_than_its_source_goes_on_is_shown_first():
    rows = [row("one", "e", 5), row("one", "d", 4), row("two", "c", 3), row("one", "b", 2), row("one", "a", 1)]
    assert ordered(rows, {"c": ("b",)}) == "edcba"
    assert ordered(rows, {"c": ("d",)}) == "ecdba"


def test_events_that_go_round_in_circles_are_shown_all_the_same():
    rows = [row("one", "d", 4), row("two", "c", 3), row("one", "b", 2), row("two", "a", 1)]
    assert ordered(rows, {"b": ("c",), "a": ("d",)}) == "dcba"
