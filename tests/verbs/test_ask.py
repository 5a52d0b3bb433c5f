"""Laws of what a surface asks without printing it: it is what the command answers, of the same skill and past."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from asking import ask
from contexts import context_in
from sample_run import RUN

from skillgit.app.history.requests import ItemsRequest, LogRequest
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import Grouping
from skillgit.errors import NotFoundError
from skillgit.verbs.cost import COST, CostRequest
from skillgit.verbs.diff import (
    DIFF,
    EVENT_DETAIL,
    ITEM_DIFF,
    RULE_DIFF,
    SHOW,
    SHOWN_EVENT,
    SHOWN_FILE,
    TEXT_DIFF,
    DiffRequest,
    ShowRequest,
)
from skillgit.verbs.items import ITEM_STORY, ITEM_TABLE, ITEMS
from skillgit.verbs.log import LOG
from skillgit.verbs.report import IN_SHORT, SummaryRequest
from skillgit.verbs.rules import BLAME, WHY, BlameRequest, WhyRequest
from skillgit.verbs.runs import RUNS, STATUS, RunsRequest, StatusRequest
from skillgit.verbs.verb import Form, ReadingSession
from skillgit.view.json_values import plain_value

pytestmark = pytest.mark.usefixtures("records")
ASKED = [
    (RUNS, RunsRequest(sort="-score")),
    (STATUS, StatusRequest()),
    (LOG, LogRequest(with_rejected=False)),
    (COST, CostRequest(by=Grouping.STEP)),
    (BLAME, BlameRequest(revision="v2")),
    (TEXT_DIFF, DiffRequest(a="v1", b="v3")),
    (RULE_DIFF, DiffRequest(a="v1..v3", rules=True)),
    (SHOWN_EVENT, ShowRequest(revision="v2")),
]


def id_of(value) -> str:
    return getattr(value, "name", "")


@pytest.mark.parametrize(("verb", "request_"), ASKED, ids=id_of)
def test_what_is_asked_for_is_what_is_printed(verb, request_, context):
    with Workspace(context, still=True) as workspace:
        asked, printed = (verb.run(ReadingSession(workspace, form=form), request_) for form in (Form.VALUE, Form.JSON))
        assert asked.result == printed.result == verb.ask(workspace, request_)
        assert plain_value([*asked.rows]) == plain_value([*printed.rows])


@pytest.mark.parametrize(("verb", "request_"), ASKED, ids=id_of)
def test_the_past_and_the_skill_are_those_of_the_request(verb, request_, context):
    past = replace(context, as_of=f"{RUN}/v3")
    assert ask(verb.ask, context, replace(request_, as_of=f"{RUN}/v3")) == ask(verb.ask, past, request_)
    with pytest.raises(NotFoundError, match="there is no skill"):
        ask(verb.ask, context, replace(request_, skill="no-such-skill"))


WAYS = [
    (DIFF, TEXT_DIFF, DiffRequest(a="v1", b="v3")),
    (DIFF, RULE_DIFF, DiffRequest(a="v1", b="v3", rules=True)),
    (DIFF, ITEM_DIFF, DiffRequest(a="v1", b="v3", items=True)),
    (SHOW, SHOWN_EVENT, ShowRequest(revision="v2")),
    (SHOW, SHOWN_FILE, ShowRequest(revision="v2:SKILL.md")),
    (ITEMS, ITEM_TABLE, ItemsRequest()),
    (ITEMS, ITEM_STORY, ItemsRequest(item="t1")),
]


@pytest.mark.parametrize(("verb", "way", "request_"), WAYS, ids=id_of)
def test_a_way_of_a_verb_answers_as_the_verb_does(verb, way, request_, context):
    assert way.words(request_) == verb.words(request_)
    results = []
    for asked in (verb, way):
        try:
            results.append(ask(asked.ask, context, request_))
        except NotFoundError as error:  # the sample has no outcomes of single items
            results.append(str(error))
    assert results[0] == results[1]


def test_an_event_in_detail_is_the_event_and_its_neighbours(context, records):
    details = [ask(EVENT_DETAIL.ask, context, ShowRequest(revision=record.commit)) for record in records]
    rows = [detail.shown.row for detail in details]
    assert [detail.around for detail in details] == [*zip([None, *rows], [*rows[1:], None], strict=False)]


@pytest.mark.parametrize(("line", "path"), [("3", "SKILL.md"), ("5", "SKILL.md")])
def test_a_rule_is_named_by_its_line_also_with_its_file(line, path, context):
    asked = replace(ask(WHY.ask, context, WhyRequest(rule=line, path=path)), asked="")
    assert replace(ask(WHY.ask, context, WhyRequest(rule=f"{path}:{line}")), asked="") == asked


def test_the_run_in_short_is_there_without_its_settings(context, tmp_path):
    here = ask(IN_SHORT.ask, context, SummaryRequest(run=RUN))
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--no-local", context.directory, clone], check=True)
    there = ask(IN_SHORT.ask, context_in(clone), SummaryRequest(run=RUN))
    assert there.settings is None
    assert there.summary.run.best_score == here.summary.run.best_score
    assert there.rules == here.rules
