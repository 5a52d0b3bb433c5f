from __future__ import annotations

import subprocess

import pytest
from sample_run import PATH, RUN

from skillgit.app.diff import diff, item_changes, items, stat
from skillgit.domain.evaluation import Metric
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.index.queries import Gauge
from skillgit.index.rows import ItemRow


def git(folder, *arguments):
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True).stdout


def test_text_is_what_git_prints(context, repo, records):
    found = diff(context, "v0", "v3")
    assert found.text == git(repo.workdir, "diff", f"{RUN}/v0", f"{RUN}/v3", "--", PATH)
    assert found.text == git(repo.workdir, "diff", f"{RUN}/v0", f"{RUN}/v3")
    assert b"+- Quote the span that you rely on." in found.text
    assert (found.a.version, found.b.version) == (0, 3)
    assert diff(context, "v1", "v1").text == b""
    assert (
        stat(context, "v0", "r2").text
        == git(repo.workdir, "diff", "--stat", records[0].commit, records[2].commit).decode()
    )


def test_commits_that_are_no_events_have_a_text_and_no_items(context, repo, records):
    git(repo.workdir, "tag", "here", records[0].commit + "^{tree}")
    tree = git(repo.workdir, "rev-parse", "here^{tree}").decode().strip()
    author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    plain = git(repo.workdir, *author, "commit-tree", tree, "-m", "x").decode().strip()
    found = diff(context, plain, "v1")
    assert found.a is None
    assert found.text == git(repo.workdir, "diff", plain, records[1].commit)
    with pytest.raises(RevisionNotFoundError, match="no event of a run"):
        items(context, plain, "v1")


@pytest.mark.usefixtures("records")
def test_items_are_compared_one_by_one(context):
    found = items(context, "v0", "v1")
    assert (found.metric, found.fixed, found.broken) == ("hard", ("q05", "q06", "q07"), ("q04",))
    assert found.stable_pass == ("q01", "q02", "q03")
    assert found.stable_fail == ("q08", "q09", "q10")
    assert found.missing == ()
    assert found.p == 5 / 16
    assert [row.item for row in found.rows] == sorted(row.item for row in found.rows)
    back = items(context, "v1", "v0")
    assert (back.fixed, back.broken) == (found.broken, found.fixed)


def test_a_merged_version_has_the_items_of_its_proposal_and_a_candidate_its_own(context, records):
    assert items(context, "v1", "v2").fixed == ("q04",)
    assert items(context, "v1", "r2").broken == ("q07",)
    assert items(context, records[4].commit, "v2").fixed == ()


@pytest.mark.usefixtures("context", "records")
def test_without_evidence_items_are_not_known_until_it_is_fetched(repo, empty, tmp_path):
    git(tmp_path, "clone", "--quiet", str(repo.workdir), str(empty.directory))
    with pytest.raises(NotFoundError, match="outcomes of v0") as caught:
        items(empty, "v0", "v1")
    git(empty.directory, *caught.value.hint.partition("git ")[2].replace("'", "").split())
    assert items(empty, "v0", "v1").broken == ("q04",)


def test_an_item_without_a_score_on_a_side_is_missing():
    def row(item, hard, soft=0.5):
        return ItemRow(item=item, task_type="t", hard=hard, soft=None if hard is None else soft, failed="")

    before = (row("a", 1.0), row("b", None), row("c", 0.0, 0.25), row("d", 0.0, 0.5), row("gone", 1.0))
    after = (row("a", None), row("b", 1.0), row("c", 0.0, 0.75), row("d", 0.0, 0.5), row("new", 1.0))
    hard = item_changes(before, after, Gauge(metric=Metric.HARD, soft_weight=0.5))
    assert [(change.item, change.change) for change in hard] == [
        ("a", "missing"),
        ("b", "missing"),
        ("c", "fail"),
        ("d", "fail"),
        ("gone", "missing"),
        ("new", "missing"),
    ]
    mixed = item_changes(before, after, Gauge(metric=Metric.MIXED, soft_weight=0.5))
    assert [(change.before, change.after, change.change) for change in mixed][2] == (0.125, 0.375, "fixed")
