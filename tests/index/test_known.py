from __future__ import annotations

from datetime import timedelta

import pygit2.enums
import pytest
from sample_run import RUN, START, transitions, write_run

from skillgit.domain.proposal import Feedback
from skillgit.index import queries, version_queries
from skillgit.index.refresh import open_index, rebuild
from skillgit.store import notes

_UNFINISHED = len(transitions(RUN, "skills/demo")) - 1


def test_notes_come_line_by_line_and_final_scores_by_version(repo):
    records = write_run(repo)
    notes.append(repo, {records[0].commit: [{"a": 1}, {"b": 2}]}, time=START)
    with open_index(repo) as index:
        assert version_queries.note_lines(index, records[0].commit) == ('{"a":1}', '{"b":2}')
        assert version_queries.note_lines(index, records[1].commit) == ()
        (final,) = version_queries.final_rows(index, RUN, 3)
        assert (final.split, final.hard, final.n, final.seed) == ("test", 0.7, 10, 42)
        assert final.time == records[-1].time
        assert version_queries.final_rows(index, RUN, 1) == ()


@pytest.mark.parametrize(
    ("first", "best", "scores"),
    [
        ({}, {}, (0.25, 0.75)),
        ({}, None, (None, None)),
        (None, {}, (None, 0.75)),
        ({"item_set": "other"}, {}, (None, 0.75)),
        ({"environment": "other"}, {}, (None, 0.75)),
        ({}, {"target": "other/model"}, (None, None)),
        ({}, {"split": "selection"}, (None, None)),
        ({}, {"hard": "much"}, (None, None)),
        ({}, {"hard": 7}, (None, None)),
        ({}, {"hard": True}, (None, None)),
    ],
)
def test_notes_tell_the_test_scores_of_the_runs_own_model_on_the_same_items(repo, first, best, scores):
    made = {record.event.version: record.commit for record in write_run(repo, events=_UNFINISHED)}
    noted = {
        made[version]: [{"kind": "evaluation", "split": "test", "item_set": "s", "hard": score, "soft": 0, **more}]
        for version, score, more in ((0, 0.25, first), (3, 0.75, best))
        if more is not None
    }
    notes.append(repo, noted, time=START)
    with open_index(repo) as index:
        (run,) = queries.run_rows(index, {})
    assert (run.outcome, run.best_version) == ("", 3)
    assert (run.first_test, run.best_test) == scores


def test_tags_and_notes_of_people_mark_the_run_of_their_version_while_they_are_there(repo):
    """Not those of versions, nor what marks something else; a release is on the trunk and names the version."""
    made = {record.event.version: record.commit for record in write_run(repo)}
    raw, person = repo.raw, repo.signature(START)
    said = f"promote\n\nSkillgit-Promoted: {RUN}/v3\n"
    release = raw.create_commit(None, person, person, said, repo.commit(made[3]).tree_id, [made[3]])
    stray = raw.create_commit(None, person, person, "stray", repo.commit(made[3]).tree_id, [])
    blob = raw.create_blob(b"key")
    raw.create_tag("annotated", made[1], pygit2.enums.ObjectType.COMMIT, person, "why")
    raw.create_tag("demo/v1.2.0", release, pygit2.enums.ObjectType.COMMIT, person, "released")
    for name, target in {"light": made[3], "stray": stray, "key": blob}.items():
        raw.references.create(f"refs/tags/{name}", target)
    first, second = (
        Feedback(commit=made[version], text=text, author="A", time=START + timedelta(minutes=version))
        for version, text in ((1, "too long"), (3, "good | bad"))
    )
    for feedback in (second, first):
        notes.give(repo, feedback)
    with open_index(repo) as index:
        (run,) = queries.run_rows(index, {})
        assert [*map(str, run.tags)] == ["annotated@v1", "demo/v1.2.0@v3", "light@v3"]
        assert [*map(str, run.notes)] == ["v3: good | bad", "v1: too long"]
        raw.references["refs/tags/light"].delete()
        raw.references["refs/tags/annotated"].set_target(stray)
        notes.withdraw(repo, second, time=START)
        index.refresh()
        grown = queries.run_row(index, RUN, {})
        assert [*map(str, (*grown.tags, *grown.notes))] == ["demo/v1.2.0@v3", "v1: too long"]
    with rebuild(repo) as index:
        assert queries.run_row(index, RUN, {}) == grown


def test_what_a_run_measured_at_its_end_comes_before_notes(repo):
    records = write_run(repo)
    note = {"kind": "evaluation", "split": "test", "item_set": "s", "hard": 1.0, "soft": 1.0}
    notes.append(repo, {records[0].commit: [note]}, time=START)
    with open_index(repo) as index:
        (run,) = queries.run_rows(index, {})
    (first, best) = (found.hard for found in records[-1].event.evaluations[:2])
    assert (run.first_test, run.best_test) == (first, best)
