from __future__ import annotations

import json

import pytest
from hosts import Person
from once import copy_folder
from program import QUICK, git
from sample_run import RUN
from trained_runs import small_run

from skillgit.domain.run_state import fold
from skillgit.engine.evidence_files import TRIED_FILE
from skillgit.store.evidence import read_evidence
from skillgit.store.history_reader import read_run


def tried(person: Person, run: str) -> list[tuple[str, int]]:
    """Return the candidates that ``run`` took in when it began."""
    files = read_evidence(person.repo, read_run(person.repo, run)[0].evidence, (TRIED_FILE,)) or {}
    return [(row["run"], row["step"]) for row in json.loads(files.get(TRIED_FILE, b"[]"))]


def test_candidates_of_others_that_were_fetched_are_told_to_a_fork(host, ann, tmp_path):
    ann.push("--rejected", "attic")
    git("clone", "-q", str(host.path), "bob", cwd=tmp_path)
    bob = Person(tmp_path / "bob")
    bob("pull", "--dry-run")
    bob("fork", f"{RUN}/v3", "late")
    bob("fork", f"{RUN}/v1", "early")
    assert tried(bob, "late") == [(RUN, 2), (RUN, 5)]
    assert tried(bob, "early") == [(RUN, 2)], "the other was made of a version that the fork does not have"


@pytest.mark.soak
def test_what_is_fetched_later_changes_nothing_in_a_run_that_has_begun(ann, clone):
    ann.push("origin", RUN)
    bob = clone("bob")
    bob("fork", f"{RUN}/v1", "mine")
    ann("fork", f"{RUN}/v1", "theirs")
    before = tried(bob, "mine")
    ann.push()
    bob("pull", "--dry-run")
    assert tried(bob, "mine") == before == [(RUN, 2)]


def test_candidates_of_others_that_were_fetched_are_part_of_the_run_that_goes_on_from_there(host, ann, tmp_path):
    """They are in the optimizer's history, and the first event that is written makes them branches of this clone."""
    ann.push("--rejected", "branches")
    person = Person(tmp_path)
    person("clone", host.path, "bob")
    bob = Person(tmp_path / "bob")
    for name in bob.git("for-each-ref", "--format=%(refname)", "refs/heads/rejected", "refs/remotes").split():
        bob.git("update-ref", "-d", name)
    bob("pull", "--dry-run")
    state = fold(record.event for record in read_run(bob.repo, RUN))
    assert [one.step for one in state.memory if one.decision == "reject"] == [2, 5]


def test_a_run_that_begins_at_a_version_takes_the_candidates_in_and_goes_on_with_the_same(tmp_path_factory, tmp_path):
    copy = copy_folder(small_run(tmp_path_factory), tmp_path / "copy")
    whole, parts = Person(copy), Person(copy_folder(copy, tmp_path / "parts"))
    words = ("train", "demo", "-q", *QUICK, "-o", "train.num_epochs=1", "--run", "next", "--from", "small/v2")
    whole(*words)
    assert {run for run, _ in tried(whole, "next")} == {"small"}
    for cap in ("60", "90"):
        parts(*words, "--max-calls", cap, code=7)
    parts(*words)
    assert [one.commit for one in read_run(parts.repo, "next")] == [one.commit for one in read_run(whole.repo, "next")]
