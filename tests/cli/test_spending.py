"""Every command that may ask a model has a dry run and three caps; which ones may is read from the source."""

from __future__ import annotations

import hashlib
import json
import subprocess
from typing import TYPE_CHECKING

import click
import pytest
from call_graph import asking, reaching
from collector import collector, environment
from once import copy_folder
from program import attempt, refs, skillgit
from soaking import sampled
from trained_runs import small_run

from skillgit.cli.main import cli
from skillgit.verbs.command_line import VerbCommand

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPTIONS = ("dry_run", "max_calls", "max_tokens", "max_usd")
TASKS = '{"prompt": "What is 1 + 1?", "answers": ["2"]}\n'
LANGUAGE_MODEL = tuple(
    word
    for role in ("optimizer", "judge")
    for word in ("-o", f"model.{role}_backend=openai_chat", "-o", f"model.{role}=any")
)
DRY = {
    "train": ("demo",),
    "eval": ("v0", "best", "-o", "train.seed=7"),
    "eval --fresh": ("v0",),
    "eval --fresh --sample": ("20", "v1", "--seed", "3"),
    "verify": ("small/v1", "--sample", "3"),
    "gate": ("--base", "small/v0", "--head", "small/v2", "-o", "model.target=agent"),
    "items": ("--item", "ITEM", "--measure"),
    "ablate": ("best",),
    "shorten": (),
    "shorten --words": (),
    "cherry-pick": ("r1", "--run", "small"),
    "cherry-pick --rejected": (),
    "merge": ("small", "fork/v2"),
    "revert --to": ("v0", "--gate"),
    "revert": ("v1",),
    "propose": ("searchqa", "--config", "demo"),
    "propose --model": ("agent", "searchqa", "--config", "demo"),
    "doctor": ("demo",),
    "tasks draft": ("skill", "-f", "tasks.jsonl", *LANGUAGE_MODEL),
    "tasks draft --from sessions": ("skill", "--rubric", *LANGUAGE_MODEL),
}
"""What every command that spends is asked to plan."""


def commands(group: click.Group = cli, before: str = "") -> Iterator[tuple[str, VerbCommand]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{before}{name} ")
        elif isinstance(found, VerbCommand):
            yield f"{before}{name}", found


def command_of(name: str) -> str:
    """Return the command in the key of ``DRY``, which may have options behind it."""
    return name.partition(" --")[0]


def spenders() -> dict[str, VerbCommand]:
    """Return the commands whose callback leads to whoever asks models."""
    may = reaching(asking())
    return {
        name: command for name, command in commands() if (command.verb.run.__module__, command.verb.run.__name__) in may
    }


def test_the_commands_that_spend_are_those_that_can_be_planned():
    assert set(spenders()) == {command_of(name) for name in DRY}, (
        "a command that asks models is added to DRY, and has spending_options"
    )


@pytest.mark.parametrize("name", DRY)
def test_a_command_that_spends_has_a_dry_run_and_all_caps(name):
    assert {*OPTIONS} <= dict(commands())[command_of(name)].keys


def test_no_other_command_has_caps():
    for name, command in commands():
        assert ("max_calls" in command.keys) == (name in DRY), name


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a run, a fork of it that went on, and a skill and tasks beside it."""
    folder = tmp_path_factory.mktemp("spending")
    repository = copy_folder(small_run(tmp_path_factory), folder / "repository")
    skillgit("fork", "small/v0", "fork", cwd=repository)
    skillgit("cherry-pick", "small/v1", "--run", "fork", "-q", cwd=repository)
    skillgit("cherry-pick", "small/v2", "--run", "fork", "-q", cwd=repository)
    skillgit("use", "small", cwd=repository)
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    skillgit("claim", "small/v1", "--key", str(key), cwd=repository)
    skillgit("export", "v0", "skill", cwd=repository)
    (repository / "tasks.jsonl").write_text(TASKS)
    return repository


def contents(repository: Path) -> dict[str, str]:
    """Return a digest of every file of the repository, git's objects included."""
    return {
        str(path.relative_to(repository)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(repository.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("name", sampled(DRY, 4))
def test_a_dry_run_asks_nobody_and_writes_nothing(name, history):
    item = json.loads(skillgit("items", "--json", cwd=history).out)["items"][0]["item"]
    words = [item if word == "ITEM" else word for word in DRY[name]]
    skillgit("status", cwd=history)  # the index is up to date
    before, tips = contents(history), refs(history)
    done = skillgit(*name.split(), *words, "--dry-run", "--json", cwd=history)
    assert (contents(history), refs(history)) == (before, tips)
    told = json.loads(done.out)
    assert (told["schema"], told["command"]) == ("skillgit.plan/2", command_of(name))
    assert set(told) == {
        "schema",
        "command",
        "facts",
        "stages",
        "rollouts",
        "known",
        "total",
        "notes",
        "sentence",
        "exit_code",
    }
    assert told["total"]["calls"] == sum(row["calls"] for row in told["stages"])
    text = skillgit(*name.split(), *words, "--dry-run", cwd=history)
    assert text.out.endswith("nothing was run or written\n")
    assert text.err == ""


@pytest.mark.parametrize(
    "name",
    sampled(
        ["cherry-pick", "eval --fresh", "eval --fresh --sample", "gate", "verify", "ablate", "eval", "propose --model"],
        3,
    ),
)
def test_what_a_plan_says_exactly_is_what_is_asked_and_each_call_of_it_is_a_span(name, history, tmp_path):
    repository = copy_folder(history, tmp_path / "repository")
    plan = json.loads(skillgit(*name.split(), *DRY[name], "--dry-run", "--json", cwd=repository).out)
    with collector() as taken:
        done = json.loads(
            skillgit_ends(*name.split(), *DRY[name], "--json", "-q", cwd=repository, env=environment(taken.url))
        )
    cost = (done.get("decided") or done.get("reproduction") or done)["cost"]["calls"]
    assert cost == len(taken.named("chat")) <= plan["total"]["calls"]
    if plan["total"]["bound"] == "exactly":
        assert cost == plan["total"]["calls"]
    again = json.loads(skillgit(*name.split(), *DRY[name], "--dry-run", "--json", cwd=repository).out)
    if name not in {"eval --fresh", "cherry-pick"}:  # a second one draws afresh; another version is the base now
        assert (again["total"]["calls"], again["known"]) == (0, plan["rollouts"])


def skillgit_ends(*words: str, cwd: Path, env: dict[str, str]) -> str:
    """Return what a command printed, whatever its verdict was."""
    done = attempt(*words, cwd=cwd, env=env)
    assert done.code in {0, 1, 21}, done
    return done.out
