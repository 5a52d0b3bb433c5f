from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skillgit.errors import DataError
from skillgit_envs.tasks import Tasks

if TYPE_CHECKING:
    from pathlib import Path

ONE, SAME = "Rename the column price to cost in sales.csv", "rename the columns price to cost in sales.csv, please"
OTHERS = ("Write a haiku about the sea", "How high is the tower by the lake?", "Sort these names by their length")


def tasks(folder: Path, *rows: dict[str, object], **options: object) -> Tasks:
    path = folder / "tasks.jsonl"
    path.write_text("".join(f"{json.dumps({'answer': 'x', **row})}\n" for row in rows))
    return Tasks({"data_path": path.name, "split_ratio": "1:1:1", **options}, folder)


def sides(environment: Tasks) -> dict[str, str]:
    return {item.id: split for split in ("train", "selection", "test") for item in environment.items(split)}


@pytest.mark.parametrize("mode", ["ratio", "stratified"])
def test_two_wordings_and_one_group_stand_on_one_side(tmp_path, mode):
    rows = [
        {"id": "a", "prompt": ONE, "group": "g1"},
        {"id": "b", "prompt": SAME},
        {"id": "c", "prompt": OTHERS[0], "group": "g1"},
        *({"id": f"o{number}", "prompt": text} for number, text in enumerate(OTHERS[1:])),
    ]
    for seed in range(8):
        division = sides(tasks(tmp_path, *rows, split_mode=mode, split_seed=seed))
        assert division["a"] == division["b"] == division["c"]
        assert {*division.values()} == {"train", "selection", "test"}


def test_a_split_that_rows_name_may_divide_no_group_and_no_two_wordings(tmp_path):
    rows = [
        {"id": name, "prompt": text, "split": split, "group": group}
        for name, text, split, group in zip(
            "abcd", (ONE, *OTHERS), ("train", "train", "val", "test"), ("g", "h", "g", "i"), strict=True
        )
    ]
    with pytest.raises(DataError, match="items of one group are in both the train and the selection split: a and c"):
        tasks(tmp_path, *rows).items("train")
    rows[2] |= {"group": "", "prompt": SAME}
    with pytest.raises(DataError, match="nearly the same is asked in both the train and the selection split: a ~ c"):
        tasks(tmp_path, *rows).items("train")
    rows[0]["group"] = ""  # nobody harvested either of them
    assert len(sides(tasks(tmp_path, *rows))) == 4


def test_a_manifest_and_folders_may_divide_none_either(tmp_path):
    rows = [{"id": "a", "prompt": ONE, "group": "g"}, {"id": "b", "prompt": OTHERS[0]}, {"id": "c", "prompt": SAME}]
    for split, row in zip(("train", "val", "test"), rows, strict=True):
        for name, text in (("ids", json.dumps([row["id"]])), ("rows", json.dumps({"answer": "x", **row}))):
            (tmp_path / name / split).mkdir(parents=True)
            (tmp_path / name / split / "items.json").write_text(text)
    given = {"split_mode": "split_dir", "split_dir": "ids"}
    for more, kept in ((given, rows), (given | {"split_dir": "rows", "data_path": ""}, [])):
        with pytest.raises(DataError, match="nearly the same is asked in both the train and the test split: a ~ c"):
            tasks(tmp_path, *kept, **more).items("train")


def test_a_context_that_all_have_makes_nothing_alike(tmp_path):
    context = "Hand in every file that you change, whole, in a block of code with its path behind the fence. " * 4
    rows = [{"id": f"o{n}", "prompt": text, "context": context, "group": f"g{n}"} for n, text in enumerate(OTHERS)]
    assert {*sides(tasks(tmp_path, *rows)).values()} == {"train", "selection", "test"}


def test_where_a_task_comes_from_is_no_part_of_it_and_no_program_sees_it(tmp_path):
    row = {"prompt": ONE, "check": {"type": "command", "command": "true"}, "id": "a"}
    origin = {"group": "g", "origin": {"agent": "claude"}, "reviewed": "2026-11-21", "status": "reviewed"}
    reader = tasks(tmp_path)
    plain, harvested = (reader.task("x", fields, tmp_path / "x.jsonl") for fields in (row, row | origin))
    assert (plain.digest, plain.group) == (harvested.digest, "")
    assert harvested.group == "g"
