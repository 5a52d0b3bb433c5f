"""Plumbing answers as git does, and tells events as they stand."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from asking import ask
from sample_run import PATH, RUN, write_run

from skillgit.app.history.plumbing import cat, events, rev_parse, sql
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event import FACTS_OF
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError


def git(context, *arguments, given=None):
    command = ["git", "-C", str(context.directory), *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("span", ["v1..v3", "v2..v3", "^v1", "v3"])
def test_commits_and_ranges_are_those_of_git(context, span):
    theirs = git(context, "rev-parse", span.replace("v", f"{RUN}/v")).decode().split()
    ours = [f"{'^' if one.excluded else ''}{one.commit}" for one in ask(rev_parse, context, [span])]
    assert ours == theirs
    short = git(context, "rev-parse", "--short", theirs[0].lstrip("^")).decode().strip()
    assert ask(rev_parse, context, [span], short=True)[0].commit == short


def test_open_ranges_end_with_the_newest_version(context, records):
    assert [one.commit for one in ask(rev_parse, context, ["v1..", "..v1", "best"])] == [
        records[6].commit,
        records[1].commit,
        records[1].commit,
        records[6].commit,
    ]
    with pytest.raises(RevisionNotFoundError):
        ask(rev_parse, context, ["v7"])


def test_a_file_of_a_version_comes_byte_for_byte(context, records):
    for revision in ("v0", "v3", "r2", records[4].commit):
        commit = ask(rev_parse, context, [revision])[0].commit
        assert ask(cat, context, revision) == git(context, "cat-file", "-p", f"{commit}:{PATH}/SKILL.md")
    assert ask(cat, context, "v1:scripts/convert.sh") == b"#!/bin/sh\nexit 0\n"
    assert ask(cat, context, f"v1:{PATH}/references/units.md") == ask(cat, context, "v1:references/units.md")


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("v1:SKILL", "did you mean 'v1:SKILL.md'?"),
        ("v1:scripts", "did you mean 'v1:scripts/convert.sh'?"),
        ("v1:/etc/passwd", "it has SKILL.md, references/units.md, scripts/convert.sh"),
        ("v1:../../x", "it has SKILL.md, references/units.md, scripts/convert.sh"),
    ],
)
def test_a_file_that_is_not_there_is_told_with_those_that_are(context, name, hint):
    with pytest.raises(NotFoundError, match="has no file") as caught:
        ask(cat, context, name)
    assert caught.value.hint == hint


def test_events_tell_every_field_of_every_event(context, records):
    told = list(ask(events, context))
    assert [one["commit"] for one in told] == [record.commit for record in records]
    for one, record in zip(told, records, strict=True):
        names = FACTS_OF[record.event.kind].names
        assert {*names} <= one.keys()
        assert (one["schema"], one["parents"], one["tree"]) == ("skillgit.event/1", record.parents, record.tree)
        assert all(one[name] == getattr(record.event, name) for name in names)


def test_events_of_a_range_and_of_all_runs(context, repo, records):
    assert [one["commit"] for one in ask(events, context, ["v1..r2"])] == [records[2].commit]
    write_run(repo, "other", events=2)
    runs = [one["run"] for one in ask(events, context, all_runs=True)]
    assert runs == [RUN] * len(records) + ["other"] * 2
    with pytest.raises(UsageError, match="--all cannot be combined with"):
        list(ask(events, context, ["v1"], all_runs=True))


def test_events_are_read_one_by_one(context, records, monkeypatch):
    monkeypatch.setattr("skillgit.app.history.plumbing._AT_ONCE", 2)
    stream = ask(events, context)
    assert next(stream)["commit"] == records[0].commit
    assert [one["commit"] for one in stream] == [record.commit for record in records[1:]]


def rows(context, query):
    with Workspace(context) as workspace, sql(workspace, query) as answer:
        return answer.columns, list(answer.rows)


@pytest.mark.usefixtures("records")
def test_a_query_is_answered(context):
    assert rows(context, "SELECT version, score FROM scoreboard ORDER BY version") == (
        ("version", "score"),
        [(0, 0.4), (1, 0.6), (2, 0.7), (3, 0.8)],
    )
    assert rows(context, "SELECT 1 AS a, 2 AS a, 3 AS a")[0] == ("a", "a_2", "a_3")
    assert rows(context, "SELECT count(*) FROM search WHERE search MATCH 'unit*'")[1][0][0] > 0
    assert ("oid",) in [row[1:2] for row in rows(context, "PRAGMA table_info(event)")[1]]
    assert rows(replace(context, as_of="v1"), "SELECT max(version) FROM log")[1] == [(1,)]


READ_ONLY = "this may only read the index"
REFUSED = {
    "SELEC 1": 'SQL: near "SELEC": syntax error',
    "": "invalid query",
    "SELECT * FROM evnt": "SQL: no such table: evnt",
    "SELECT nought FROM event": "SQL: no such column: nought",
    "SELECT 1; SELECT 2": "SQL: you can only execute one statement at a time",
    "DELETE FROM event": READ_ONLY,
    "UPDATE run SET name = 'x'": READ_ONLY,
    "DROP TABLE event": READ_ONLY,
    "CREATE TEMP TABLE x (y)": READ_ONLY,
    "ATTACH '/tmp/elsewhere.db' AS x": READ_ONLY,
    "PRAGMA user_version = 1": READ_ONLY,
    "PRAGMA query_only = OFF": READ_ONLY,
    "VACUUM INTO '/tmp/elsewhere.db'": READ_ONLY,
    "SELECT load_extension('x')": READ_ONLY,
    "INSERT INTO search (search) VALUES ('rebuild')": READ_ONLY,
}


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("as_of", ["", "v3"])
def test_what_is_no_query_is_refused_in_a_sentence(context, as_of):
    before = rows(context, "SELECT * FROM event")
    for query, sentence in REFUSED.items():
        with pytest.raises(UsageError) as caught:
            rows(replace(context, as_of=as_of), query)
        assert (caught.value.message, bool(caught.value.hint)) == (sentence, True), query
    assert rows(context, "SELECT * FROM event") == before


@pytest.mark.usefixtures("records")
def test_an_error_behind_the_first_rows_is_a_sentence_too(context):
    query = "SELECT json_extract(x, '$.a') FROM (SELECT '{}' AS x UNION ALL SELECT 'no json')"
    with pytest.raises(UsageError, match="SQL: malformed JSON"):
        rows(context, query)


@pytest.mark.usefixtures("records")
def test_events_as_json_round_trip_through_the_command(context):
    done = subprocess.run(
        [sys.executable, "-m", "skillgit", "-C", str(context.directory), "log", "--jsonl"],
        capture_output=True,
        check=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told[1]["verdict"]["decision"] == "accept_new_best"
    assert told[1]["evaluation"]["hard"] == 0.6
    assert told[0]["models"] == {"target": "offline/student", "optimizer": "offline/teacher", "judge": ""}
