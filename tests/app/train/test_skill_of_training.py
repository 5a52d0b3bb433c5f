"""``train --skill NAME``: which configuration, data and text it means, and that the other ways mean the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from asking import ask
from sample_run import seed_skill, write_run

from skillgit.app.setup.skill_tasks import tasks_of_skill
from skillgit.app.train.requests import TrainRequest
from skillgit.app.train.train import of_skill, plan_train
from skillgit.errors import NotFoundError, SkillError, UsageError
from skillgit.index import event_pages
from skillgit.index.log_filter import Selection
from skillgit.index.refresh import open_index
from skillgit.store.work_tree import add_skill
from skillgit.verbs.filter_language import narrowed

PLACES = {"town": ".claude/skills/town", "mill": "skills/mill", "charts": "charts"}


@pytest.fixture
def home(repo, context):
    for name, path in PLACES.items():
        add_skill(repo, path, seed_skill(name), time=context.clock())
        rows = [{"question": f"When was {name} {n} built, in {1800 + n}?", "answer": str(1800 + n)} for n in range(20)]
        (repo.workdir / "tasks").mkdir(exist_ok=True)
        (repo.workdir / "tasks" / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return context


@pytest.mark.parametrize("name", PLACES)
def test_a_name_or_a_path_means_the_text_the_tasks_and_the_usual_configuration(home, name):
    plans = [
        plan_train(replace(home, skill=word), TrainRequest(config=config, overrides=()))
        for word in (name, PLACES[name], f"./{PLACES[name]}/SKILL.md")
        for config in (None, "tasks/default")
    ]
    assert {(plan.facts["text"].partition("/SKILL.md ")[0], plan.facts["config"]) for plan in plans} == {
        (PLACES[name], "tasks/default")
    }
    (item_texts,) = {plan.facts["data"] for plan in plans}
    assert item_texts.startswith("10 train")


@pytest.mark.parametrize("folder", ["", "tasks", ".claude/skills", "charts"])
def test_the_tasks_are_those_of_the_repository_wherever_the_command_is_typed(home, folder):
    there = replace(home, directory=home.directory / folder, skill="town")
    request = of_skill(there, TrainRequest(config=None, overrides=("train.seed=3",)))
    path = request.overrides[0].removeprefix("env.data_path=")
    assert (there.directory / path).resolve() == (home.directory / "tasks" / "town.jsonl").resolve()
    assert (request.folder, request.config, request.overrides[1:]) == (
        PLACES["town"],
        "tasks/default",
        ("train.seed=3",),
    )
    assert ask(tasks_of_skill, there) == (home.directory / "tasks" / "town.jsonl").resolve()


def test_data_that_the_user_names_and_other_environments_stay(home):
    own = of_skill(
        replace(home, skill="town"), TrainRequest(config=None, overrides=("env.data_path=tasks/mill.jsonl",))
    )
    assert own.overrides == ("env.data_path=tasks/mill.jsonl",)
    other = of_skill(replace(home, skill="town"), TrainRequest(config="searchqa/default", overrides=()))
    assert (other.config, other.overrides, other.folder) == ("searchqa/default", (), PLACES["town"])


def test_a_run_that_is_there_and_a_version_lend_their_configuration(home, repo):
    write_run(repo, "first", PLACES["town"])
    for request in (
        TrainRequest(config=None, overrides=(), run="first"),
        TrainRequest(config=None, overrides=(), start="v1"),
    ):
        assert of_skill(replace(home, skill="town"), request).config is None


def test_what_is_not_clear_is_refused_with_what_there_is(home):
    with pytest.raises(SkillError, match="the repository has 3 skills") as caught:
        plan_train(home, TrainRequest(config="tasks/default", overrides=("env.data_path=tasks/town.jsonl",)))
    assert caught.value.hint.startswith("--skill ")
    with pytest.raises(NotFoundError, match="there is no skill 'twon'") as caught:
        plan_train(replace(home, skill="twon"), TrainRequest(config=None, overrides=()))
    assert "did you mean 'town'?" in caught.value.hint
    (home.directory / "tasks" / "town.jsonl").unlink()
    with pytest.raises(NotFoundError, match="town has no reviewed tasks") as caught:
        plan_train(replace(home, skill="town"), TrainRequest(config=None, overrides=()))
    assert "skillgit tasks add --skill town --prompt" in caught.value.hint
    both = ("env.skill_init=skills/mill", "env.data_path=tasks/mill.jsonl")
    with pytest.raises(UsageError, match="both name a skill"):
        plan_train(replace(home, skill="mill"), TrainRequest(config=None, overrides=both))


@pytest.mark.parametrize("word", ["town", ".claude/skills/town", ".claude/skills/town/"])
def test_the_filter_of_screens_and_pages_finds_the_events_of_a_skill(home, repo, word):
    for name, path in PLACES.items():
        write_run(repo, f"run-{name}", path)
    with open_index(repo) as index:
        narrowing = narrowed(Selection(), f"skill:{word}", home.clock())
        rows = event_pages.rows(index, narrowing, 0, 99)
        assert {row.run for row in rows} == {"run-town"}
        assert event_pages.count(index, narrowing) == len(rows)
