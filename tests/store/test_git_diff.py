from __future__ import annotations

import os

import pytest
from sample_run import PATH, RUN

from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.store import diff


def test_it_is_what_git_prints(repo, history, git) -> None:
    for old, new in ((0, 1), (0, 6), (5, 6), (6, 0), (1, 1)):
        a, b = history[old].commit, history[new].commit
        assert diff.diff(repo, a, b, PATH).decode() == git("diff", a, b, "--", PATH)
        assert diff.stat(repo, a, b, PATH) == git("diff", "--stat", a, b, "--", PATH)
        assert diff.diff(repo, a, b).decode() == git("diff", a, b)


def test_the_users_own_settings_hold(repo, history, git) -> None:
    git("config", "diff.noprefix", "true")
    git("config", "diff.context", "1")

    printed = diff.diff(repo, history[0].commit, history[1].commit, PATH).decode()

    assert printed == git("diff", f"{RUN}/v0", f"{RUN}/v1", "--", PATH)
    assert "--- skills/demo/SKILL.md" in printed


def test_the_patch_applies(repo, history, git) -> None:
    git("switch", "-q", "--detach", history[0].commit)

    git("apply", "--check", "-", stdin=diff.diff(repo, history[0].commit, history[6].commit, PATH).decode())


def test_options_go_to_git(repo, history) -> None:
    printed = diff.diff(repo, history[0].commit, history[1].commit, PATH, options=("--word-diff=plain",))

    assert b"{+" in printed


def test_several_paths_are_taken_literally(repo, history, git) -> None:
    a, b = history[0].commit, history[6].commit

    assert diff.diff(repo, a, b, f"{PATH}/SKILL.md", f"{PATH}/references").decode() == git("diff", a, b)
    assert diff.diff(repo, a, b, f"{PATH}/*.md") == b""


def test_as_data_it_is_whole_files_whatever_the_user_has_set(repo, history, git) -> None:
    a, b = history[0].commit, history[6].commit
    expected = git("diff", "-U999", a, b)
    for key, value in (("color.ui", "always"), ("diff.noprefix", "true"), ("diff.external", "false")):
        git("config", key, value)

    assert diff.whole(repo, a, b, PATH) == expected
    assert "\n description: Answer questions" in expected


def test_a_change_is_seen_against_the_first_parent(repo, history, git) -> None:
    merge = history[5]

    assert diff.change(repo, merge.commit, PATH).decode() == git("diff", f"{merge.commit}^1", merge.commit, "--", PATH)
    assert diff.change(repo, history[3].commit, PATH) == b""
    assert b"+name: demo" in diff.change(repo, history[0].commit, PATH)


def test_a_repository_named_by_the_environment_is_not_asked(repo, history, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path))

    assert diff.diff(repo, history[0].commit, history[1].commit, PATH)


def test_commits_that_are_not_there_are_named(repo, history) -> None:
    with pytest.raises(RevisionNotFoundError):
        diff.diff(repo, history[0].commit, "0" * 40)


def test_without_git_the_hint_is_to_install_it(repo, history, monkeypatch) -> None:
    monkeypatch.setitem(os.environ, "PATH", "")

    with pytest.raises(NotFoundError, match="no git"):
        diff.diff(repo, history[0].commit, history[1].commit)
