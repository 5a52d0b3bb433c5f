"""Ten skills in one repository: every command means the one that is named, and lists tell them apart."""

from __future__ import annotations

import json

import pytest
from sample_run import append_run, write_run

from skillgit.store.repo import Repo

NAMES = ("mill", "town", "charts", "river", "bridge", "tower", "road", "gate-house", "lamp", "well")
PLACES = {
    name: f"{('.claude/skills', 'skills', '.agents/skills')[number % 3]}/{name}" for number, name in enumerate(NAMES)
}


@pytest.fixture(scope="module")
def ten(tmp_path_factory):
    """A repository with a run for each skill, named after it, the last one the newest."""
    repo = Repo.init(tmp_path_factory.mktemp("ten-skills") / "repository")
    for name, path in PLACES.items():
        append_run(repo, f"run-{name}", path)
    return repo


@pytest.fixture
def home(ten, monkeypatch, skillgit):
    monkeypatch.chdir(ten.workdir)
    return skillgit


def test_runs_have_a_column_and_a_filter(home):
    head, *rows = home("runs").text.splitlines()
    assert head.split()[:2] == ["run", "skill"]
    assert {row.split()[1] for row in rows} == set(NAMES)
    for words in (("--skill", "town"), ("--skill", PLACES["town"]), ("--filter", "skill=skills/town")):
        rows = json.loads(home("runs", "--json", *words).text)["runs"]
        assert [(row["name"], row["skill"]) for row in rows] == [("run-town", PLACES["town"])]
    (row,) = home("runs", "--skill", "lamp", "--plain").text.splitlines()
    assert PLACES["lamp"] in row.split("\t")
    assert "skill" not in home("runs", "--skill", "lamp").text.splitlines()[0].split()


def test_log_and_status_mean_the_skill_that_is_named(home):
    for name in ("mill", "well", "river"):
        document = json.loads(home("log", "--skill", name, "--json").text)
        assert document["run"] == f"run-{name}"
        assert {row["skill"] for row in document["events"]} == {PLACES[name]}
        assert json.loads(home("status", "--skill", name, "--json").text)["run"]["name"] == f"run-{name}"
    rows = json.loads(home("log", "--all", "--skill", "town", "--json").text)["events"]
    assert {row["run"] for row in rows} == {"run-town"}
    stream = [json.loads(line) for line in home("log", "--all", "--skill", "town", "--jsonl").text.splitlines()]
    assert {event["run"] for event in stream} == {"run-town"}
    skills = json.loads(home("status", "--json").text)["skills"]
    assert [entry["skill"] for entry in skills] == sorted(PLACES.values())
    for name in NAMES:
        assert f"\n{name} " in home("status").text
    assert {line.split()[-1] for line in home("log", "--all", "--plain").text.splitlines()} == set(PLACES.values())


@pytest.mark.parametrize(
    "words",
    [
        ("show", "v2"),
        ("diff", "v0", "v2"),
        ("blame", "v2"),
        ("why", "1"),
        ("items",),
        ("cost",),
        ("show", "best"),
        ("items", "--models"),
        ("fork", "v2", "--dry-run"),
    ],
)
def test_versions_without_a_run_are_those_of_the_skill(home, words):
    ended = home(*words, "--skill", "road")
    assert ended.code == 0, ended.err
    named = home(
        words[0], *[f"run-road/{word}" if word.startswith("v") else word for word in words[1:]], "--skill", "road"
    )
    assert (named.code, named.out) == (ended.code, ended.out)


def test_an_unknown_name_and_another_run_are_refused_with_what_there_is(home):
    ended = home("log", "--skill", "twon")
    assert ended.code == 3
    assert "there is no skill 'twon'" in ended.err
    assert "did you mean 'town'?" in ended.err
    assert all(name in ended.err for name in NAMES)
    ended = home("log", "run-mill", "--skill", "town")
    assert ended.code == 2
    assert "run run-mill trains .claude/skills/mill, and not skills/town" in ended.err


def test_the_newest_run_of_the_skill_or_the_default_one_is_meant(repo, monkeypatch, skillgit):
    home = skillgit
    monkeypatch.chdir(repo.workdir)
    for run, name in {"run-mill": "mill", "run-town": "town", "another": "town"}.items():
        write_run(repo, run, PLACES[name])
    repo.set_config("skillgit.run", "run-town")
    assert json.loads(home("status", "--skill", "town", "--json").text)["run"]["name"] == "run-town"
    repo.set_config("skillgit.run", "run-mill")
    assert json.loads(home("status", "--skill", "town", "--json").text)["run"]["skill"] == PLACES["town"]
