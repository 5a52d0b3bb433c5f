from __future__ import annotations

from sample_run import RUN, transitions

from skillgit.store import refs
from skillgit.store.evidence import kept_trees, last_link, read_evidence, write_evidence


def test_files_come_back(repo) -> None:
    files = {"patch.json": b"{}", "selection/trajectories/a.json": b"\x00\xff", "empty": b""}

    assert read_evidence(repo, write_evidence(repo, files)) == files


def test_no_files_are_no_tree(repo) -> None:
    assert write_evidence(repo, {}) == ""
    assert read_evidence(repo, "") is None


def test_what_is_not_here_is_absent(repo, history) -> None:
    assert read_evidence(repo, "0" * 40) is None
    assert read_evidence(repo, history[0].commit) is None


def test_each_event_with_evidence_has_a_commit_in_the_chain(repo, history, git) -> None:
    told = git("log", "--reverse", "--format=%T %b", refs.evidence_ref(RUN)).split()

    assert [record.evidence for record in history if record.evidence] == told[::3]
    assert [record.commit for record in history if record.evidence] == told[2::3]
    assert kept_trees(repo, RUN) == {record.evidence for record in history if record.evidence}


def test_commits_of_events_that_never_became_visible_are_stepped_over(repo, history) -> None:
    chain = refs.evidence_ref(RUN)
    events = frozenset(record.commit for record in history)
    assert transitions()[-1].evidence

    end = last_link(repo, RUN, events)
    before = last_link(repo, RUN, events - {history[-1].commit})

    assert (end.commit, end.event) == (repo.tip(chain), history[-1].commit)
    assert before.event == history[-2].commit
    assert last_link(repo, RUN, frozenset()) is None
    assert last_link(repo, "other", events) is None
