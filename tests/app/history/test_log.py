from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from asking import ask
from sample_run import RUN, START, write_run

from skillgit.app.history.log import changes, log
from skillgit.app.history.requests import LogRequest
from skillgit.errors import NotFoundError, RepositoryNotFoundError, RevisionNotFoundError, UsageError

HEAVY = (
    *("sqlite_utils", "pydantic", "yaml", "rich", "textual", "numpy", "rapidfuzz", "skillgit.engine"),
    *("skillgit.domain.event", "skillgit.domain.evaluation", "skillgit.store.commit_message"),
)
OTHER = "other"


def steps(context, *words, **wanted):
    """Return version or step of each event that is listed."""
    rows = ask(log, context, LogRequest(words=words, **wanted)).rows
    return [f"v{row.version}" if row.version is not None else f"{row.kind[0]}{row.step}" for row in rows]


def git(folder, *arguments):
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True).stdout


def test_events_come_newest_first(context, records):
    found = ask(log, context)
    assert found.run == RUN
    assert [row.commit for row in found.rows] == [record.commit for record in reversed(records)]
    assert [row.commit for row in ask(log, context, LogRequest(reverse=True)).rows] == [
        record.commit for record in records
    ]


@pytest.mark.usefixtures("records")
def test_events_can_be_chosen(context):
    assert steps(context) == ["r5", "r5", "v3", "v2", "s3", "s3", "r2", "v1", "v0"]
    assert [row.step for row in ask(log, context, LogRequest(words=(RUN,), events=frozenset({"rejected"}))).rows] == [
        5,
        2,
    ]
    assert len(steps(context, with_rejected=False)) == 7
    assert [row.kind for row in ask(log, context, LogRequest(words=("demo",), limit=1)).rows] == ["run-finished"]
    assert steps(context, limit=2, reverse=True) == ["r5", "r5"]
    assert [row.step for row in ask(log, context, LogRequest(grep="unit mismatch")).rows] == [1]
    with pytest.raises(RevisionNotFoundError):
        ask(log, context, LogRequest(words=(OTHER,)))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("v1..v2",), ["v2", "s3", "s3", "r2"]),
        (("^v1", "v2"), ["v2", "s3", "s3", "r2"]),
        (("v2", "^v1"), ["v2", "s3", "s3", "r2"]),
        (("v3^^..v3",), ["v3", "v2", "s3", "s3", "r2"]),
        (("v2..",), ["r5", "r5", "v3"]),
        (("^v2",), ["r5", "r5", "v3"]),
        (("..v1",), ["v1", "v0"]),
        (("v1",), ["v1", "v0"]),
        (("r2..best",), ["v3", "v2", "s3", "s3"]),
        ((f"{RUN}/v2..v3",), ["v3"]),
        ((f"v2..{RUN}/v3",), ["v3"]),
        ((RUN,), ["r5", "r5", "v3", "v2", "s3", "s3", "r2", "v1", "v0"]),
        (("v3..v1",), []),
        (("v2..v2",), []),
    ],
)
@pytest.mark.usefixtures("records")
def test_a_range_is_what_happened_after_one_event_up_to_another(context, words, expected):
    assert steps(context, *words) == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("v1...v2",), "has three dots"),
        (("..",), "needs a version at one end"),
        (("v1", "v2"), "is not one range"),
        (("^v1", "^v2"), "is not one range"),
        (("v1..v2", "v3"), "is not one range"),
        ((f"{RUN}/v1..other/v0",), f"'{RUN}/v1' is of run {RUN}, and 'other/v0' of run other"),
    ],
)
@pytest.mark.usefixtures("records")
def test_what_is_no_range_of_one_run_is_refused(context, repo, words, said):
    write_run(repo, OTHER, events=2)
    with pytest.raises(UsageError) as caught:
        ask(log, context, LogRequest(words=words))
    assert said in caught.value.message
    assert "skillgit log" not in caught.value.hint, "other commands take ranges, too"
    with pytest.raises(UsageError, match="--all cannot be combined with a run"):
        ask(log, context, LogRequest(words=("v1",), all_runs=True))


