"""What is measured is kept under the commit that holds it, whatever that is called: scores, notes, the gate on them."""

from __future__ import annotations

import json
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder, once
from program import QUICK, attempt, git, new_repository, skillgit
from soaking import soak
from trained_runs import Quiet, user

from skillgit.app.measure.eval import evaluate
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.measure.retest import retest
from skillgit.app.workspace.revision import resolve

if TYPE_CHECKING:
    from pathlib import Path

RUN = "short"
TRAIN = ("train", "demo", "--run", RUN, "-q", *QUICK, "-o", "train.num_epochs=1")


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose run ends with the rejected step r3, at which a person's cherry-pick was refused as i1."""

    def fill(folder: Path) -> None:
        repository = new_repository(folder / "repository")
        skillgit(*TRAIN, cwd=repository)
        skillgit("cherry-pick", "r1", "-q", cwd=repository, code=1)

    return once(tmp_path_factory, "alike", fill) / "repository"


@pytest.fixture
def repository(alike: Path, tmp_path: Path) -> Path:
    return copy_folder(alike, tmp_path / "repository")


def measure(repository: Path, *revisions: str, **request):
    return ask(evaluate, user(repository), EvalRequest(revisions=revisions, **request), Quiet())


def outcomes(repository: Path, commit: str) -> list[dict[str, list[float]]]:
    listed = git("notes", "--ref=skillgit/evals", "show", commit, cwd=repository).out
    return [json.loads(line)["outcomes"] for line in listed.splitlines()]


def noted(repository: Path) -> set[str]:
    listed = git("notes", "--ref=skillgit/evals", "list", cwd=repository).out
    return {line.split()[1] for line in listed.splitlines()}


def test_an_intervention_and_a_step_of_the_same_number_are_two(repository):
    i1, r3 = (ask(resolve, user(repository), name) for name in ("i1", "r3"))
    assert (i1.row.step, r3.row.step) == (3, 3)
    found = measure(repository, "i1", "r3")
    assert [(arm.name, arm.commit) for arm in found.arms] == [("i1", i1.commit), ("r3", r3.commit)]
    assert found.noted == 2
    scores = {arm.name: arm.splits[0].overall.hard for arm in found.arms}
    assert scores["i1"] != scores["r3"]
    for name, resolved in (("i1", i1), ("r3", r3)):
        (alone,) = measure(repository, name, note=False).arms
        (note,) = outcomes(repository, resolved.commit)
        assert alone.splits[0].overall.hard == scores[name] == sum(hard for hard, _ in note.values()) / len(note)


@pytest.mark.parametrize(
    ("command", "names"),
    [("retest", ("i1", "r3")), *(soak(command, ("i1", "r3", "r1", "v0")) for command in ("retest", "eval"))],
)
def test_notes_land_on_the_commits_that_were_measured_with_their_own_outcomes(alike, tmp_path, command, names):
    commits = {name: ask(resolve, user(alike), name).commit for name in names}
    own = {}
    for place, chosen in enumerate([(name,) for name in names] + list(permutations(names, 2)) + [names]):
        repository = copy_folder(alike, tmp_path / str(place))
        if command == "retest":
            request = EvalRequest(revisions=chosen)
            found = ask(retest, user(repository), request, Quiet())
            told = {row.name: row.commit for row in found.rows}
        else:
            told = {arm.name: arm.commit for arm in measure(repository, *chosen).arms}
        assert told == {name: commits[name] for name in chosen}
        assert noted(repository) == {commits[name] for name in chosen}
        for name in chosen:
            (note,) = outcomes(repository, commits[name])
            assert note == own.setdefault(name, note)
    assert own["i1"] != own["r3"]


def test_the_gate_does_not_take_the_score_of_another_commit(repository):
    """The head has the text of i1; what is noted of r3 says nothing about it."""
    measure(repository, "i1", "r3", "v0")
    skills = {name: ask(resolve, user(repository), name).commit for name in ("v0", "r3", "i1")}
    judged = {}
    for head in ("r3", "i1"):
        done = attempt(
            *("gate", "--base", skills["v0"], "--head", skills[head], "--recorded-only", "--json"), cwd=repository
        )
        (skill,) = json.loads(done.out)["skills"]
        judged[head] = skill["head"]["score"]
        (alone,) = measure(repository, head, note=False).arms
        assert judged[head] == alone.splits[0].overall.hard
        assert done.code == (0 if judged[head] > skill["base"]["score"] else 1)
    assert judged["r3"] != judged["i1"]
