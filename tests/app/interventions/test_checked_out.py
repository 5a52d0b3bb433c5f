"""A run whose branch a work tree holds is not changed: the next commit there would take the change back."""

from __future__ import annotations

import pytest
from asking import ask
from program import git, refs

from skillgit.app.interventions.cherry_pick import cherry_pick, retry
from skillgit.app.interventions.merge import merge
from skillgit.app.interventions.requests import CherryPickRequest, MergeRequest, RevertRequest, ShortenRequest
from skillgit.app.interventions.revert import restore, restore_by_gate, revert
from skillgit.app.interventions.shorten import compress, prune
from skillgit.errors import ConflictError

WAYS = {
    "revert": lambda context, eyes, dry: ask(revert, context, RevertRequest(revision="two/v1", dry_run=dry), eyes),
    "revert --to": lambda context, _, dry: restore(context, RevertRequest(to="two/v0", dry_run=dry)),
    "revert --to --gate": lambda context, eyes, dry: ask(
        restore_by_gate, context, RevertRequest(to="two/v0", gate=True, dry_run=dry), eyes
    ),
    "cherry-pick": lambda context, eyes, dry: ask(
        cherry_pick, context, CherryPickRequest(revision="one/v2", run="two", dry_run=dry), eyes
    ),
    "cherry-pick --rejected --keep": lambda context, eyes, dry: ask(
        retry, context, CherryPickRequest(run="two", rejected=True, keep=True, dry_run=dry), eyes
    ),
    "merge": lambda context, eyes, dry: ask(merge, context, MergeRequest(into="two", source="one", dry_run=dry), eyes),
    "shorten": lambda context, eyes, dry: ask(prune, context, ShortenRequest(revision="two/head", dry_run=dry), eyes),
    "shorten --words": lambda context, eyes, dry: ask(
        compress, context, ShortenRequest(revision="two/head", words=True, dry_run=dry), eyes
    ),
}
"""Every command that moves the branch of a run that is there."""


def test_no_way_to_change_a_run_moves_its_branch_under_a_work_tree(user, repository, tmp_path, eyes):
    git("worktree", "add", "-q", tmp_path / "beside", "run/two", cwd=repository)
    before = refs(repository)
    for way, change in WAYS.items():
        for dry in (False, True):
            with pytest.raises(ConflictError, match=f"run/two is checked out in {tmp_path}/beside"):
                change(user(repository), eyes, dry)
            assert refs(repository) == before, way
    assert not eyes.looks, "nothing was measured"
    git("switch", "-q", "--detach", cwd=tmp_path / "beside")
    assert restore(user(repository), RevertRequest(to="two/v0")).accepted
