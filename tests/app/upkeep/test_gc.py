from __future__ import annotations

from datetime import timedelta

import pytest
from asking import ask
from real_git import git
from sample_run import RUN, START, write_run

from skillgit.app.history.log import log
from skillgit.app.history.show import show
from skillgit.app.upkeep.fsck import fsck
from skillgit.app.upkeep.maintenance import Tidied, gc
from skillgit.app.upkeep.requests import GcRequest
from skillgit.app.workspace.revision import resolve
from skillgit.errors import ConflictError, RevisionNotFoundError, RunLockedError, UsageError
from skillgit.store import refs
from skillgit.store.lock import RunLock
from skillgit.store.repo import Repo

FOLD = GcRequest(fold=True)


def test_a_folded_run_looks_as_it_did(context, repo, records):
    before = ask(log, context).rows
    assert gc(context, FOLD) == (Tidied(run=RUN, folded=2, attic=2),)
    after = ask(log, context).rows
    assert [row.commit for row in after] == [row.commit for row in before]
    assert ask(resolve, context, "r2").commit == records[2].commit
    assert ask(show, context, "r5").row.commit == records[7].commit
    assert fsck(context, None, deep=True).problems == ()
    assert gc(context, FOLD) == (Tidied(run=RUN, attic=2),)
    assert gc(context, GcRequest(unfold=True)) == (Tidied(run=RUN, unfolded=2),)
    assert refs.attic_ref(RUN) not in repo.tips()


@pytest.mark.usefixtures("records")
def test_a_dry_run_tells_the_same_and_moves_nothing(context, repo):
    before = repo.tips()
    (told,) = gc(context, GcRequest(fold=True, evidence_older="2026-11-21T12:00:00Z", dry_run=True))
    assert (told.folded, told.dropped) == (2, 6)
    assert repo.tips() == before
    (done,) = gc(context, GcRequest(fold=True, evidence_older="2026-11-21T12:00:00Z"))
    assert (done.folded, done.dropped, done.freed) == (told.folded, told.dropped, told.freed)


@pytest.mark.usefixtures("records")
def test_runs_that_have_not_finished_are_left_alone_and_refused_by_name(context, repo):
    write_run(repo, "other", events=3)
    assert gc(context, FOLD) == (Tidied(run=RUN, folded=2, attic=2), Tidied(run="other", left="it has not finished"))
    with pytest.raises(ConflictError, match="other has not finished"):
        gc(context, GcRequest(runs=("other",), fold=True))


@pytest.mark.usefixtures("records")
def test_dropped_evidence_is_known_to_be_absent_whenever_git_prunes_it(context, repo, records):
    (done,) = gc(context, GcRequest(evidence_older="0"))
    assert done.dropped == 6
    assert done.freed > 0
    assert fsck(context, None, deep=True).problems == ()
    git(repo.workdir, "gc", "-q", "--prune=now")
    pruned = Repo.discover(context.directory)
    assert not pruned.has_object(records[2].evidence)
    assert fsck(context, None, deep=True).problems == ()
    kept = [record.commit for record in records if record.evidence and pruned.has_object(record.evidence)]
    assert kept == [records[0].commit, records[6].commit], "what the first and the best version got stays"
    assert gc(context, GcRequest(evidence_older="0")) == (Tidied(run=RUN),)


@pytest.mark.usefixtures("records")
def test_only_evidence_that_is_old_enough_is_dropped(context, records):
    minute = START + timedelta(minutes=2, seconds=30)
    (done,) = gc(context, GcRequest(evidence_older=minute.isoformat()))
    assert done.dropped == sum(record.time < minute for record in records[1:])


@pytest.mark.usefixtures("records")
def test_what_cannot_be_done_is_said(context, repo):
    for request in (GcRequest(), GcRequest(fold=True, unfold=True), GcRequest(evidence_older="whenever")):
        with pytest.raises(UsageError):
            gc(context, request)
    for age in ("-5", " -5 days"):
        with pytest.raises(UsageError, match=f"'{age}' is not a valid age"):
            gc(context, GcRequest(evidence_older=age, dry_run=True))
    with pytest.raises(RevisionNotFoundError):
        gc(context, GcRequest(runs=("nope",), fold=True))
    with RunLock(repo, RUN, context.clock), pytest.raises(RunLockedError):
        gc(context, FOLD)
