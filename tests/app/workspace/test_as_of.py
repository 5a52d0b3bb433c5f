"""What ``--as-of`` shows is what was shown then: the same questions, asked when the run was so far."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from asking import ask
from program import skillgit
from sample_run import RUN, write_run
from soaking import sampled_rows

from skillgit.app.history.cost import cost
from skillgit.app.history.diff.text import diff
from skillgit.app.history.log import log
from skillgit.app.history.plumbing import events, sql
from skillgit.app.history.requests import LogRequest
from skillgit.app.history.run_list import run_list
from skillgit.app.history.show import show
from skillgit.app.history.status import status
from skillgit.app.workspace.revision import resolve
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import RevisionNotFoundError
from skillgit.index import index_check
from skillgit.store import notes
from skillgit.store.repo import Repo
from skillgit.verbs.log import LOG

PLACES = {"v0": 1, "v1": 2, "r2": 3, "v2": 6, "v3": 7, "r5": 8}
"""Events by then."""


@pytest.fixture
def then(tmp_path, context):
    """Return the same run as it was when it had so many events."""

    def so_far(count):
        folder = tmp_path / f"then-{count}"
        repo = Repo.init(folder)
        write_run(repo, events=count)
        return replace(context, directory=folder.resolve())

    return so_far


def asked(context):
    """Return the answers of read commands, without the folder and the places of refs that tell nothing."""
    return {
        "log": ask(log, context),
        "best": ask(show, context, "best"),
        "runs": ask(run_list, context).rows,
        "cost": ask(cost, context, None),
        "head": ask(show, context, "head"),
        "diff": ask(diff, context, "v0", "head"),
        "status": replace(ask(status, context), repository=context.directory, checked_out="", trunk=""),
        "events": list(ask(events, context)),
    }


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize(("revision", "count"), sampled_rows(PLACES.items(), 3))
def test_every_answer_is_the_one_of_then(context, then, revision, count):
    past, present = asked(replace(context, as_of=revision)), asked(then(count))
    present["status"] = replace(present["status"], repository=context.directory)
    for name, answer in present.items():
        assert past[name] == answer, name


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize(("revision", "count"), sampled_rows(PLACES.items(), 3))
def test_every_row_of_the_index_is_the_one_of_then(context, then, revision, count):
    with Workspace(replace(context, as_of=revision)) as past, Workspace(then(count)) as present:
        found, expected = index_check.content(past.index), index_check.content(present.index)
        for contents in (found, expected):
            for key in list(contents):
                # evidence and main are those of today; text is found by events, which are cut off
                if key[0] in {"ref", "search", "plan"}:
                    del contents[key]
        assert found == expected
        wanted = {name: oid for name, oid in present.repo.tips().items() if "evidence" not in name}
        assert past.repo.tips() == wanted
        assert past.live() == {}


def test_revisions_are_those_of_then(context, records):
    past = replace(context, as_of="v1")
    assert ask(resolve, past, "best").commit == ask(resolve, past, "head").commit == records[1].commit
    assert ask(resolve, past, f"run/{RUN}").commit == records[1].commit
    with pytest.raises(RevisionNotFoundError, match="has no v2"):
        ask(resolve, past, "v2")
    with pytest.raises(RevisionNotFoundError, match="rejected nothing at step 2"):
        ask(resolve, past, "r2")
    with pytest.raises(RevisionNotFoundError, match="there is no revision 'v9x'"):
        ask(log, replace(context, as_of="v9x"))


@pytest.mark.usefixtures("records")
def test_a_log_is_cut_off_behind_a_version_of_the_run_that_it_is_about(context, repo):
    others = write_run(repo, "other", events=4)
    for word in ("other", "other/v0.."):
        assert ask(LOG.ask, context, LogRequest(words=(word,), as_of="v1")).rows[0].commit == others[1].commit
    with pytest.raises(RevisionNotFoundError, match="run other has no v3"):
        ask(LOG.ask, context, LogRequest(words=("other/v3",), as_of="v1"))


def test_other_runs_are_cut_by_time_and_searches_find_nothing_later(context, repo, records):
    write_run(repo, "other", events=4)
    past = replace(context, as_of=f"{RUN}/v1")
    by_then = records[1].time
    found = ask(log, past, LogRequest(all_runs=True)).rows
    assert {row.run for row in found} == {RUN, "other"}
    assert max(row.time for row in found) <= by_then
    assert len(ask(log, context, LogRequest(all_runs=True, grep="a")).rows) > len(
        ask(log, past, LogRequest(all_runs=True, grep="a")).rows
    )


def test_notes_that_were_left_later_are_not_there(context, repo, records):
    early, late = ({"kind": "evaluation", "time": time} for time in ("2026-11-21T09:00:00Z", "2027-01-01T00:00:00Z"))
    notes.append(repo, {records[1].commit: [early, late]}, time=records[1].time)
    query = "SELECT json_extract(line, '$.time') FROM note"
    with Workspace(context) as workspace, sql(workspace, query) as answer:
        assert len(list(answer.rows)) == 2
    with Workspace(replace(context, as_of="v1")) as workspace, sql(workspace, query) as answer:
        assert [row[0] for row in answer.rows] == ["2026-11-21T09:00:00Z"]


@pytest.mark.usefixtures("records")
def test_looking_back_changes_nothing(context, repo):
    before = ask(log, context)
    ask(log, replace(context, as_of="v1"))
    assert ask(log, context) == before
    with Workspace(replace(context, as_of="v1")) as workspace:
        workspace.index.refresh()
        assert len(workspace.index.select("SELECT 1 FROM event")) == 2
    with Workspace(context) as workspace:
        assert index_check.differing_runs(workspace.index) == frozenset()
    assert repo.tip("refs/heads/run/" + RUN) == before.rows[0].commit or before.rows[0].kind == "rejected"


@pytest.mark.usefixtures("records")
def test_a_damaged_index_is_cut_off_in_memory_too(context):
    with Workspace(replace(context, as_of="v1")) as workspace:
        workspace.index._leave_disk(ValueError())
        assert not workspace.index.on_disk
        assert len(workspace.index.select("SELECT 1 FROM log")) == 2
        workspace.index.close()


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("command", ["log", "runs", "cost"])
def test_the_option_cuts_off_what_a_command_reads(context, command):
    def run(*arguments):
        done = skillgit("-C", context.directory, command, "--json", *arguments, cwd=context.directory)
        return json.loads(done.out)

    assert run("--as-of", "v1") != run()
