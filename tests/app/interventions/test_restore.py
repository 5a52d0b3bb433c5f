from __future__ import annotations

import pytest
from sample_run import PATH, RUN

from skillgit.app.interventions.fork import fork
from skillgit.app.interventions.requests import RevertRequest
from skillgit.app.interventions.revert import restore
from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.event import Inherited
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import RevisionNotFoundError, RunLockedError, UsageError
from skillgit.store import history_reader
from skillgit.store.lock import RunLock


@pytest.fixture(autouse=True)
def _run(records):
    assert records


def test_an_older_text_becomes_the_newest_version_and_inherits_its_score(context, repo, records):
    result = restore(context, RevertRequest(to="v1"))

    record = history_reader.read_run(repo, RUN)[-1]
    assert (result.run, result.version, result.base, result.target, result.inherited) == (RUN, 4, 3, 1, 1)
    assert result.event.commit == record.commit
    assert record.event.kind is EventKind.REVERTED
    assert record.event.evaluation == Inherited(version=1)
    assert record.event.title == "back to v1"
    assert history_reader.skill_at(repo, record.commit, PATH) == history_reader.skill_at(repo, records[1].commit, PATH)
    assert check_run(repo, RUN) == []


def test_the_reflog_tells_of_it(context, repo):
    restore(context, RevertRequest(to="v1"))
    log = (repo.common_dir / "logs" / "refs" / "heads" / "run" / RUN).read_text()
    assert log.splitlines()[-1].endswith("skillgit: reverted")


@pytest.mark.parametrize(
    ("revision", "run", "said", "hint"),
    [
        ("v3", None, "v3 of run .* is the newest version already", "skillgit log"),
        ("head", None, "is the newest version already", "skillgit log"),
        ("r2", None, "r2 is not a version of run", "skillgit cherry-pick r2 --run"),
        ("v1", "other", "there is no run 'other'", "runs:"),
    ],
)
def test_what_cannot_be_restored_is_said(context, revision, run, said, hint):
    with pytest.raises((UsageError, RevisionNotFoundError), match=said) as caught:
        restore(context, RevertRequest(to=revision, run=run))
    assert hint in caught.value.hint


def test_a_text_that_is_the_newest_one_already_is_not_written_again(context, repo):
    restore(context, RevertRequest(to="v1"))
    before = repo.tips()
    with pytest.raises(UsageError, match=r"v1 of run .* has the text of v4, the newest one"):
        restore(context, RevertRequest(to="v1"))
    assert repo.tips() == before


def test_a_version_of_another_run_is_cherry_picked(context):
    fork(context, "v1", "other")
    with pytest.raises(UsageError, match=f"{RUN}/v1 is not a version of run other") as caught:
        restore(context, RevertRequest(to=f"{RUN}/v1", run="other"))
    assert caught.value.hint == f"skillgit cherry-pick {RUN}/v1 --run other"


def test_the_named_run_is_where_a_version_is_looked_for(context):
    fork(context, f"{RUN}/v1", "other")
    result = restore(context, RevertRequest(to="v0", run=RUN))
    assert (result.run, result.target) == (RUN, 0)


def test_a_dry_run_moves_nothing(context, repo):
    before = repo.tips()
    result = restore(context, RevertRequest(to="v1", dry_run=True))
    assert (result.version, result.event) == (4, None)
    assert repo.tips() == before


def test_a_run_that_is_being_trained_is_left_alone(context, repo):
    with RunLock(repo, RUN, context.clock), pytest.raises(RunLockedError):
        restore(context, RevertRequest(to="v1"))


def test_a_restored_restored_version_inherits_the_measured_score(context, repo):
    restore(context, RevertRequest(to="v0"))
    restore(context, RevertRequest(to="v3"))
    restore(context, RevertRequest(to="v4"))
    row = restore(context, RevertRequest(to="v5")).event
    assert (row.version, row.score, row.measured) == (7, 0.8, False)
    assert check_run(repo, RUN) == []
