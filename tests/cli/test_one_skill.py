"""Every command with a configuration for one skill: ``--skill NAME`` chooses it, and its tasks are the data."""

from __future__ import annotations

import json
import shlex

import click
import pytest
from sample_run import seed_skill, write_run
from soaking import sampled, soak

from skillgit.cli import main
from skillgit.errors import ExitCode
from skillgit.store.work_tree import add_skill

NAMES = ("mill", "town")
OFFLINE = "model: {target_backend: offline, target: reader, optimizer_backend: offline, optimizer: analyst}\n"


def commands(group, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif command is not None:
            yield (*path, name), command


def options_of(command):
    params = command.get_params(click.Context(command))
    return {option for param in params if not getattr(param, "hidden", False) for option in param.opts}


WITH_CONFIG = {
    path: command
    for path, command in commands(main.cli)
    if "--config" in options_of(command) or any(param.name == "config" for param in command.params)
}
"""The commands that take a configuration."""
CONFIG_FIRST = [path for path, command in WITH_CONFIG.items() if "--config" not in options_of(command)]
"""Those that are about their CONFIG and the skill that is here, and name no version."""


@pytest.fixture
def home(repo, clock, monkeypatch, skillgit):
    del skillgit  # it begins in another folder
    monkeypatch.chdir(repo.workdir)
    (repo.workdir / "models.yaml").write_text(f"_base_: tasks/default\n{OFFLINE}")

    def add(name):
        add_skill(repo, f"skills/{name}", seed_skill(name), time=clock())
        rows = [{"question": f"When was {name} {n} built, in {1800 + n}?", "answer": str(1800 + n)} for n in range(20)]
        file = repo.workdir / "tasks" / f"{name}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    return add


def test_the_tree_has_commands_of_every_kind():
    assert {("train",), ("doctor",), ("config",)} == set(CONFIG_FIRST)
    assert {("eval",), ("gate",), ("ablate",), ("items",), ("merge",)} <= WITH_CONFIG.keys()


@pytest.mark.parametrize("path", WITH_CONFIG, ids=" ".join)
def test_every_command_with_a_configuration_says_which_skill(path):
    assert "--skill" in options_of(WITH_CONFIG[path])


def dry(path):
    return [word for word in ("--dry-run", "--no-call") if word in options_of(WITH_CONFIG[path])][-1:]


@pytest.mark.parametrize("path", CONFIG_FIRST, ids=" ".join)
@pytest.mark.parametrize("config", ["models.yaml", soak("tasks/default")])
def test_of_two_skills_one_is_named_and_of_one_none(home, skillgit, path, config):
    words = [*path, config, *dry(path)]
    home("town")
    alone = skillgit(*words)
    assert alone.code == 0, alone.err
    home("mill")
    ended = skillgit(*words)
    assert ended.code == ExitCode.USAGE
    assert "the repository has 2 skills: mill, town" in ended.err
    for name in NAMES:
        ended = skillgit(*words, "--skill", name)
        assert ended.code == 0, ended.err
    ended = skillgit(*words, *shlex.split(skillgit(*words).err.partition("hint: ")[2]))
    assert ended.code == 0, ended.err
    assert skillgit(*words, "--skill", "nope").code == ExitCode.NOT_FOUND


@pytest.mark.parametrize("name", sampled(NAMES, 2))
def test_the_data_are_the_tasks_of_the_skill_for_all_of_them(home, repo, skillgit, name):
    for skill in NAMES:
        home(skill)
    write_run(repo, "first", f"skills/{name}")
    chosen = ("--skill", name)
    assert f"env.data_path=tasks/{name}.jsonl" in skillgit("config", "models.yaml", *chosen).text
    assert f"tasks/{name}.jsonl" in skillgit("train", "models.yaml", "-n", *chosen).text
    assert f"tasks/{name}.jsonl" in skillgit("eval", "main", "--config", "models.yaml", "-n", *chosen).text
    # a version of a run says by itself which skill it is of
    assert f"tasks/{name}.jsonl" in skillgit("eval", "first/v1", "--config", "models.yaml", "-n").text
    own = json.loads(skillgit("doctor", "models.yaml", "--no-call", "--json", *chosen).text)
    named = json.loads(
        skillgit(
            *("doctor", "models.yaml", "--no-call", "--json", *chosen, "-o", f"env.data_path=tasks/{name}.jsonl")
        ).text
    )
    assert own["data"]["splits"] == named["data"]["splits"]


def test_data_that_are_named_and_other_environments_stay(home, skillgit):
    home("town")
    other = "tasks/other.jsonl"
    text = skillgit("config", "models.yaml", "-o", f"env.data_path={other}", "--skill", "town").text
    assert f"env.data_path={other}" in text
    assert "tasks/town.jsonl" not in skillgit("config", "searchqa/default", "--skill", "town").text


@pytest.mark.parametrize(
    "words",
    [("tasks", "add", "--prompt", "What?", "--answer", "1"), ("tasks", "draft", "--from", "sessions", "-n")],
)
def test_tasks_are_those_of_the_only_skill(home, skillgit, words):
    home("town")
    assert skillgit(*words).code == 0
    home("mill")
    ended = skillgit(*words)
    assert (ended.code, "mill, town" in ended.err) == (ExitCode.USAGE, True)
    assert skillgit(*words, "--skill", "mill").code == 0


def test_what_trains_first_is_a_command_that_can_be_typed(home, repo, skillgit):
    def first():
        hint = skillgit("runs").err.partition("hint: ")[2].strip()
        words = shlex.split(hint)[1:]
        ended = skillgit(*words, *(["-n"] if words[0] == "train" else ["--help"]))
        assert ended.code == 0, ended.err
        return hint

    home("town")
    assert first() == "skillgit train"
    home("mill")
    assert first() == "skillgit train --skill mill"
    (repo.workdir / "tasks" / "mill.jsonl").unlink()
    assert first() == "skillgit train --skill town"
    (repo.workdir / "tasks" / "town.jsonl").unlink()
    assert first() == "skillgit tasks add --skill mill --prompt QUESTION --answer ANSWER"
    write_run(repo, "first", "skills/town")
    for words in (("status", "--skill", "mill"), ("runs", "--skill", "mill")):
        assert "no run trains skills/mill yet; runs train town" in skillgit(*words).err
