from __future__ import annotations

import pytest
from asking import ask
from real_git import git
from sample_run import RUN, write_run

from skillgit.app.workspace.revision import default_run, find_run, resolve
from skillgit.app.workspace.workspace import Workspace, use
from skillgit.errors import HistoryError, RevisionNotFoundError

OTHER = "demo-20261122-zzzz"


NAMED = {
    "v0": 0,
    "v1": 1,
    "v3": 6,
    "best": 6,
    "head": 6,
    "r2": 2,
    "r5": 7,
    "v3~1": 5,
    "v3~~": 1,
    "v3~2~1": 0,
    "head~": 5,
    "best~3": 0,
    "r5~1": 6,
    "r5~2": 5,
    "v2^2": 4,
    f"{RUN}/v2^2~1": 0,
    "v2^0": 5,
    "v1^{commit}": 1,
    f"{RUN}/v1": 1,
    "demo-2026/best": 6,
    f"{RUN}/r2": 2,
    f"{RUN}/head~1": 5,
    RUN: 6,
    "demo-2": 6,
    f"run/{RUN}": 8,
    f"best/{RUN}": 6,
    f"refs/tags/{RUN}/v1": 1,
    f"rejected/{RUN}/0002": 2,
    f"run/{RUN}~1": 6,
    f"{RUN}~1": 5,
    f"{RUN}^^": 1,
}
"""Revisions, to the place of the event that each names."""


def test_what_a_revision_names(context, records):
    for text, place in NAMED.items():
        named = ask(resolve, context, text)
        assert named.row is not None, text
        assert (named.commit, named.row.commit, named.run) == (*[records[place].commit] * 2, RUN), text


def test_commits_are_found_by_a_beginning_and_need_not_be_events(context, repo, records):
    assert ask(resolve, context, records[4].commit[:10]).commit == records[4].commit
    tree = git(repo.workdir, "rev-parse", f"{records[0].commit}^{{tree}}").strip()
    plain = git(
        repo.workdir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit-tree", tree, "-m", "x"
    ).strip()
    assert ask(resolve, context, plain) == type(ask(resolve, context, plain))(commit=plain, row=None, run=None)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("v4", "it has v0 to v3"),
        ("v1~2", "it has v0 to v3"),
        ("r1", "it has r2, r5"),
        ("nothing", f"runs: {RUN}"),
        ("", f"runs: {RUN}"),
        ("demo-20261121-abcx", f"did you mean '{RUN}'?"),
        ("demo-20261121-abcx/v1", f"did you mean '{RUN}'?"),
        ("0123456789", f"runs: {RUN}"),
    ],
)
@pytest.mark.usefixtures("records")
def test_what_does_not_exist_comes_with_what_does(context, text, hint):
    with pytest.raises(RevisionNotFoundError) as caught:
        ask(resolve, context, text)
    assert caught.value.hint == hint


@pytest.mark.usefixtures("records")
def test_what_is_no_commit_is_no_revision(context):
    with pytest.raises(RevisionNotFoundError, match=r"'v1\^\{tree\}' names no commit"):
        ask(resolve, context, "v1^{tree}")


def test_without_runs_only_git_is_asked(context):
    for text in ("v1", "best", "HEAD", "demo"):
        with pytest.raises(RevisionNotFoundError):
            ask(resolve, context, text)
    with Workspace(context) as workspace:
        assert default_run(workspace) is None
        with pytest.raises(RevisionNotFoundError, match="no runs yet"):
            find_run(workspace, None)


@pytest.mark.usefixtures("records")
def test_the_default_run_is_the_newest_unless_one_is_chosen(context, repo):
    write_run(repo, OTHER, events=3)
    with Workspace(context) as workspace:
        assert default_run(workspace) == RUN
        with pytest.raises(RevisionNotFoundError, match="may be any of"):
            find_run(workspace, "demo")
    row = use(context, "demo-20261122")
    assert row.name == OTHER
    assert git(repo.workdir, "config", "skillgit.run").strip() == OTHER
    assert ask(resolve, context, "head").run == OTHER
    git(repo.workdir, "config", "skillgit.run", "gone")
    with pytest.raises(RevisionNotFoundError, match="default run 'gone'"):
        ask(resolve, context, "v0")


@pytest.mark.usefixtures("records")
def test_a_clone_knows_the_branches_of_its_remote(context, repo, tmp_path, empty):
    git(tmp_path, "clone", "--quiet", str(repo.workdir), str(empty.directory))
    for text in ("v3", "best", f"run/{RUN}", f"best/{RUN}", f"rejected/{RUN}/0002", f"{RUN}/v1"):
        assert ask(resolve, empty, text) == ask(resolve, empty, ask(resolve, context, text).commit)


def test_a_run_that_cannot_be_read_says_why(context, repo, records):
    tree = git(repo.workdir, "rev-parse", f"{records[0].commit}^{{tree}}").strip()
    stray = git(repo.workdir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit-tree", tree, "-m", "x")
    git(repo.workdir, "update-ref", f"refs/heads/run/{RUN}", stray.strip())
    for text in ("v1", RUN, f"{RUN}/best"):
        with pytest.raises(HistoryError):
            ask(resolve, context, text)
