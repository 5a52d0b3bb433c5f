"""A workspace: opened when it is first needed, once for all that is asked of it, and closed by who made it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from skillgit.app.history.requests import LogRequest
from skillgit.app.workspace.request import OfPast, OfSkill
from skillgit.app.workspace.workspace import Workspace, explained
from skillgit.errors import RepositoryNotFoundError
from skillgit.index import refresh
from skillgit.verbs.log import LOG


@pytest.fixture
def openings(monkeypatch) -> list[refresh.Index]:
    indexes: list[refresh.Index] = []
    open_index = refresh.open_index

    def opened(repo):
        indexes.append(open_index(repo))
        return indexes[-1]

    monkeypatch.setattr(refresh, "open_index", opened)
    return indexes


def test_a_workspace_that_is_never_looked_at_needs_no_repository(context, tmp_path):
    with Workspace(replace(context, directory=tmp_path, skill="any", as_of="v1"), still=True) as workspace:
        assert workspace.asked(LogRequest()) is workspace
    with Workspace(replace(context, directory=tmp_path)) as workspace, pytest.raises(RepositoryNotFoundError):
        workspace.repo.head()


@pytest.mark.usefixtures("records")
def test_all_that_is_asked_of_it_is_of_one_opening_and_closed_with_it(context, openings):
    with Workspace(context, still=True) as workspace:
        answers = [LOG.ask(workspace, LogRequest(limit=limit)) for limit in (1, 2, 2)]
        assert answers[1] == answers[2] != answers[0]
        of_skill = workspace.asked(OfSkill(skill=workspace.index.skill_path(answers[0].run)))
        assert of_skill.index is workspace.index
        assert (workspace.skill, bool(of_skill.skill), of_skill.context.skill) == ("", True, of_skill.skill)
        assert len(openings) == 1
        past = workspace.asked(OfPast(as_of="v1"))
        assert LOG.ask(past, LogRequest()) == LOG.ask(workspace, LogRequest(as_of="v1")) != answers[0]
        assert (past.past, workspace.past) == (True, False)
    for index in openings:
        with pytest.raises(sqlite3.ProgrammingError, match="closed") as refusal:
            index.select("SELECT 1")
        assert explained(refusal.value, context) is None, "a fault of ours, not of the file"
        assert refresh.path_of(index.today).is_file()
