from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_run import TRIED, write_rule_run
from sample_run import RUN, write_run

from skillgit.index import rule_queries
from skillgit.index.refresh import open_index
from skillgit.store.repo import Repo


@pytest.fixture
def sample(repo):
    records = write_run(repo)
    with open_index(repo) as index:
        yield index, records


def test_guidance_has_the_version_that_it_was_merged_into(sample) -> None:
    index, records = sample
    slow, merged, skipped = (records[place].commit for place in (4, 5, 3))

    found = rule_queries.origins(index, {slow, merged, skipped, "0" * 40})

    assert {commit: row.version for commit, row in found.items()} == {slow: 2, merged: 2, skipped: None}
    assert found[slow].evidence == records[4].evidence
    assert (found[merged].score, found[merged].delta) == (0.7, pytest.approx(0.1))
    assert rule_queries.origins(index, ()) == {}


def test_flips_are_those_of_the_events(sample) -> None:
    index, records = sample
    for place in (1, 2, 4, 6, 7):
        event = records[place].event
        assert rule_queries.flipped(index, records[place].commit) == (event.fixed, event.broken), event.title
    assert rule_queries.flipped(index, records[5].commit) == (("q04",), ()), "a merge has those of its proposal"
    assert rule_queries.flipped(index, records[0].commit) == ((), ())
    assert rule_queries.flipped(index, "0" * 40) == ((), ())


def test_edits_are_those_of_the_trailers(sample) -> None:
    index, records = sample
    for record in records:
        told = [(edit.op, edit.file, edit.support, edit.source) for edit in record.event.edits]
        found = rule_queries.edits(index, record.commit)
        assert [(row.op, row.file, row.support, row.source) for row in found] == told


def test_versions_are_found_by_number(sample) -> None:
    index, records = sample
    assert rule_queries.commit_of_version(index, RUN, 3) == records[6].commit
    assert rule_queries.commit_of_version(index, RUN, 9) is None
    assert rule_queries.origin_of_version(index, RUN, 2).kind == "slow-merged"
    assert rule_queries.origin_of_version(index, RUN, 9) is None
    assert rule_queries.newest_version(index, RUN) == 3


def test_candidates_with_such_words_are_found_by_what_they_added(repo) -> None:
    write_rule_run(repo)
    with open_index(repo) as index:
        found = rule_queries.alike(index, RUN, ("month",), is_rejected=True, limit=5, column="skill")
        assert [(event.step, added) for event, added in found] == [(2, f"- {TRIED}")]
        accepted = rule_queries.alike(index, RUN, ("month",), is_rejected=False, limit=5, column="skill")
        assert {event.version for event, _ in accepted} == {1, 2}
        assert len(rule_queries.alike(index, RUN, ("month",), is_rejected=False, limit=1, column="skill")) == 1
        assert rule_queries.alike(index, "other", ("month",), is_rejected=False, limit=5) == ()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    repo = Repo.init(tmp_path_factory.mktemp("rules") / "repository")
    write_run(repo)
    with open_index(repo) as index:
        yield index


@given(asked=st.lists(st.text(min_size=1, max_size=12), max_size=4))
def test_any_word_can_be_asked_for(shared, asked: list[str]) -> None:
    words = tuple(word.replace("\0", "") or "x" for word in asked)
    for column in ("", "skill"):
        rule_queries.alike(shared, RUN, words, is_rejected=False, limit=3, column=column)
