from __future__ import annotations

import pytest
from sample_run import RUN

from skillgit.store import refs
from skillgit.store.exchange.sending import (
    RefState,
    RefusalCause,
    RejectedMode,
    SentRef,
    held_with,
    parcel,
    snapshot,
    surpassed,
    unpushed,
    usual,
)
from skillgit.store.history import extended, fold, read_attic
from skillgit.store.repo import first_parents

BRANCHES = [refs.rejected_branch(RUN, step) for step in (2, 5)]
PLACE = refs.attic_ref(RUN)
PLAN = "a" * 40


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("rejected", list(RejectedMode))
def test_a_parcel_holds_the_lines_the_tags_and_what_was_asked_of_rejected_candidates(repo, rejected):
    packed = parcel(repo, RUN, snapshot(repo), {}, rejected, plan=None, evidence=False)
    assert next(iter(packed.refs)) == refs.run_branch(RUN)
    assert [name for name in packed.refs if "/rejected/" in name] == (
        BRANCHES if rejected is RejectedMode.BRANCHES else []
    )
    assert list(packed.hidden) == ([PLACE] if rejected is RejectedMode.ATTIC else [])


@pytest.mark.usefixtures("history")
def test_an_attic_for_others_is_the_one_that_folding_makes_and_no_branch_goes(repo):
    tips = snapshot(repo)
    packed = parcel(repo, RUN, tips, {}, RejectedMode.ATTIC, plan=None, evidence=False)
    assert snapshot(repo) == tips
    fold(repo, RUN)
    assert packed.hidden[PLACE] == repo.tip(PLACE)


def test_the_attic_goes_on_from_the_one_that_is_there(repo, history):
    first = extended(repo, None, {BRANCHES[1]: history[7].commit})
    packed = parcel(repo, RUN, snapshot(repo), {PLACE: str(first)}, RejectedMode.ATTIC, plan=None, evidence=False)
    assert repo.reaches(packed.hidden[PLACE], str(first))
    assert read_attic(repo, packed.hidden[PLACE]).keys() == set(BRANCHES)


@pytest.mark.usefixtures("history")
def test_evidence_goes_if_it_is_asked_for(repo):
    packed = parcel(repo, RUN, snapshot(repo), {}, RejectedMode.NONE, plan=PLAN, evidence=True)
    assert packed.hidden == {refs.plan_ref(RUN): PLAN, refs.evidence_ref(RUN): repo.tip(refs.evidence_ref(RUN))}


def test_what_is_hidden_stays_with_the_lines_of_its_run():
    def sent(run, state):
        return SentRef(ref=f"refs/x/{run}/{state}", run=run, state=state, new="a" * 40)

    lines = [sent("one", RefState.PUSHED), sent("one", RefState.REJECTED), sent("two", RefState.PUSHED)]
    hidden = [sent(run, state) for run in ("one", "two") for state in RefState]
    held = [update.ref for update in held_with(hidden, lines) if update.cause is RefusalCause.HELD]
    assert held == [f"refs/x/one/{RefState.PUSHED}"]


@pytest.mark.parametrize(("here", "there"), [(0, 0), (0, 2), (1, 0), (1, 3)])
def test_a_run_is_unpushed_by_what_its_line_has_and_the_remote_has_not(repo, git, history, here, there):
    line = refs.run_branch(RUN)
    tips = [str(commit.id) for commit in first_parents(repo, repo.tip(line))]
    git("remote", "add", "origin", "https://example.org/x")
    git("update-ref", refs.tracking("origin", line), tips[there])
    git("update-ref", line, tips[here])
    ahead = int(git("rev-list", "--count", f"{tips[there]}..{tips[here]}"))
    assert [run.commits for run in unpushed(repo)] == [ahead] * (here < there)
    git("update-ref", "-d", refs.tracking("origin", line))
    assert [run.commits for run in unpushed(repo)] == [None]
    assert history


def test_candidates_travel_as_they_did_before():
    assert usual(RUN, {}) is RejectedMode.ATTIC
    assert usual(RUN, {BRANCHES[0]: "a" * 40}) is RejectedMode.BRANCHES


def test_who_is_ahead_is_told_by_ancestry_and_a_tag_never_moves(repo, history):
    line, old, new = refs.run_branch(RUN), history[0].commit, history[1].commit
    assert surpassed(repo, line, new, None) is False
    assert surpassed(repo, line, new, old) is False
    assert surpassed(repo, line, old, new) is True
    assert surpassed(repo, line, new, "f" * 40) is None
    assert surpassed(repo, refs.version_tag(RUN, 0), new, old) is None
