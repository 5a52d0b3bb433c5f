from __future__ import annotations

import os

import pytest
from sample_run import RUN

from skillgit.errors import RemoteError
from skillgit.store import refs
from skillgit.store.exchange.sending import RefState, advertised, plan, send
from skillgit.store.exchange.transport import RemoteConnection, ask, talk
from skillgit.store.repo import Repo


@pytest.fixture
def there(git, tmp_path) -> Repo:
    """An empty repository that the one of the test calls origin."""
    git("init", "-q", "--bare", str(tmp_path / "there.git"))
    git("remote", "add", "origin", str(tmp_path / "there.git"))
    return Repo.discover(tmp_path / "there.git")


@pytest.mark.usefixtures("history", "there")
@pytest.mark.parametrize("shows", [True, False])
def test_progress_is_told_line_by_line_to_whom_watches_and_nothing_of_git_s_own_to_others(repo, shows):
    told: list[tuple[str, str]] = []
    line = RemoteConnection(environ=os.environ, shows=shows, tell=lambda text, end: told.append((text, end)))
    wanted = {refs.run_branch(RUN): repo.tips()[refs.run_branch(RUN)]}
    send(repo, line, "origin", plan(repo, wanted, {}, remote="origin"), verify=True)
    assert any(end == "\r" and text.startswith("Counting objects") for text, end in told) is shows
    assert bool(told) is shows


def test_what_the_host_says_is_told_to_everybody(repo, history, there):
    hook = there.common_dir / "hooks" / "update"
    hook.write_text("#!/bin/sh\necho 'welcome' >&2\n")
    hook.chmod(0o755)
    told: list[str] = []
    line = RemoteConnection(environ=os.environ, tell=lambda text, _: told.append(text))
    wanted = {refs.version_tag(RUN, 0): history[0].commit}
    (one,) = send(repo, line, "origin", plan(repo, wanted, {}, remote="origin"), verify=True)
    assert [text.rstrip() for text in told] == ["remote: welcome"]
    assert one.state is RefState.PUSHED
    assert advertised(repo, line, "origin") == wanted == {name: there.tip(name) for name in wanted}


def test_git_asks_nobody_where_nobody_answers(repo):
    seen = talk(
        repo, RemoteConnection(environ={**os.environ, "GIT_DIR": "/nowhere"}), "-c", "alias.x=!env", "x"
    ).out.decode()
    variables = dict(row.partition("=")[::2] for row in seen.splitlines())
    assert variables["GIT_TERMINAL_PROMPT"] == "0"
    assert variables["GIT_SSH_COMMAND"] == "ssh -o BatchMode=yes"
    assert variables["LC_ALL"] == "C"
    asked = talk(repo, RemoteConnection(environ=os.environ, asks=True), "-c", "alias.x=!env", "x").out.decode()
    assert "GIT_TERMINAL_PROMPT" not in asked


@pytest.mark.parametrize("name", ["GIT_SSH", "GIT_SSH_COMMAND"])
def test_the_user_s_own_ssh_is_left_alone(name, repo):
    seen = talk(repo, RemoteConnection(environ={**os.environ, name: "mine"}), "-c", "alias.x=!env", "x").out.decode()
    assert f"{name}=mine" in seen
    assert "BatchMode" not in seen


def test_a_failure_is_an_error_about_the_remote(repo):
    with pytest.raises(RemoteError, match="there is no repository at origin"):
        ask(repo, RemoteConnection(environ=os.environ), "origin", "ls-remote", "/nowhere/at/all")
