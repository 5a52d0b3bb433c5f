from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cli_sample as sample
import pytest

from skillgit.app.deliver.export.folder import CheckedOut
from skillgit.app.setup.config.files import ValueOrigin
from skillgit.app.setup.config.resolved import ConfigEntry
from skillgit.app.train.starting_point import Initialised
from skillgit.app.upkeep.fsck import Checked
from skillgit.domain.finding import REPAIR, Finding
from skillgit.errors import ExitCode

MADE = Initialised(
    following="skillgit train searchqa/default",
    path=Path("/home/user/skills"),
    skill_path=sample.SKILL,
    commit=sample.oid("34edc63"),
    created=True,
    added=True,
    branch="main",
)
CONFIG = SimpleNamespace(
    name="demo",
    path=Path("/home/user/demo.yaml"),
    digest="c0ffee",
    notes=("demo.yaml:3: env.out_root has no effect",),
    entries=(
        ConfigEntry(
            key="train.num_epochs", value=4, origin=ValueOrigin(kind="override", where="-o train.num_epochs=4")
        ),
        ConfigEntry(key="env.name", value="searchqa", origin=ValueOrigin(kind="file", where="demo.yaml:7")),
        ConfigEntry(key="model.prices", value={}, origin=ValueOrigin(kind="default")),
        ConfigEntry(key="budget.max_usd", value=None, origin=ValueOrigin(kind="default")),
    ),
)


def test_init_names_what_is_there_and_what_comes_next(skillgit, fake):
    calls = fake("train.starting_point.init", MADE)
    ended = skillgit("init", "new", "--skill", "SKILL.md", "--env", "searchqa")
    assert calls == [(Path("new"), Path("SKILL.md"), {"environment": "searchqa"})]
    assert ended.text == (
        "created /home/user/skills, seed skills/searchqa on main · 34edc63\nnext: skillgit train searchqa/default\n"
    )
    assert not ended.err


def test_init_of_a_repository_that_has_the_skill_says_so(skillgit, fake):
    fake("train.starting_point.init", replace(MADE, created=False, added=False))
    assert skillgit("init").text.startswith("prepared /home/user/skills, skills/searchqa was already on main")


def test_init_as_json(skillgit, fake):
    fake("train.starting_point.init", MADE)
    document = json.loads(skillgit("init", "--json").out)
    assert (document["schema"], document["commit"]) == ("skillgit.init/1", sample.oid("34edc63"))


def test_use_names_the_run_and_what_comes_next(skillgit, fake):
    calls = fake("workspace.workspace.use", sample.DONE)
    assert skillgit("use", "searchqa-20261119").text == (
        "default run is now searchqa-20261119-p0qx, best v5 .7000; next: skillgit log\n"
    )
    assert calls == [("searchqa-20261119",)]


def test_checkout_names_the_version_and_the_way_back(skillgit, fake):
    found = CheckedOut(row=sample.V7, commit=sample.V7.commit, files=("SKILL.md",), back="main")
    calls = fake("deliver.export.folder.checkout", found)
    assert skillgit("checkout", "v7").text == (
        f"work tree holds v7 of {sample.RUN}, 1 file written; back: git switch main\n"
    )
    assert skillgit("checkout", "v7", "--", "--odd-name", "b").text == (
        f"1 file written from v7 of {sample.RUN}; see: git diff\n"
    )
    assert calls == [("v7", ()), ("v7", ("--odd-name", "b"))]


def test_checkout_of_a_commit_that_is_no_event_and_of_a_branch(skillgit, fake):
    found = CheckedOut(row=None, commit=sample.oid("abcdef1"), files=("a", "b"))
    fake("deliver.export.folder.checkout", found)
    assert skillgit("checkout", "HEAD~1").text == "work tree holds abcdef1, 2 files written\n"
    fake("deliver.export.folder.checkout", replace(found, branch="main"))
    assert skillgit("checkout", "main").text == "work tree is on branch main, 2 files written\n"


@pytest.mark.parametrize("problems", [(), (Finding(run="x", commit="", sentence="it is", hint=REPAIR),)])
def test_fsck_exits_with_1_if_there_are_problems(problems, skillgit, fake):
    calls = fake("upkeep.fsck.fsck", Checked(runs=1, commits=1, problems=problems))
    assert skillgit("fsck", "x", "--deep").code == (ExitCode.NO if problems else ExitCode.OK)
    assert calls == [("x", {"deep": True, "repair": False})]


def test_fsck_without_problems_says_what_it_looked_at(skillgit, fake):
    fake("upkeep.fsck.fsck", Checked(runs=1, commits=23, problems=()))
    assert skillgit("fsck").text == "checked 1 run, 23 events: no problems\n"


def test_config_lines_can_be_given_to_train(skillgit, fake):
    calls = fake("setup.skill_tasks.load_for_skill", CONFIG)
    ended = skillgit("config", "demo", "-o", "train.num_epochs=4")
    assert ended.text == "train.num_epochs=4\nenv.name=searchqa\nmodel.prices={}\nbudget.max_usd=null\n"
    assert ended.err == "demo.yaml:3: env.out_root has no effect\n"
    assert calls == [("demo", ("train.num_epochs=4",))]


def test_config_shows_where_values_come_from(skillgit, fake):
    fake("setup.skill_tasks.load_for_skill", CONFIG)
    assert skillgit("config", "demo", "--show-origin").text == (
        "-o train.num_epochs=4  train.num_epochs=4\n"
        "demo.yaml:7            env.name=searchqa\n"
        "default                model.prices={}\n"
        "default                budget.max_usd=null\n"
    )


def test_config_for_machines(skillgit, fake):
    fake("setup.skill_tasks.load_for_skill", CONFIG)
    document = json.loads(skillgit("config", "demo", "--json").out)
    assert document["schema"] == "skillgit.config/1"
    assert document["settings"][0] == {"key": "train.num_epochs", "value": 4, "origin": "-o train.num_epochs=4"}
    assert skillgit("config", "demo", "--plain").text.splitlines()[1] == "env.name\tsearchqa\tdemo.yaml:7"
