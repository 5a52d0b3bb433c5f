from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import get_args

import pytest
from asking import ask
from real_git import git

from skillgit.app.history.diff.items import Change, item_changes, items, paired_test
from skillgit.domain.evaluation import Gauge, Metric
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.index.rows import ItemRow
from skillgit.view.items import LOOKS, change_words


@pytest.mark.usefixtures("records")
def test_items_are_compared_one_by_one(context):
    found = ask(items, context, "v0", "v1")
    assert (found.metric, found.fixed, found.broken) == ("hard", ("q05", "q06", "q07"), ("q04",))
    assert found.stable_pass == ("q01", "q02", "q03")
    assert found.stable_fail == ("q08", "q09", "q10")
    assert found.missing == ()
    assert found.p == 5 / 16
    assert [row.item for row in found.rows] == sorted(row.item for row in found.rows)
    assert found.p_worse == 15 / 16
    back = ask(items, context, "v1", "v0")
    assert (back.fixed, back.broken) == (found.broken, found.fixed)
    assert (back.p, back.p_worse) == (found.p_worse, found.p)
    (group,) = found.types
    assert (group.task_type, group.n, group.fixed, group.broken) == ("default", 10, 3, 1)
    assert (group.before, group.after) == (0.4, 0.6)
    assert (found.length.before, found.length.after) == (20, 27)
    assert found.notes == ()


@pytest.mark.usefixtures("records")
def test_one_version_is_compared_with_the_one_that_it_rests_on(context):
    assert ask(items, context, "v1") == ask(items, context, "v0", "v1")
    assert ask(items, context, "r2") == ask(items, context, "v1", "r2")
    with pytest.raises(RevisionNotFoundError, match="v0 was made from no other version"):
        ask(items, context, "v0")


def test_a_commit_that_is_no_event_has_no_items(context, repo, records):
    git(repo.workdir, "tag", "here", records[0].commit + "^{tree}")
    tree = git(repo.workdir, "rev-parse", "here^{tree}")
    plain = git(repo.workdir, "commit-tree", tree, "-m", "x")
    with pytest.raises(RevisionNotFoundError, match="belongs to no run"):
        ask(items, context, plain, "v1")


def test_a_merged_version_has_the_items_of_its_proposal_and_a_candidate_its_own(context, records):
    assert ask(items, context, "v1", "v2").fixed == ("q04",)
    assert ask(items, context, "v1", "r2").broken == ("q07",)
    assert ask(items, context, records[4].commit, "v2").fixed == ()


@pytest.mark.usefixtures("context", "records")
def test_without_evidence_items_are_not_known_until_it_is_fetched(repo, empty, tmp_path):
    git(tmp_path, "clone", "--quiet", str(repo.workdir), str(empty.directory))
    with pytest.raises(NotFoundError, match="outcomes of v0") as caught:
        ask(items, empty, "v0", "v1")
    assert caught.value.hint.endswith("skillgit pull --evidence")
    git(empty.directory, "fetch", "origin", "refs/skillgit/*:refs/skillgit/*")
    assert ask(items, empty, "v0", "v1").broken == ("q04",)


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
    assert [(change.before, change.after, change.change) for change in mixed][2] == (0.125, 0.375, "gained")


def test_the_paired_test_is_the_gates():
    def change(before, after):
        return ItemRow(item="", task_type="", hard=before, soft=before, failed=""), ItemRow(
            item="", task_type="", hard=after, soft=after, failed=""
        )

    pairs = [change(0.0, 0.5), change(0.25, 0.75), change(1.0, 0.75), change(0.5, 0.5)]
    rows = tuple(
        row
        for before, after in pairs
        for row in item_changes((before,), (after,), Gauge(metric=Metric.SOFT, soft_weight=0.5))
    )
    # of the eight choices of signs of .5 .5 .25 two reach a sum of .75: all gains, and the one at hand
    assert paired_test(rows, Metric.SOFT) == (2 / 8, 7 / 8)
    assert paired_test(rows, Metric.HARD) == (4 / 8, 7 / 8)


def test_what_may_become_of_an_item_is_listed_once_with_a_sign_and_in_words():
    assert set(LOOKS) == set(change_words(())) == set(get_args(Change))
    assert all(look.sign and look.words for look in LOOKS.values())


def test_an_item_that_a_side_never_came_to_is_not_measured_and_one_that_failed_is_missing():
    before = (row("done", 0.0), row("failed", 1.0), row("never", 1.0), row("gone", 1.0))
    after = (row("done", 1.0), replace(row("failed", 0.0), hard=None, soft=None, failed="timeout"))
    awaited = dict.fromkeys(("done", "failed", "never", "neither"), "t")
    found = item_changes(before, after, Gauge(metric=Metric.HARD, soft_weight=0.5), awaited)
    assert {change.item: change.change for change in found} == {
        "done": "fixed",
        "failed": "missing",
        "gone": "missing",
        "neither": "not-measured",
        "never": "not-measured",
    }


def row(item: str, hard: float) -> ItemRow:
    return ItemRow(item=item, task_type="t", hard=hard, soft=hard, failed="")


ENTERED = """
import sys
from pathlib import Path
import skillgit
root, files = str(Path(skillgit.__file__).parent), set()
def enter(frame, event, _):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(root) or not code.co_flags & 2:
        return
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root)):
        frame = frame.f_back
    if frame is None:
        files.add(code.co_filename.removeprefix(root))
sys.setprofile(enter)
from skillgit.cli.main import run
code = run(["-C", sys.argv[1], "diff", "v0", "v1", "--items"])
sys.setprofile(None)
assert code == 0, code
print(*sorted(files), sep="\\n", file=sys.stderr)
"""


@pytest.mark.soak
@pytest.mark.usefixtures("records")
def test_a_difference_of_items_is_answered_by_few_files(context):
    def entered() -> list[str]:
        words = [sys.executable, "-c", ENTERED, str(context.directory)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stderr.splitlines()

    entered()  # the index is written
    files = entered()
    assert len(files) <= 45, files
