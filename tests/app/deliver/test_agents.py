"""A bare word is an agent or a folder that exists; a slip makes no folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillgit.app.deliver.install import FOLDERS, USUAL_AGENTS, Agent, Scope, skills_folder
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import UsageError


def folder_of(context, to, scope=None):
    with Workspace(context) as workspace:
        return skills_folder(workspace, to, scope)


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("claud", "claude"),
        ("Cursor", "cursor"),
        ("gemnii", "gemini"),
        ("open-code", "opencode"),
        ("codexx", "codex"),
        ("zed", ""),
        ("skills2", ""),
        ("my.agent", ""),
    ],
)
def test_an_unknown_word_is_refused_with_the_list_and_a_way_out(context, word, near):
    with pytest.raises(UsageError, match=f"there is no agent and no folder '{word}'") as caught:
        folder_of(context, word)
    assert all(agent.value in caught.value.hint for agent in Agent)
    assert (f"did you mean '{near}'?" in caught.value.hint) == bool(near)
    assert folder_of(context, f"./{word}") == context.directory / word
    (context.directory / word).mkdir()
    assert folder_of(context, word) == context.directory / word


@pytest.mark.parametrize("path", ["a/b", "../beside", "~/of-mine", ".claude/skills", "."])
def test_a_path_is_a_folder_whether_it_exists_or_not(context, path):
    assert folder_of(replace(context, environ={"HOME": str(context.directory)}), path)


@pytest.mark.parametrize("agent", Agent)
def test_every_agent_has_a_folder_of_the_user_s_and_one_of_the_project(context, agent, tmp_path):
    context = replace(context, environ={"HOME": str(tmp_path / "home")})
    place = tmp_path / "home" / FOLDERS[agent][0]
    if agent not in USUAL_AGENTS:
        with pytest.raises(UsageError, match=f"{agent.value} is not on this machine") as caught:
            folder_of(context, agent.value)
        assert str(place) in caught.value.hint
        place.parent.mkdir(parents=True)
    assert folder_of(context, agent.value) == place
    assert folder_of(context, agent.value, Scope.PROJECT) == context.directory / FOLDERS[agent][1]
