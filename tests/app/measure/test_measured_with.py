"""Whatever measures names what it measured with, and takes no other run's configuration than the one that is meant."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from once import copy_folder
from program import QUICK, Done, attempt, git, skillgit
from soaking import sampled
from trained_runs import ONE_CANDIDATE, RUN, small_run

pytestmark = pytest.mark.slow
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
KEY = "env.data_path"


@pytest.fixture(scope="module")
def pulled(tmp_path_factory) -> Path:
    """A clone with two runs of one skill: the older one is whole, the newest one names data that only its user has."""
    folder = tmp_path_factory.mktemp("pulled")
    theirs = copy_folder(small_run(tmp_path_factory), folder / "theirs")
    rows = [{"question": f"Mill {n} burned down in {1800 + n}. When?", "answer": str(1800 + n)} for n in range(12)]
    (theirs / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    data = ("-o", f"{KEY}=mine.jsonl", "-o", "train.num_epochs=1", "-o", "evaluation.eval_test=false")
    skillgit("train", "tasks/default", "--run", "newest", "-q", *ONE_CANDIDATE, *data, cwd=theirs)
    git("checkout", "-qb", "change", cwd=theirs)
    document = theirs / "skills/searchqa/SKILL.md"
    document.write_text(f"{document.read_text()}\n- Answer with the year alone.\n")
    git(*WHO, "commit", "-qam", "a change", cwd=theirs)
    git("clone", "-q", theirs, folder / "here", cwd=folder)
    git("branch", "-q", "main", "origin/main", cwd=folder / "here")
    skillgit("pull", "--evidence", cwd=folder / "here")
    return folder / "here"


def notes(repository: Path) -> str:
    return git("for-each-ref", "refs/notes", cwd=repository).out


COMMANDS = {
    "gate": ("gate", "--base", "main", "--head", "change"),
    "gate, recorded only": ("gate", "--base", "main", "--head", "change", "--recorded-only"),
    "gate, dry": ("gate", "--base", "main", "--head", "change", "--dry-run"),
    "eval": ("eval", "newest/v0"),
    "eval of the default run": ("eval", "best"),
    "eval --model": ("eval", "newest/v0", "--model", "offline/agent"),
    "verify": ("eval", "--fresh", "--sample", "20", "newest/v0"),
    "ablate": ("ablate", "newest/v0"),
    "shorten": ("shorten", "newest/v0"),
    "shorten --words": ("shorten", "newest/v0", "--words"),
    "revert --to --gate": ("revert", "--to", f"{RUN}/v0", "--run", "newest", "--gate"),
    "cherry-pick --rejected": ("cherry-pick", "--rejected", "--run", "newest"),
    "cherry-pick": ("cherry-pick", f"{RUN}/v1", "--run", "newest"),
    "merge": ("merge", "newest", RUN),
}


@pytest.mark.parametrize("name", sampled(COMMANDS, 3))
def test_an_incomplete_newest_configuration_is_an_error_that_names_its_keys(pulled, name):
    before = notes(pulled)
    done = attempt(*COMMANDS[name], cwd=pulled)
    assert "there is no option" not in done.err, done
    assert done.code != 0, done
    assert KEY in done.err or "belongs to" in done.err or "not a version of run" in done.err, done
    assert "reader" not in done.out, "nothing was measured"
    assert notes(pulled) == before


def test_with_the_keys_given_the_newest_run_is_the_one_that_judges(pulled, tmp_path):
    here = copy_folder(pulled, tmp_path / "here")
    data = "mine.jsonl"
    shutil.copy(pulled.parent / "theirs/mine.jsonl", here / data)
    words = ("gate", "--base", "main", "--head", "change", "-o", f"{KEY}={data}")
    plan = json.loads(skillgit(*words, "--dry-run", "--json", cwd=here).out)
    assert plan["facts"]["searchqa by"].startswith("the configuration of run newest (the newest run of this skill); ")
    done = attempt(*words, "--json", cwd=here)
    basis = json.loads(done.out)["skills"][0]["basis"]
    assert (basis["run"], basis["target"]) == ("newest", "offline reader")
    assert basis["rehearsal"] == "rehearsal, not language models"
    assert basis["data"] == f"6 train, 3 selection, 3 test, of tasks: {data}"
    for more in ((), ("--output", "-")):
        text = attempt(*words, *more, cwd=here).out
        for word in (
            "run newest",
            "offline reader",
            f"of tasks: {data}",
            "rehearsal, not language models",
            "skills/searchqa/SKILL.md of",
            "the newest run of this skill",
        ):
            assert word in text, (more, word)


@pytest.fixture
def repository(tmp_path_factory, tmp_path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


MEASURING = {
    "eval": ("eval", f"{RUN}/best"),
    "eval --against": ("eval", f"{RUN}/best", "--against", f"{RUN}/v0", "--split", "test"),
    "eval --config": ("eval", f"{RUN}/best", "--config", "demo", *QUICK),
    "eval --model": ("eval", f"{RUN}/v0", "--model", "offline/reader"),
    "verify": ("eval", "--fresh", f"{RUN}/best", "--sample", "3"),
    "ablate": ("ablate", f"{RUN}/best", "--rule", "1"),
    "revert --to --gate": ("revert", "--to", f"{RUN}/v0", "--gate"),
    "cherry-pick --rejected": ("cherry-pick", "--rejected", "--run", RUN),
}


@pytest.mark.parametrize("name", sampled(MEASURING, 2))
def test_every_measurement_names_run_or_configuration_target_and_data(repository, name):
    done = attempt(*MEASURING[name], cwd=repository)
    reason = f" (the run of {MEASURING[name][1]})" if name in {"eval", "eval --against", "eval --model"} else ""
    source = "demo; " if "--config" in MEASURING[name] else f"the configuration of run {RUN}{reason}; "
    line = f"{source}60 train, 20 selection, 8 test, of searchqa: the items that come with it; target offline reader"
    for stream in (done.out, done.err):
        assert line in stream, done
        assert "rehearsal, not language models" in stream


def test_a_note_says_by_which_configuration_and_on_which_data(repository):
    skillgit("eval", f"{RUN}/best", "-q", "--config", "demo", *QUICK, "--split", "test", cwd=repository)
    listed = git("notes", "--ref", "skillgit/evals", "list", cwd=repository).out.split()
    note = json.loads(git("cat-file", "blob", listed[0], cwd=repository).out.splitlines()[0])
    assert (note["config"], note["data"]) == (
        "demo",
        "60 train, 20 selection, 8 test, of searchqa: the items that come with it",
    )


@pytest.mark.parametrize(
    "words",
    sampled(
        [
            ("eval", "one/v0"),
            ("eval", "main"),
            ("eval", "--fresh", "--sample", "5", "one/v0"),
            ("ablate", "one/v0"),
            ("cherry-pick", "--rejected", "--run", "one"),
        ],
        3,
    ),
    ids=" ".join,
)
def test_the_samples_of_an_environment_stand_for_nobody_s_own_tasks(tmp_path, words):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: town\ndescription: Answer.\n---\n\n- Answer.\n")
    rows = [{"question": f"Mill {n} burned down in {1800 + n}. When?", "answer": str(1800 + n)} for n in range(12)]
    (folder / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    skillgit("init", "--skill", "SKILL.md", cwd=folder)
    data = ("-o", f"{KEY}=mine.jsonl", "-o", "train.num_epochs=1", "-o", "evaluation.eval_test=false")
    skillgit("train", "tasks/default", "--run", "one", "-q", *ONE_CANDIDATE, *data, cwd=folder)
    refused: Done = skillgit(*words, "--config", "tasks/default", cwd=folder, code=2)
    assert "tasks has no data, and town would be measured on the samples that come with it" in refused.err
    assert notes(folder) == ""
