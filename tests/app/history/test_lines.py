"""Runs whose versions fork and join: what every look at them says."""

from __future__ import annotations

from itertools import count

import pytest
from asking import ask
from branching import branched
from sample_run import clock_from

from skillgit.app.attribution.line_tracer import Tracer
from skillgit.app.attribution.rule_lineage import RuleHistory
from skillgit.app.history.bisect import Bisected, bisect
from skillgit.app.history.diff.rules import rule_diff
from skillgit.app.history.diff.text import diff
from skillgit.app.history.log import changes, log
from skillgit.app.history.requests import ItemsRequest, LogRequest
from skillgit.app.history.show import show
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import UsageError
from skillgit.index import index_check, schema, version_queries
from skillgit.index.refresh import Index, open_index
from skillgit.store.event_writer import RunWriter

RUN, PATH = "toy-1", "skills/toy"


@pytest.fixture
def lines(repo):
    """The run of a search that forks and joins: v2 is made of v0, v3 of v2 with the edits of v1, and v4 of v1."""
    return written(repo, "pareto")


def written(repo, strategy):
    history = branched(strategy, {"pareto": 136, "racing": 9}[strategy])
    writer = RunWriter(repo, RUN, clock_from(count()))
    records = [writer.append(t.event, t.skill, t.evidence) for t in history]
    return {record.event.version: record for record in records if record.event.kind is EventKind.ACCEPTED}


def test_the_sample_has_the_lines_that_it_says(lines):
    sources = {number: (record.event.base, record.event.joined) for number, record in lines.items()}
    assert sources == {1: (0, None), 2: (0, None), 3: (2, 1), 4: (1, None)}


@pytest.mark.usefixtures("lines")
def test_an_event_is_shown_against_its_base(context):
    shown = ask(show, context, "v2")
    assert shown.row.lines == (0,)
    assert shown.diff == ask(diff, context, "v0", "v2").text.decode()
    assert shown.diff != ask(diff, context, "v1", "v2").text.decode()
    assert ask(show, context, "v3").row.lines == (2, 1)
    assert ask(show, context, "v1").row.lines == ()


def test_a_log_has_the_changes_against_the_base_and_edges_to_all_lines(context, lines):
    found = ask(log, context, LogRequest(graph=True))
    assert found.parents[lines[2].commit] == (lines[2].parents[1],)
    assert found.parents[lines[4].commit] == (lines[1].commit,)
    assert lines[1].commit not in found.parents
    texts = {row.version: text.decode() for row, text in ask(changes, context, found.rows, patch=True, stat=False)}
    for number in lines:
        assert texts[number] == ask(show, context, f"v{number}").diff


def test_lines_are_blamed_along_the_text(context, lines):
    with Workspace(context) as workspace:
        tracer = Tracer(workspace)
        for number, record in lines.items():
            own = version_queries.sources(workspace.index, [record.commit]).get(record.commit)
            for line in tracer.trace(record.commit, f"{PATH}/SKILL.md"):
                version = line.origin.version if line.origin else 0
                assert version_queries.lineage(workspace.index, RUN, version or 0, number), (number, line)
            assert tracer.before(record.commit) == (own[0] if own else record.parents[0])


@pytest.mark.usefixtures("lines")
def test_a_lineage_leads_from_base_to_base(context):
    with Workspace(context) as workspace:
        found = {(a, b): version_queries.lineage(workspace.index, RUN, a, b) for b in range(5) for a in range(b + 1)}
    assert found[0, 3] == (0, 2, 3)
    assert found[1, 3] == (1, 3)
    assert found[1, 2] == found[2, 4] == found[3, 4] == ()
    assert found[0, 4] == (0, 1, 4)


def test_a_rule_of_a_line_that_was_left_is_gone_with_the_version_of_an_older_one(context, lines):
    with Workspace(context) as workspace:
        history = RuleHistory(workspace)
        only = {rule.text for rule in rules_of(history, lines[1])} - {rule.text for rule in rules_of(history, lines[2])}
        rule = next(rule for rule in rules_of(history, lines[1]) if rule.text in only)
        change = history._change(RUN, PATH, 1, 2, rule)
    assert (change.fate, change.version, change.rule) == ("left", 2, None)


def rules_of(history, record):
    return history.skill(record.commit, PATH)[f"{PATH}/SKILL.md"].rules


@pytest.mark.usefixtures("lines")
def test_rules_of_two_lines_are_told_by_what_brought_them(context):
    rows = ask(rule_diff, context, "v1", "v2").rows
    assert rows
    assert {row.deed for row in rows} == {"brought"}
    assert {row.version for row in rows if row.change == "removed"} == {1}
    assert {row.version for row in rows if row.change == "added"} == {2}


@pytest.mark.usefixtures("lines")
def test_bisect_looks_along_one_line(context):
    with pytest.raises(UsageError, match="v2 was not made of v1"):
        ask(bisect, context, ItemsRequest(item="selection0", run="v1..v2"))
    found = [ask(bisect, context, ItemsRequest(item=f"selection{number}")) for number in range(16)]
    suspects = {name for one in found if isinstance(one, Bisected) for name in one.suspects}
    assert suspects
    assert suspects <= {"v1", "v4"}


def test_an_index_that_grew_event_by_event_equals_one_that_is_built_anew(repo):
    history = branched("pareto", 2)
    writer = RunWriter(repo, RUN, clock_from(count()))
    for transition in history:
        writer.append(transition.event, transition.skill, transition.evidence)
        open_index(repo).close()
    with open_index(repo) as index, Index(repo, schema.in_memory(), on_disk=False) as fresh:
        assert index_check.content(index) == index_check.content(fresh)


def test_a_race_and_a_union_are_told_by_their_steps(context, repo):
    written(repo, "racing")
    rows = ask(log, context, LogRequest()).rows
    details = [ask(show, context, row.commit) for row in rows]
    lost = next(one for one in details if one.event.kind is EventKind.REJECTED and one.event.verdict.outrun)
    assert lost.rival is not None
    assert lost.rival.step == lost.event.verdict.outrun
    union = next(one for one in details if one.taken_up)
    for step in union.taken_up:
        left = ask(show, context, step.commit)
        assert left.event.title == f"taken up by step {union.row.step}"
        assert left.rival is not None
        assert left.rival.commit == union.row.commit
