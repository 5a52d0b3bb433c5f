"""What item commands say where the evidence was dropped on purpose, or never brought here."""

from __future__ import annotations

import subprocess

import pytest
from asking import ask
from sample_run import ITEMS, RUN

from skillgit.app.history.bisect import bisect
from skillgit.app.history.diff.items import items as item_diff
from skillgit.app.history.item import item_story, item_trajectory
from skillgit.app.history.items import items
from skillgit.app.history.log import log
from skillgit.app.history.requests import ItemsRequest
from skillgit.app.history.requests import LogRequest as Events
from skillgit.app.upkeep.maintenance import gc
from skillgit.app.upkeep.requests import GcRequest
from skillgit.app.workspace.workspace import BRING, Absence
from skillgit.errors import NotFoundError
from skillgit.store import refs
from skillgit.view.item import lines as story_lines
from skillgit.view.score_tables import lines as table_lines
from skillgit.view.surface import Screen

PLAIN = Screen(unicode=True)


def told(context, item: str) -> dict[str, str]:
    return {commit: moved[item] for commit, moved in ask(log, context, Events(items=(item,))).flips.items()}


@pytest.fixture
def dropped(context, records):
    """The sample run after gc: of its versions only the first and the best one have evidence."""
    before = {item: told(context, item) for item in ITEMS}
    assert {commit for flips in before.values() for commit in flips} <= {record.commit for record in records}
    assert before["q05"]
    assert gc(context, GcRequest(evidence_older="0"))[0].dropped == 6
    return before


@pytest.fixture
def bare(context, repo, records):
    """The sample run as a clone has it that did not bring evidence."""
    assert records[1].evidence
    before = {item: told(context, item) for item in ITEMS}
    line = refs.run_branch(RUN)
    for words in (
        ("update-ref", "-d", refs.evidence_ref(RUN)),
        ("remote", "add", "origin", "elsewhere"),
        ("update-ref", refs.tracking("origin", line), line),
    ):
        subprocess.run(["git", *words], cwd=repo.workdir, check=True)
    return before


def test_a_log_of_an_item_tells_from_commit_messages_what_evidence_told(context, dropped):
    assert {item: told(context, item) for item in ITEMS} == dropped


def test_a_clone_without_evidence_tells_it_too_and_claims_nothing_of_other_items(context, bare):
    named = {item: flips for item, flips in bare.items() if flips}
    assert {item: told(context, item) for item in named} == named
    with pytest.raises(NotFoundError, match="no commit message names 'q10'") as caught:
        told(context, "q10")
    assert caught.value.hint.endswith(BRING)


@pytest.mark.usefixtures("dropped")
def test_an_item_is_not_judged_by_what_is_left(context):
    story = ask(item_story, context, None, "q05")
    assert (story.first, story.is_first, story.flips) == ("v3", False, ("v0..v3",))
    assert (story.solved, story.measured, story.unknown) == (1, 2, 2)
    lost = {attempt.name: attempt for attempt in story.attempts if attempt.absence is Absence.DROPPED}
    assert set(lost) == {"v1", "r2", "v2", "r5"}
    assert (lost["v1"].told, lost["v2"].told) == ("fixed", None)
    text = "\n".join(story_lines(story, PLAIN))
    assert "solved by v3 or an earlier version · 1 of 2 versions whose outcome is known solve it" in text
    assert "v1    ?" in text
    assert "its commit message lists it as fixed" in text
    assert "the evidence of these was dropped: v1, r2, v2, r5" in text
    assert f"skillgit eval {RUN}/v2 --split selection" in text
    assert "not measured" not in text


@pytest.mark.usefixtures("dropped")
def test_a_version_that_solved_it_before_anything_was_dropped_is_the_first(context):
    story = ask(item_story, context, None, "q01")
    assert (story.first, story.is_first) == ("v0", True)
    never = ask(item_story, context, None, "q10")
    assert (never.first, never.is_first) == ("", False)
    assert "no version is known to solve it" in "\n".join(story_lines(never, PLAIN))


@pytest.mark.usefixtures("dropped")
def test_the_table_tells_unknown_from_unmeasured(context):
    table = ask(items, context, None, ItemsRequest())
    assert [column.absence for column in table.columns] == [None, Absence.DROPPED, Absence.DROPPED, None]
    text = list(table_lines(table, PLAIN))
    q05 = next(line for line in text if line.startswith("q05"))
    assert q05.split()[2:] == ["\N{MULTIPLICATION SIGN}", "?", "?", "✓", "≤v3", "1", "1/2"]
    assert any("the evidence of 2 columns, v1 … v2, was dropped" in line for line in text)
    assert not any("not measured" in line for line in text)


@pytest.mark.usefixtures("dropped")
def test_a_bisection_says_what_was_dropped_and_what_messages_tell(context):
    with pytest.raises(
        NotFoundError, match="whether v1 solves q05 is not known: the evidence of v1 was dropped"
    ) as caught:
        ask(bisect, context, ItemsRequest(item="q05", run="v0..v1"))
    assert f"skillgit log {RUN} --item q05" in caught.value.hint
    assert "--measure" in caught.value.hint
    found = ask(bisect, context, ItemsRequest(item="q05"))
    assert (found.suspects, found.gaps, found.told) == (("v1", "v2", "v3"), ("v1", "v2"), ("v1",))
    assert found.absence is Absence.DROPPED


@pytest.mark.usefixtures("dropped")
def test_a_comparison_of_what_was_dropped_names_how_to_measure_it(context):
    with pytest.raises(NotFoundError, match="the evidence of v1 was dropped") as caught:
        ask(item_diff, context, "v1", "v2")
    assert caught.value.hint == f"measure it here: skillgit eval {RUN}/v1 --split selection"


@pytest.mark.usefixtures("bare")
def test_a_comparison_in_a_clone_names_how_to_bring_evidence(context):
    with pytest.raises(NotFoundError, match="the evidence of v1 is not here") as caught:
        ask(item_diff, context, "v1", "v2")
    assert caught.value.hint.endswith(BRING)


@pytest.mark.usefixtures("dropped")
def test_a_trajectory_that_was_dropped_is_gone(context):
    with pytest.raises(NotFoundError, match="there is no trajectory of q05 under v1") as caught:
        ask(item_trajectory, context, "q05", "v1")
    assert caught.value.hint == "its evidence was dropped, and what happened with it"
