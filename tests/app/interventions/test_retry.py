from __future__ import annotations

import json

import pytest
from asking import ask
from program import git, refs, skillgit

from skillgit.app.interventions.cherry_pick import apply_again, retry
from skillgit.app.interventions.requests import CherryPickRequest
from skillgit.errors import ExitCode, NotFoundError, SkillgitError, UsageError


def retried(user, repository, eyes, run="one", **request):
    return ask(retry, user(repository), CherryPickRequest(run=run, rejected=True, **request), eyes)


def refused(repository) -> set[str]:
    """Return what the steps of run one proposed and its gate refused."""
    rows = json.loads(skillgit("log", "one", "--json", cwd=repository).out)["events"]
    return {f"r{row['step']}" for row in rows if row["kind"] == "rejected"}


def test_candidates_are_measured_on_the_newest_version_and_nothing_is_written(user, repository, eyes):
    before = refs(repository)
    found = retried(user, repository, eyes)
    assert refs(repository) == before
    listed = json.loads(skillgit("log", "one", "--json", cwd=repository).out)["events"]
    assert {row.name for row in found.rows} == refused(repository)
    then = {row["commit"]: row for row in listed}
    gaps = [
        ((row.old_score if row.bound is None else row.bound) - then[row.commit]["current"], row.bound is None)
        for row in found.rows
    ]
    assert gaps == sorted(gaps, reverse=True), "those that had come closest stand first, a bound after its equals"
    for row in found.rows:
        assert bool(row.reason) != (row.score is not None)
        if row.score is not None:
            assert row.score - found.base_score == pytest.approx(row.delta)
            assert row.passes == (row.delta > 0)
    assert found.exit_code is (ExitCode.OK if any(row.passes for row in found.rows) else ExitCode.NO)


def test_so_many_candidates_as_asked_for(user, repository, eyes):
    assert len(retried(user, repository, eyes, limit=2).rows) == 2


def without(names: set[str], monkeypatch) -> None:
    """Let the candidates ``names`` apply to nothing."""

    def refuse(workspace, row, head, onto):
        if f"r{row.step}" in names:
            raise SkillgitError(f"{row.run}/r{row.step} does not apply to {onto}", hint="skillgit merge")
        return apply_again(workspace, row, head, onto)

    monkeypatch.setattr("skillgit.app.interventions.cherry_pick.apply_again", refuse)


def test_the_number_counts_candidates_that_apply_and_the_price_is_theirs(user, repository, eyes, monkeypatch):
    every = [row.name for row in retried(user, repository, eyes, limit=20).rows if not row.reason]
    assert len(every) > 1
    without({every[0]}, monkeypatch)
    found = retried(user, repository, eyes, limit=1)
    assert [row.name for row in found.rows if not row.reason] == [every[1]]
    assert every[0] in {row.name for row in found.rows if "does not apply" in row.reason}
    assert eyes.remarks[-1] == "no call; 40 of 40 rollouts are known already"


def test_where_nothing_applies_nothing_is_measured(user, repository, eyes, monkeypatch):
    without(refused(repository), monkeypatch)
    found = retried(user, repository, eyes, model="agent")
    assert (found.base_score, found.cost.calls, eyes.results, eyes.remarks) == (None, 0, [], [])
    assert (found.n, found.exit_code) == (20, ExitCode.NO)
    assert {row.name for row in found.rows if row.reason} == refused(repository)


def test_what_does_not_apply_any_more_is_listed_with_the_reason(user, repository, eyes, document, by_hand):
    by_hand(repository, "two", document(repository, "rejected/two/0005"))
    found = retried(user, repository, eyes, run="two")
    reasons = [row.reason for row in found.rows if row.reason]
    assert reasons
    assert all(row.score is None for row in found.rows if row.reason)
    assert all("does not apply" in reason or "already has" in reason or "same text" in reason for reason in reasons)


def test_a_larger_split_and_another_model_are_told(user, repository, eyes):
    found = retried(user, repository, eyes, split="train", limit=1)
    assert (found.split, found.n, found.own_model) == ("train", 60, True)
    for name in ("agent", "offline/agent"):
        other = retried(user, repository, eyes, model=name, limit=1)
        assert (other.target, other.own_model) == ("offline/agent", False)
    for name in ("reader", "offline/reader"):
        own = retried(user, repository, eyes, model=name, limit=1)
        assert (own.target, own.own_model) == ("offline/reader", True)


def test_only_the_runs_own_model_may_keep_one(user, repository, eyes):
    with pytest.raises(UsageError, match="kept only by the run's own model"):
        retried(user, repository, eyes, model="agent", keep=True)
    with pytest.raises(NotFoundError, match="no run 'nothing'"):
        retried(user, repository, eyes, run="nothing", max_calls=1)


@pytest.fixture
def gone_back(repository, document, by_hand):
    """A repository whose run ``one`` refused an edit and then went back to a text that misses it."""
    skillgit("cherry-pick", "two/v1", "--run", "one", "-q", cwd=repository, code=1)
    by_hand(repository, "one", document(repository, "one/v0"))
    return repository


def test_the_first_that_passes_becomes_a_version(user, gone_back, eyes, trailers):
    plain = retried(user, gone_back, eyes)
    passing = [row.name for row in plain.rows if row.passes]
    assert passing[0] == "i1"
    assert plain.exit_code is ExitCode.OK
    found = retried(user, gone_back, eyes, keep=True)
    assert (found.kept.accepted, found.kept.of) == (True, "one/i1")
    assert (found.kept.event.version, found.kept.event.score) == (found.base + 1, found.rows[0].score)
    assert trailers(gone_back, "run/one")["Skillgit-Origin"] == "resurrect number=2 of=one/i1"


def test_history_is_sound_after_a_retry(gone_back, sound):
    done = skillgit("cherry-pick", "--run", "one", "--rejected", "--keep", cwd=gone_back)
    assert "accepted" in done.out
    sound(gone_back)


def test_nothing_is_kept_where_nothing_passes(user, repository, eyes):
    before = refs(repository)
    found = retried(user, repository, eyes, keep=True, limit=1)
    assert (found.kept, found.exit_code) == (None, ExitCode.NO)
    assert refs(repository) == before


def test_the_command_prints_then_and_now(repository):
    done = skillgit("cherry-pick", "--run", "one", "--rejected", "--limit", "2", cwd=repository, code=1)
    head = next(line for line in done.out.splitlines() if "then" in line)
    assert head.split() == ["then", "delta", "on", "now", "delta", "fixed", "broken", "p"]
    told = json.loads(
        skillgit(
            "cherry-pick", "--run", "one", "--rejected", "--limit", "2", "--json", "-q", cwd=repository, code=1
        ).out
    )
    assert (told["schema"], len(told["rows"])) == ("skillgit.resurrect/1", 2)
    assert git("status", "--porcelain", cwd=repository).out == ""