def test_events_of_a_time_are_chosen_by_time(context, records):
    third = records[3].time
    since = [row.commit for row in ask(log, context, LogRequest(since=third.isoformat())).rows]
    assert sorted(since) == sorted(record.commit for record in records if record.time >= third)
    until = [row.commit for row in ask(log, context, LogRequest(until=third.isoformat())).rows]
    assert sorted(until) == sorted(record.commit for record in records if record.time <= third)
    # the context's clock stands at noon, and the run began at nine
    assert len(ask(log, context, LogRequest(since="4 hours ago")).rows) == len(records)
    assert ask(log, context, LogRequest(since="1 hour ago")).rows == ()
    assert ask(log, context, LogRequest(until=(START - timedelta(hours=1)).isoformat())).rows == ()
    assert ask(log, context, LogRequest(until="yesterday")).rows == ()
    assert ask(log, context, LogRequest(since="tomorrow")).rows == ()
    assert ask(log, context, LogRequest(until="Tomorrow")).rows == ask(log, context).rows
    with pytest.raises(UsageError, match="'some day' is not a time"):
        ask(log, context, LogRequest(since="some day"))


@pytest.mark.usefixtures("records")
def test_an_item_is_followed_through_the_events_that_moved_it(context):
    assert steps(context, items=("q04",)) == ["v2", "s3", "v1"]
    found = ask(log, context, LogRequest(items=("q04",)))
    assert [found.flips[row.commit] for row in found.rows] == [{"q04": "fixed"}, {"q04": "fixed"}, {"q04": "broken"}]
    assert steps(context, items=("q07",)) == ["r2", "v1"]
    assert steps(context, items=("q01",)) == []
    with pytest.raises(NotFoundError, match="no event measured an item 'q4'") as caught:
        ask(log, context, LogRequest(items=("q04", "q4")))
    assert "q04" in caught.value.hint


@pytest.mark.usefixtures("records")
def test_several_items_are_followed_at_once(context):
    assert steps(context, items=("q04", "q07")) == ["v2", "s3", "r2", "v1"]
    found = ask(log, context, LogRequest(items=("q07", "q04", "q07")))
    assert [list(found.flips[row.commit]) for row in found.rows] == [["q04"], ["q04"], ["q07"], ["q04", "q07"]]


def test_a_change_is_what_git_diff_prints(context, repo, records):
    rows = ask(log, context).rows
    told = {row.commit: text for row, text in ask(changes, context, rows, patch=True, stat=False)}
    assert len(told) == len(records)
    for record in records[1:]:
        path = record.event.skill
        assert told[record.commit] == git(repo.workdir, "diff", record.parents[0], record.commit, "--", path)
    assert any(told.values())
    stats = {row.commit: text for row, text in ask(changes, context, rows, patch=False, stat=True)}
    for record in records[1:]:
        path = record.event.skill
        expected = git(repo.workdir, "diff", "--stat", record.parents[0], record.commit, "--", path)
        assert stats[record.commit] == expected


def test_all_runs_stand_in_one_log(context, repo, records):
    write_run(repo, OTHER, events=2)
    found = ask(log, context, LogRequest(all_runs=True))
    assert found.run == ""
    assert len(found.rows) == len(records) + 2
    assert [row.time for row in found.rows] == sorted((row.time for row in found.rows), reverse=True)
    told = list(ask(changes, context, found.rows, patch=True, stat=True))
    assert [row for row, _ in told] == list(found.rows)


def test_nothing_is_no_error_and_no_repository_is(context, empty):
    assert ask(log, context).rows == ()
    assert ask(log, context, LogRequest(all_runs=True)).rows == ()
    with pytest.raises(RepositoryNotFoundError):
        ask(log, empty)


def test_a_log_of_an_index_that_is_there_imports_nothing_heavy(context, records):
    ask(log, context)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from skillgit.app.workspace.context import Context\n"
        "from skillgit.app.workspace.workspace import Workspace\n"
        "from skillgit.app.history.log import log\n"
        "import skillgit.verbs.log\n"
        f"with Workspace(Context.from_process(Path({str(context.directory)!r}))) as workspace:\n"
        f"    assert len(log(workspace).rows) == {len(records)}\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
