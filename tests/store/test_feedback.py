from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from program import git
from sample_run import write_run

from skillgit.domain.proposal import Feedback
from skillgit.store import notes, refs
from skillgit.store.notes import feedback_in, feedback_reader, give, withdraw

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
FIELDS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["feedback", "feedback-withdrawn", "evaluation"])},
    optional={"text": JSON, "author": JSON, "time": JSON | st.just("2026-01-01T00:00:00Z"), "feedback": JSON},
)


def feedback(text: str, commit: str, **changes: object) -> Feedback:
    return Feedback(**{"commit": commit, "text": text, "author": "Ada", "time": MOMENT, **changes})


def test_what_is_given_is_read_again_as_it_was_and_git_shows_it(repo):
    commit = write_run(repo)[0].commit
    given = feedback("Mind the „units“:\n\t- metres\n", commit)
    give(repo, given)
    assert feedback_reader(repo)([commit]) == (given,)
    (line,) = git("notes", "--ref=skillgit/evals", "show", commit, cwd=repo.workdir).out.splitlines()
    assert json.loads(line) == {"kind": "feedback", "text": given.text, "author": "Ada", "time": "2026-01-01T00:00:00Z"}


def test_times_of_other_zones_are_the_same_moment(repo):
    commit = write_run(repo)[0].commit
    give(repo, feedback("x", commit, time=datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))))
    assert feedback_reader(repo)([commit]) == (feedback("x", commit),)


def test_what_is_withdrawn_counts_no_more_even_where_another_clone_still_has_it(repo):
    commit = write_run(repo)[0].commit
    one, other = feedback("one", commit), feedback("other", commit)
    give(repo, one)
    give(repo, other)
    theirs = repo.tip(refs.NOTES)
    withdraw(repo, one, time=MOMENT)
    assert feedback_reader(repo)([commit]) == (other,)
    git("update-ref", "refs/notes/theirs", theirs, cwd=repo.workdir)
    git("notes", "--ref=skillgit/evals", "merge", "-q", "-s", "cat_sort_uniq", "refs/notes/theirs", cwd=repo.workdir)
    assert feedback_reader(repo)([commit]) == (other,)


def test_a_reader_sees_what_is_noted_after_it_was_made(repo):
    commits = [record.commit for record in write_run(repo)]
    read = feedback_reader(repo)
    assert read(commits) == ()
    give(repo, feedback("late", commits[3]))
    assert [one.text for one in read(commits)] == ["late"]
    assert read(commits[:3]) == ()


def test_evaluations_in_the_same_note_stay(repo):
    commit = write_run(repo)[0].commit
    notes.append(repo, {commit: [{"kind": "evaluation", "hard": 0.5}]}, time=MOMENT)
    give(repo, feedback("x", commit))
    assert {row["kind"] for row in notes.read(repo, commit)} == {"evaluation", "feedback"}


@given(st.lists(st.text(max_size=20) | FIELDS.map(json.dumps) | JSON.map(json.dumps), max_size=8), st.randoms())
def test_no_line_is_too_odd_to_be_read_and_their_order_does_not_matter(lines, chance):
    found = feedback_in(("c", line) for line in lines)
    assert all(isinstance(one.text, str) and one.time.tzinfo for one in found)
    chance.shuffle(lines)
    assert feedback_in(("c", line) for line in lines) == found
