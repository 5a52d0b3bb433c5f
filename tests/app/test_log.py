from __future__ import annotations

import subprocess
import sys

import pytest
from sample_run import RUN, write_run

from skillgit.app.log import log
from skillgit.errors import RepositoryNotFoundError, RevisionNotFoundError, UsageError

HEAVY = ("sqlite_utils", "pydantic", "yaml", "rich", "textual", "numpy", "tenacity", "rapidfuzz", "skillgit.engine")


def test_events_come_newest_first(context, records):
    found = log(context, None)
    assert found.run == RUN
    assert [row.commit for row in found.rows] == [record.commit for record in reversed(records)]
    assert [row.kind for row in found.rows][:3] == ["run-finished", "rejected", "accepted"]


def test_events_can_be_chosen(context, records):
    assert [row.step for row in log(context, RUN, events=frozenset({"rejected"})).rows] == [5, 2]
    assert len(log(context, RUN, rejected=False).rows) == len(records) - 2
    assert [row.kind for row in log(context, "demo", limit=1).rows] == ["run-finished"]
    assert [row.step for row in log(context, None, grep="unit mismatch").rows] == [1]
    with pytest.raises(UsageError, match="there is no event 'acepted'"):
        log(context, None, events=frozenset({"acepted"}))
    with pytest.raises(RevisionNotFoundError):
        log(context, "other")


def test_all_runs_stand_in_one_log(context, repo, records):
    write_run(repo, "other", events=2)
    found = log(context, None, all_runs=True)
    assert found.run == ""
    assert len(found.rows) == len(records) + 2
    assert [row.time for row in found.rows] == sorted((row.time for row in found.rows), reverse=True)


def test_nothing_is_no_error_and_no_repository_is(context, empty):
    assert log(context, None).rows == ()
    assert log(context, None, all_runs=True).rows == ()
    with pytest.raises(RepositoryNotFoundError):
        log(empty, None)


def test_a_log_of_an_index_that_is_there_imports_nothing_heavy(context, records):
    log(context, None)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from skillgit.app.context import Context\n"
        "from skillgit.app.log import log\n"
        f"assert len(log(Context.from_process(Path({str(context.directory)!r})), None).rows) == {len(records)}\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
