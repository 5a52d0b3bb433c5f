from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sample_run import RUN

from skillgit.app.upkeep.fsck import fsck, history_digest
from skillgit.errors import RevisionNotFoundError
from skillgit.store import refs

sys.path.insert(0, str(Path(__file__).parents[2] / "damage"))

from forgery import Patient, evidence_changed, replaced


@pytest.fixture
def patient(repo, records) -> Patient:
    """The repository with the sample run, which is about to be damaged."""
    return Patient(repo, records, lambda *_: "")


def remade(context, run=None):
    (only,) = fsck(context, run, deep=True).remade
    return only


def said(context, commit: str = "") -> list[str]:
    problems = fsck(context, None, deep=True).problems
    return [problem.sentence for problem in problems if not commit or problem.commit == commit]


def test_a_run_comes_out_as_it_is_recorded(context, records):
    done = fsck(context, None, deep=True)
    assert done.problems == ()
    (run,) = done.remade
    assert (run.events, run.gates, run.patches, run.lacking) == (len(records), 6, 4, ())
    assert run.history == history_digest(records)


def test_looking_writes_nothing(context, repo, records):
    before = repo.tips(), sorted(path for path in (repo.common_dir / "objects").rglob("*") if path.is_file())
    assert fsck(context, RUN, deep=True).problems == ()
    assert (repo.tips(), sorted(path for path in (repo.common_dir / "objects").rglob("*") if path.is_file())) == before
    assert records


@pytest.mark.parametrize(
    ("damage", "label", "said_of"),
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
def test_what_was_tampered_with_differs_and_is_named(context, patient, damage, label, said_of):
    damage(patient)
    commits = {record.event.address.label: record.commit for record in patient.history}
    assert said_of in said(context, commits[label]) or said_of in said(context)


def test_a_forged_gain_with_all_its_numbers_is_found_by_its_items_alone(context, patient):
    def better(content: bytes) -> bytes:
        rows = json.loads(content)
        rows[3].update(hard=1.0, soft=1.0)
        return json.dumps(rows).encode()

    evidence_changed(1, "selection.json", better)(patient)
    sentences = said(context)
    assert "the gate says score=0.6, and its items give score=0.7" in sentences
    assert "the message lists other items as broken: q04" in sentences


def test_without_evidence_what_cannot_be_made_again_is_counted(context, repo, records):
    repo.raw.references.delete(refs.evidence_ref(RUN))
    shutil.rmtree(repo.common_dir / "skillgit")
    for record in records:
        if record.evidence:
            path = repo.common_dir / "objects" / record.evidence[:2] / record.evidence[2:]
            path.unlink(missing_ok=True)
    run = remade(context)
    assert (run.gates, run.patches) == (0, 0)
    reasons = [reason.partition(": ")[2] for reason in run.lacking]
    assert reasons.count("gate, without its items") == 6
    assert reasons.count("patch, without patch.json") == 4
    assert all("evidence" in sentence for sentence in said(context))


def test_an_index_that_says_something_else_is_a_difference(context, repo, records):
    assert said(context) == []
    connection = sqlite3.connect(repo.private_dir / "index.db")
    with connection:
        connection.execute("UPDATE event SET title = 'forged' WHERE step = 2")
    connection.close()
    assert said(context) == ["the index differs from what git holds"]
    assert records


def test_an_unknown_run_is_an_error(context):
    with pytest.raises(RevisionNotFoundError):
        fsck(context, "nope", deep=True)


def test_two_copies_have_the_same_digest_exactly_if_their_commits_are_the_same(records):
    other = [*records[:-1], replace(records[-1], commit="0" * 40)]
    assert history_digest(records) == history_digest(list(records))
    assert history_digest(other) != history_digest(records)
