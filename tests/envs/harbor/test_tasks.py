"""Folders of tasks as items."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from once import copy_folder

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit_envs.harbor import Harbor

TASKS = Path(__file__).with_name("tasks")


def harbor(**options) -> Harbor:
    return Harbor({"split_ratio": "2:2:1", **options}, Path())


def names(environment: Harbor) -> dict[str, list[str]]:
    return {split: [item.id for item in environment.items(split)] for split in Split}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return copy_folder(TASKS, tmp_path / "tasks")


def test_a_folder_of_tasks_is_divided_by_ratio_wherever_it_lies(tasks):
    split = names(harbor(data_path=str(tasks)))
    assert [len(part) for part in split.values()] == [2, 2, 1]
    assert split == names(harbor(data_path=str(TASKS)))
    item = harbor(data_path=str(tasks)).items(Split.TRAIN)[0]
    assert item.task_type == "slips"
    assert "/app/slip.txt" in item.content["instruction"]


def test_a_manifest_or_folders_may_divide_it(tasks, tmp_path):
    whole = ["rye-loaves", "brass-screws", "green-tea"]
    for split, name in zip(("train", "val", "test"), whole, strict=True):
        (tmp_path / "manifest" / split).mkdir(parents=True)
        (tmp_path / "manifest" / split / "ids.json").write_text(json.dumps([name]))
        copy_folder(tasks / name, tmp_path / "divided" / split / name)
    manifest = {"split_mode": "split_dir", "split_dir": str(tmp_path / "manifest"), "data_path": str(tasks)}
    assert [part for [part] in names(harbor(**manifest)).values()] == whole
    folders = {"split_mode": "split_dir", "split_dir": str(tmp_path / "divided")}
    assert [part for [part] in names(harbor(**folders)).values()] == whole


def test_a_task_is_identified_by_its_files(tasks):
    before = {item.id: item.digest for split in Split for item in harbor(data_path=str(tasks)).items(split)}
    (tasks / "green-tea" / "tests" / "test.sh").write_text("exit 1\n")
    (tasks / "roof-slates" / "solution" / "solve.sh").chmod(0o644)
    after = {item.id: item.digest for split in Split for item in harbor(data_path=str(tasks)).items(split)}
    assert {name for name in before if before[name] != after[name]} == {"green-tea", "roof-slates"}


def test_a_task_that_changes_while_a_run_goes_on_is_a_fault(tasks):
    environment = harbor(data_path=str(tasks))
    item = environment.items(Split.TRAIN)[0]
    (tasks / item.id / "instruction.md").write_text("Do something else.")
    with pytest.raises(EnvironmentFaultError, match="has changed"):
        environment.secrets(item)


def test_tests_and_solution_are_secret():
    environment = harbor(data_path=str(TASKS))
    secrets = environment.secrets(environment.items(Split.TRAIN)[0])
    assert len(secrets.checks) == 2
    assert any("tail -n 1" in text for text in secrets.checks)
    assert any("printf" in text for text in secrets.checks)


def test_all_faults_of_a_folder_are_told_at_once(tasks):
    (tasks / "green-tea" / "instruction.md").unlink()
    shutil.rmtree(tasks / "rye-loaves" / "tests")
    (tasks / "roof-slates" / "task.toml").write_text("= 1")
    with pytest.raises(DataError) as raised:
        harbor(data_path=str(tasks)).items(Split.TRAIN)
    text = "\n".join([raised.value.message, *(fault.message for fault in raised.value.faults)])
    assert "green-tea has no instruction.md" in text
    assert "rye-loaves has no tests/test.sh" in text
    assert "roof-slates cannot be read" in text


def test_without_tasks_it_says_where_they_come_from(tmp_path):
    with pytest.raises(ConfigError, match="brings no tasks"):
        harbor().items(Split.TRAIN)
    with pytest.raises(DataError, match="there are no tasks at"):
        harbor(data_path=str(tmp_path)).items(Split.TRAIN)
