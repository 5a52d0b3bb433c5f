from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from asking import ask
from sample_run import RUN, write_run

from skillgit.app.history.completion import items, models, revisions, runs
from skillgit.app.history.log import log
from skillgit.app.workspace.workspace import use


def values(words):
    return [word.value for word in words]


@pytest.mark.usefixtures("records")
def test_runs_and_revisions_come_from_the_index(context, repo):
    write_run(repo, "other", events=3)
    use(context, RUN)
    assert sorted(values(runs(context, ""))) == sorted([RUN, "other"])
    assert values(runs(context, "ot")) == ["other"]
    assert values(revisions(context, "")) == [
        "best",
        "head",
        "end",
        "r5",
        "v3",
        "v2",
        "e2",
        "s3",
        "r2",
        "v1",
        "v0",
        *values(runs(context, "")),
    ]
    assert values(revisions(context, "v")) == ["v3", "v2", "v1", "v0"]
    assert values(revisions(context, "other/v")) == ["other/v1", "other/v0"]
    assert values(revisions(context, "v1..r")) == ["v1..r5", "v1..r2"]
    assert {word.value: word.help for word in revisions(context, "v1")}["v1"] == ask(log, context).rows[-2].title


@pytest.mark.usefixtures("records")
def test_items_and_models_come_from_the_index(context):
    ask(log, context)
    assert values(items(context, "q0"))[:2] == ["q01", "q02"]
    assert values(items(context, "q1")) == ["q10"]
    assert values(models(context, "offline/")) == ["offline/student", "offline/teacher"]
    assert values(models(context, "x")) == []


def test_outside_of_a_repository_and_without_a_run_there_is_nothing(context, empty):
    for complete in (runs, revisions, items, models):
        assert complete(empty, "") == ()
        assert values(complete(context, "x")) == []


@pytest.mark.usefixtures("records")
def test_a_damaged_index_is_no_matter(context, repo):
    ask(log, context)
    (repo.private_dir / "index.db").write_bytes(b"no database" * 1000)
    assert values(runs(context, "")) == [RUN]


COMPLETING = """
import os, sys
from skillgit.cli.main import run
sys.argv = ["skillgit"]
for line in sys.stdin.read().splitlines():
    os.environ |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert run() == 0
    print("--", flush=True)
print("|".join(sorted(sys.modules)), file=sys.stderr)
"""


def completed(context, *lines, **more):
    """Return what each line is completed with, and which modules were loaded for all of them."""
    environ = os.environ | {"_SKILLGIT_COMPLETE": "bash_complete", **more}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETING],
        input="\n".join(lines), capture_output=True, text=True, check=True, cwd=context.directory, env=environ,
    )  # fmt: skip
    found = [[one.partition(",")[2] for one in answer.split()] for answer in done.stdout.split("--\n")[:-1]]
    return found, set(done.stderr.split("|"))


@pytest.mark.usefixtures("records")
def test_arguments_are_completed_without_loading_what_is_slow(context):
    ask(log, context)
    completions = {
        "skillgit show v": ["v3", "v2", "v1", "v0"],
        "skillgit log v1..v": ["v1..v3", "v1..v2", "v1..v1", "v1..v0"],
        "skillgit log --item q1": ["q10"],
        "skillgit log --as-of r": ["r5", "r2"],
        "skillgit log --event slow-m": ["slow-merged"],
        "skillgit use d": [RUN],
        "skillgit rev-parse v3": ["v3"],
        "skillgit show hea": ["head"],
        "skillgit help rev": ["revert", "rev-parse"],
        "skillgit plugins searchq": ["searchqa"],
        "skillgit plugins offl": ["offline"],
    }
    answers, loaded = completed(context, *completions)
    for found, (line, expected) in zip(answers, completions.items(), strict=True):
        assert set(found) <= set(expected), line
        assert found, line
    assert not loaded & {"pygit2", "sqlite_utils", "pydantic", "textual", "rich"}


@pytest.mark.usefixtures("records")
def test_completion_looks_where_the_command_would(context, tmp_path):
    ask(log, context)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (found,), _ = completed(replace(context, directory=elsewhere), f"skillgit -C {context.directory} show v")
    assert found == ["v3", "v2", "v1", "v0"]
