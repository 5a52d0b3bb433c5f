"""A run whose gate counts tokens, as git and every surface tell it."""

from __future__ import annotations

import json
import subprocess

import pytest
from program import attempt, skillgit

OPTIONS = (
    *("-o", "gate.objective=score-then-tokens", "-o", "train.num_epochs=1", "-o", "train.batch_size=60"),
    *("-o", "evaluation.sel_env_num=12", "-o", "evaluation.eval_test=false", "-o", "optimizer.salvage=false"),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objective")
    skillgit("init", "r", "--env", "searchqa", cwd=folder)
    said = skillgit("train", "searchqa/default", "--run", "one", *OPTIONS, cwd=folder / "r")
    return folder / "r", said.err + said.out


def test_git_and_every_surface_name_both_figures(trained):
    repository, said = trained
    assert "offline/reader counts no tokens: gate.objective compares estimates" in said
    (row,) = (
        row for row in json.loads(skillgit("log", "one", "--json", cwd=repository).out)["events"] if row["tokens"]
    )
    figures = f"{row['tokens']:,.1f} tokens an item, {row['tokens_before']:,.1f} before"
    git = ("git", "-C", str(repository), "log", "-1", "--format=%(trailers:key=Skillgit-Gate,valueonly)%n%b")
    message = subprocess.run((*git, row["commit"]), capture_output=True, text=True, check=True).stdout
    assert f" tokens={row['tokens']} tokens-before={row['tokens_before']} " in message.splitlines()[0]
    assert figures in " ".join(message.split())
    label = f"one/v{row['version']}" if row["version"] else f"one/r{row['step']}"
    for command in (("show", label), ("report", "one", "--output", "-")):
        assert figures in skillgit(*command, cwd=repository).out, command
    verdict = json.loads(skillgit("show", label, "--json", cwd=repository).out)["event"]["verdict"]
    assert (verdict["tokens"], verdict["objective"]) == (row["tokens"], "score-then-tokens")
    assert "no problems" in skillgit("fsck", "--deep", cwd=repository).out


def test_a_pull_request_is_judged_by_what_the_run_recorded_of_tokens(trained):
    repository, _ = trained
    (row,) = (
        row for row in json.loads(skillgit("log", "one", "--json", cwd=repository).out)["events"] if row["tokens"]
    )
    command = ("gate", "--base", "one/v0", "--head", row["commit"], "--recorded-only")
    report = json.loads(attempt(*command, "--json", cwd=repository).out)
    (skill,) = report["skills"]
    verdict = skill["compared"]["verdict"]
    assert (verdict["tokens"], verdict["tokens_before"]) == (row["tokens"], row["tokens_before"])
    comment = attempt(*command, "--output", "-", cwd=repository).out
    assert f"- {row['tokens']:,.1f} tokens an item, {row['tokens_before']:,.1f} before" in comment
