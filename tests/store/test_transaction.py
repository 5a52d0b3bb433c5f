from __future__ import annotations

import pytest
from pygit2.transaction import ReferenceTransaction
from sample_run import RUN, write_run

from skillgit.errors import ConcurrentWriteError
from skillgit.store import refs
from skillgit.store.transaction import RefUpdate, update_refs


def move(repo, *updates: RefUpdate) -> None:
    update_refs(repo, updates, reason="skillgit: test")


def test_one_ref_that_moved_keeps_all_where_they_are(repo) -> None:
    history = write_run(repo)
    before = repo.tips()

    with pytest.raises(ConcurrentWriteError, match=f"best/{RUN} moved"):
        move(
            repo,
            RefUpdate(name="refs/heads/new", new=history[0].commit),
            RefUpdate(name=refs.run_branch(RUN), new=history[0].commit, old=history[-1].commit),
            RefUpdate(name=refs.best_branch(RUN), new=history[0].commit, old=history[1].commit),
        )

    assert repo.tips() == before
    assert repo.tip("refs/heads/new") is None
    assert list(repo.common_dir.glob("refs/**/*.lock")) == []


def test_a_ref_that_must_not_exist_is_not_taken_over(repo) -> None:
    history = write_run(repo)

    with pytest.raises(ConcurrentWriteError):
        move(repo, RefUpdate(name=refs.best_branch(RUN), new=history[0].commit))


def test_a_watched_ref_is_compared_and_left_alone(repo, git) -> None:
    history = write_run(repo)
    watched = RefUpdate(name=refs.run_branch(RUN), new=history[-1].commit, old=history[-1].commit)
    entries = git("reflog", "show", f"run/{RUN}")

    move(repo, watched, RefUpdate(name="refs/heads/new", new=history[0].commit))

    assert repo.tip("refs/heads/new") == history[0].commit
    assert git("reflog", "show", f"run/{RUN}") == entries
    git("update-ref", refs.run_branch(RUN), history[0].commit)
    with pytest.raises(ConcurrentWriteError):
        move(repo, watched, RefUpdate(name="refs/heads/newer", new=history[0].commit))
    assert repo.tip("refs/heads/newer") is None


def test_moves_are_told_in_the_reflog(repo, git) -> None:
    write_run(repo, events=2)

    assert "skillgit: accepted" in git("reflog", "show", f"run/{RUN}")


def test_derived_refs_go_wherever_they_have_to(repo) -> None:
    history = write_run(repo)

    move(
        repo,
        RefUpdate(name=refs.best_branch(RUN), new=history[0].commit, is_derived=True),
        RefUpdate(name=refs.version_tag(RUN, 1), new=None, is_derived=True),
    )

    assert repo.tip(refs.best_branch(RUN)) == history[0].commit
    assert repo.tip(refs.version_tag(RUN, 1)) is None


def test_truth_is_set_first_and_goes_last(repo, monkeypatch) -> None:
    history = write_run(repo)
    other, tag = refs.run_branch("other"), refs.version_tag("other", 0)
    seen: list[list[bool]] = []
    commit = ReferenceTransaction.commit

    def committed(transaction: ReferenceTransaction) -> None:
        commit(transaction)
        seen.append([repo.tip(name) is not None for name in (other, tag)])

    monkeypatch.setattr(ReferenceTransaction, "commit", committed)
    move(repo, *(RefUpdate(name=name, new=history[0].commit) for name in (tag, other)))
    move(repo, *(RefUpdate(name=name, new=None, old=history[0].commit) for name in (other, tag)))

    assert seen == [[True, False], [True, True], [True, False], [False, False]]
