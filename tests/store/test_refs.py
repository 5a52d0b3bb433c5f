from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_run import transitions

from skillgit.domain.ids import RUN_NAME
from skillgit.domain.proposal import Origin
from skillgit.store import refs
from skillgit.store.refs import Ref, RefKind

RUNS = st.from_regex(RUN_NAME, fullmatch=True).filter(lambda run: "--" not in run)


@given(RUNS, st.integers(1, 20_000))
def test_names_are_parsed_as_they_are_built(run, number) -> None:
    names = {
        refs.run_branch(run): Ref(kind=RefKind.RUN, run=run),
        refs.rejected_branch(run, number): Ref(kind=RefKind.REJECTED, run=run, number=number),
        refs.rejected_branch(run, number, "meta"): Ref(kind=RefKind.REJECTED, run=run, number=number, origin="meta"),
        refs.rejected_branch(run, number, "cherry-pick", 3): Ref(
            kind=RefKind.REJECTED, run=run, number=number, origin="cherry-pick", intervention=3
        ),
        refs.slow_branch(run): Ref(kind=RefKind.SLOW, run=run),
        refs.best_branch(run): Ref(kind=RefKind.BEST, run=run),
        refs.version_tag(run, number): Ref(kind=RefKind.TAG, run=run, number=number),
        refs.evidence_ref(run): Ref(kind=RefKind.EVIDENCE, run=run),
        refs.NOTES: Ref(kind=RefKind.NOTES),
    }

    for name, ref in names.items():
        assert refs.parse(name) == ref._replace(local=name)


@given(RUNS, st.sampled_from(["origin", "team/upstream", "run/x", "rejected"]))
def test_tracking_branches_know_their_remote(run, remote) -> None:
    found = refs.parse(f"refs/remotes/{remote}/rejected/{run}/0012")

    here = refs.rejected_branch(run, 12)
    assert found == Ref(kind=RefKind.REJECTED, run=run, number=12, remote=remote, local=here)


@pytest.mark.parametrize(
    "name",
    [
        "refs/heads/main",
        "refs/heads/run",
        "refs/heads/run/a/b",
        "refs/heads/run/Upper",
        "refs/heads/rejected/x",
        "refs/heads/rejected/x/12",
        "refs/heads/rejected/x/latest",
        "refs/heads/rejected/x/0012-other",
        "refs/heads/rejected/x/0012-meta-meta",
        "refs/tags/v1",
        "refs/tags/x/v01",
        "refs/tags/x/1",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
        "refs/notes/commits",
        "refs/stash",
        "HEAD",
    ],
)
def test_names_of_others_are_not_ours(name) -> None:
    assert refs.parse(name) is None


def test_only_lines_and_side_branches_are_truth() -> None:
    assert {kind for kind in RefKind if kind.is_truth} == {RefKind.RUN, RefKind.REJECTED, RefKind.SLOW, RefKind.ATTIC}


def test_the_origins_of_branches_are_those_of_candidates() -> None:
    assert {refs.STEP, refs.META, *refs.INTERVENTIONS} == {origin.value for origin in Origin}
    assert set(refs.INTERVENTIONS) == {origin.value for origin in Origin if origin.intervenes}


def test_steps_sort_as_text() -> None:
    assert refs.rejected_branch("x", 17) == "refs/heads/rejected/x/0017"
    assert refs.rejected_branch("x", 9) < refs.rejected_branch("x", 10)


def test_each_kind_of_event_has_its_branch() -> None:
    branches = [refs.short(refs.branch_of(sample.event)).split("/")[0] for sample in transitions()]

    assert branches == ["run", "run", "rejected", "run", "slow", "run", "run", "rejected", "run"]


def test_short_names_are_those_that_git_shows() -> None:
    assert refs.short("refs/remotes/origin/run/x") == "origin/run/x"
    assert refs.short(refs.NOTES) == "notes/skillgit/evals"
