from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from skillgit_backends.agent_cli.backend import ALLOWED, child_environment, without_secrets
from skillgit_backends.agent_cli.prompting import DeliveredSkill
from skillgit_backends.agent_cli.workspace import fresh_workspace


def test_a_workspace_is_empty_private_and_gone_afterwards():
    with fresh_workspace() as workspace, fresh_workspace() as other:
        assert list(workspace.home.iterdir()) == list(workspace.work.iterdir()) == []
        assert workspace.root != other.root
        assert workspace.root.stat().st_mode & 0o077 == 0
        assert not workspace.home.is_relative_to(workspace.temporary)
    assert not workspace.root.exists()


def locked_by_its_agent() -> NoReturn:
    with fresh_workspace() as workspace:
        locked = workspace.work / "locked"
        locked.mkdir()
        (locked / "file").touch()
        locked.chmod(0o500)
        (workspace.work / "away").symlink_to(tempfile.gettempdir())
        raise KeyError(str(workspace.root))


def test_a_workspace_goes_also_after_an_error_and_when_its_folders_are_locked():
    with pytest.raises(KeyError) as caught:
        locked_by_its_agent()
    assert not Path(caught.value.args[0]).exists()
    assert Path(tempfile.gettempdir()).exists()


def test_skills_are_placed_where_the_agent_looks():
    with fresh_workspace() as workspace:
        workspace.place_skills(".agents/skills", [DeliveredSkill(name="a", document="text")])
        assert (workspace.work / ".agents/skills/a/SKILL.md").read_text() == "text"


def test_a_private_file_is_nobody_elses():
    with fresh_workspace() as workspace:
        path = workspace.place_private(workspace.home / ".x" / "y", "text")
        assert path.stat().st_mode & 0o777 == 0o600


def test_only_named_variables_reach_an_agent():
    environ = {
        "PATH": "/bin",
        "AWS_SECRET_ACCESS_KEY": "s",
        "HOME": "/mine",
        "HTTPS_PROXY": "p",
        "EXTRA": "e",
        "T": "t",
    }
    with fresh_workspace() as workspace:
        made = child_environment(environ, workspace, names=["EXTRA"], ADDED="a", EMPTY="")
        assert set(made) <= {*ALLOWED, "HOME", "TMPDIR", "TERM", "NO_COLOR", "EXTRA", "ADDED"}
        assert made["HOME"] == str(workspace.home)
        assert (made["EXTRA"], made["ADDED"], made["HTTPS_PROXY"]) == ("e", "a", "p")


def test_secrets_are_taken_out_of_words():
    environment = {"KEY": "sk-0123456789", "SHORT": "no"}
    assert without_secrets("bad sk-0123456789 no", environment, ["KEY", "SHORT", "ABSENT"]) == "bad [redacted] no"
