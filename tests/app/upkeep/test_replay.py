from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sample_run import RUN

from skillgit.app.upkeep.run_checks import history_digest, replay
from skillgit.errors import RevisionNotFoundError
from skillgit.store import refs

sys.path.insert(0, str(Path(__file__).parents[2] / "damage"))

from forgery import Patient, evidence_changed, replaced


@pytest.fixture
def patient(repo, records) -> Patient:
    """The repository with the sample run, which is about to be damaged."""
    return Patient(repo, records, lambda *_: "")


def test_a_run_comes_out_as_it_is_recorded(context, records):
    done = replay(context, None)
    assert done.same
    assert [event.commit for event in done.events] == [record.commit for record in records]
    assert [event.label for event in done.events if event.gate] == ["v1", "r2", "e2", "v2", "v3", "r5"]
    assert [event.label for event in done.events if event.patch] == ["v1", "r2", "v3", "r5"]
    assert not any(event.lacking for event in done.events)
    assert done.history == history_digest(records)


def test_looking_writes_nothing(context, repo, records):
    before = repo.tips(), sorted(path for path in (repo.common_dir / "objects").rglob("*") if path.is_file())
    assert replay(context, RUN).same
    assert (repo.tips(), sorted(path for path in (repo.common_dir / "objects").rglob("*") if path.is_file())) == before
    assert records


@pytest.mark.parametrize(
    ("damage", "label", "said"),
    [
        (replaced(1, "p=0.3125", "p=0.5"), "v1", "the gate says p=0.5, and its items give p=0.3125"),
        (replaced(1, "fixed=3 ", "fixed=4 "), "v1", "the gate says fixed=4, and its items give fixed=3"),
        (
            replaced(7, "broken=0 p=1.0", "broken=1 p=0.5"),
            "r5",
            "the gate says broken=1, and its items give broken=0",
        ),
        (
            evidence_changed(6, "patch.json", lambda content: content.replace(b"Quote the span", b"Quote a span")),
            "v3",
            "the patch in the evidence, applied to v2, does not give the committed skill",
        ),
    ],
)
def test_what_was_tampered_with_differs_and_is_named(context, patient, damage, label, said):
    damage(patient)
    done = replay(context, None)
    assert not done.same
    (event,) = [event for event in done.events if event.label == label]
    assert said in event.differing


def test_a_forged_gain_with_all_its_numbers_is_found_by_its_items_alone(context, patient):
    def better(content: bytes) -> bytes:
        rows = json.loads(content)
        rows[3].update(hard=1.0, soft=1.0)
        return json.dumps(rows).encode()

    evidence_changed(1, "selection.json", better)(patient)
    said = [told for event in replay(context, None).events for told in event.differing]
    assert "the gate says score=0.6, and its items give score=0.7" in said
    assert "the message lists other items as broken: q04" in said


def test_without_evidence_what_cannot_be_made_again_is_counted(context, repo, records):
    repo.raw.references.delete(refs.evidence_ref(RUN))
    shutil.rmtree(repo.common_dir / "skillgit")
    for record in records:
        if record.evidence:
            path = repo.common_dir / "objects" / record.evidence[:2] / record.evidence[2:]
            path.unlink(missing_ok=True)
    done = replay(context, None)
    assert done.same
    assert not any(event.gate or event.patch for event in done.events)
    told = [told for event in done.events for told in event.lacking]
    assert told.count("gate, without its items") == 6
    assert told.count("patch, without patch.json") == 4


def test_an_index_that_says_something_else_is_a_difference(context, repo, records):
    assert replay(context, None).same
    connection = sqlite3.connect(repo.private_dir / "index.db")
    with connection:
        connection.execute("UPDATE event SET title = 'forged' WHERE step = 2")
    connection.close()
    done = replay(context, None)
    assert (done.same, done.index) == (False, False)
    assert not any(event.differing for event in done.events)
    assert records


def test_an_unknown_run_is_an_error(context):
    with pytest.raises(RevisionNotFoundError):
        replay(context, "nope")


def test_two_copies_have_the_same_digest_exactly_if_their_commits_are_the_same(records):
    other = [*records[:-1], replace(records[-1], commit="0" * 40)]
    assert history_digest(records) == history_digest(list(records))
    assert history_digest(other) != history_digest(records)
