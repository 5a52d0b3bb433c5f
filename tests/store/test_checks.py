from __future__ import annotations

import pytest
from sample_run import RUN, write_run

from skillgit.app.upkeep.run_checks import check_run
from skillgit.errors import RevisionNotFoundError
from skillgit.store import history_reader, refs
from skillgit.store.repair import repair_run
from skillgit.store.repo import Repo


@pytest.mark.usefixtures("history")
def test_the_sample_run_is_sound(repo) -> None:
    assert check_run(repo, RUN) == []


@pytest.mark.parametrize("events", range(1, 9))
def test_unfinished_runs_are_sound(repo, events) -> None:
    write_run(repo, events=events)

    assert check_run(repo, RUN) == []


def test_tags_and_best_that_moved_are_found_and_mended(repo, history, git) -> None:
    git("tag", "-f", f"{RUN}/v1", history[0].commit)
    git("tag", "-d", f"{RUN}/v2")
    git("tag", f"{RUN}/v7", history[0].commit)
    git("branch", "-f", f"best/{RUN}", history[1].commit)

    problems = check_run(repo, RUN)

    short = [record.commit[:12] for record in history]
    assert {problem.sentence for problem in problems} == {
        f"{RUN}/v1 points to commit {short[0]}, not to {short[1]}",
        f"{RUN}/v2 is missing; it belongs to commit {short[5]}",
        f"{RUN}/v7 is a version that the run does not have",
        f"best/{RUN} points to commit {short[1]}, not to {short[6]}",
    }
    assert all(problem.repairable for problem in problems)
    assert len(repair_run(repo, RUN)) == 4
    assert check_run(repo, RUN) == []
    assert repair_run(repo, RUN) == []


def test_an_event_that_was_written_before_its_branch_moved_is_made_visible(repo, history, git) -> None:
    git("update-ref", refs.run_branch(RUN), history[-1].parents[0])
    assert history_reader.read_run(repo, RUN) == history[:-1]
    assert any("written and not shown" in sentence for sentence in repair_run(repo, RUN))
    assert history_reader.read_run(repo, RUN) == history
    assert repair_run(repo, RUN) == []


def test_a_commit_with_trailers_out_of_place_is_named(repo, history, git) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    told = "fix typo\n\nSkillgit-Format: 1\n\nSigned-off-by: n"
    stranger = git(*identity, "commit-tree", f"run/{RUN}^{{tree}}", "-p", f"run/{RUN}", "-m", told).strip()
    git("update-ref", refs.run_branch(RUN), stranger)

    problems = check_run(repo, RUN)

    assert [problem.commit for problem in problems] == [stranger, history[-1].commit]
    assert "no skillgit trailers" in problems[0].sentence
    assert f"git branch -f run/{RUN} {history[-1].commit[:12]} brings it back" in problems[1].sentence


@pytest.mark.usefixtures("history")
def test_a_budget_that_is_not_the_schedules_is_found(repo) -> None:
    assert check_run(repo, RUN, budget=lambda step: 3 if step == 3 else 4) == []

    problems = check_run(repo, RUN, budget=lambda _: 4)

    assert [problem.sentence for problem in problems] == ["step 3 had an edit budget of 3, and the schedule says 4"]


def test_evidence_that_is_lost_or_not_kept_is_found(repo, history, git) -> None:
    chain = refs.evidence_ref(RUN)
    git("update-ref", chain, f"{chain}~1")
    loose = check_run(repo, RUN)
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")

    assert [problem.commit for problem in loose] == [history[-1].commit]
    assert "git gc will drop it" in loose[0].sentence
    problems = check_run(Repo.discover(repo.workdir), RUN)
    assert [problem.sentence for problem in problems] == ["its evidence is lost"]


@pytest.mark.usefixtures("history")
def test_a_repository_without_evidence_is_sound(repo, git) -> None:
    git("update-ref", "-d", refs.evidence_ref(RUN))
    git("gc", "-q", "--prune=now")

    assert check_run(Repo.discover(repo.workdir), RUN) == []


def test_a_run_that_is_not_there(repo) -> None:
    with pytest.raises(RevisionNotFoundError):
        check_run(repo, "x")
