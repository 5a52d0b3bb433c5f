"""Lists of ids that say which items of a data set train, select and test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.data_rows import read_each
from skillgit.plugin.splits import OPTIONS, Splits, load_splits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def read(files: Sequence[Path]) -> list[Item]:
    def items(row, path):
        del path
        if "question" not in row.fields:
            raise DataError(f"{row.where} has no question", hint="add one")
        yield Item(id=str(row.fields["id"]), content={"question": row.fields["question"]})

    return read_each(files, items)


def load(root: Path, **values: str) -> Splits:
    options = {option.name: option.default for option in OPTIONS} | {"split_mode": "split_dir", "split_dir": "split"}
    return load_splits(options | values, root, root, read)


def manifest(root: Path, *rows: object, names: Sequence[str] = ("train", "val", "test"), file: str = "items.json"):
    for name, listed in zip(names, rows, strict=True):
        (root / "split" / name).mkdir(parents=True)
        text = listed if isinstance(listed, str) else json.dumps(listed)
        (root / "split" / name / file).write_text(text)


def data(root: Path, *ids: object) -> None:
    (root / "all.json").write_text(json.dumps([{"id": name, "question": f"{name}?"} for name in ids]))


def names(splits: Splits) -> list[list[str]]:
    return [[item.id for item in splits[split]] for split in Split]


def test_items_are_picked_by_id_in_the_order_of_the_manifest(tmp_path):
    manifest(tmp_path, [{"id": "c"}, {"id": "a"}], [{"id": 7, "topic": "form", "image_path": "x.png"}], [{"uid": "d"}])
    data(tmp_path, "a", "b", "c", "d", 7)
    assert names(load(tmp_path, data_path="all.json")) == [["c", "a"], ["7"], ["d"]]


@pytest.mark.parametrize(
    ("file", "rows"),
    [
        ("ids.jsonl", ('{"id": "a"}', '{"id": "b"}', '{"id": "c"}\n{"id": "d"}\n')),
        ("ids.csv", ("id,topic\na,x\n", "id\nb\n", "id\nc\nd\n")),
        ("ids.json", (["a"], {"data": [{"id": "b"}]}, {"0": {"id": "c"}, "1": {"id": "d"}})),
    ],
)
def test_a_manifest_may_have_any_form_of_data_files(tmp_path, file, rows):
    manifest(tmp_path, *rows, file=file, names=("train", "valid_seen", "valid_unseen"))
    data(tmp_path, "d", "c", "b", "a")
    assert names(load(tmp_path, data_path="all.json")) == [["a"], ["b"], ["c", "d"]]


def test_ids_that_the_data_have_not_are_counted_and_the_first_ones_named(tmp_path):
    manifest(tmp_path, [f"x{number}" for number in range(9)] + ["a"], ["b"], ["y"])
    data(tmp_path, "a", "b")
    with pytest.raises(DataError) as failure:
        load(tmp_path, data_path="all.json")
    train, test = [fault.message for fault in failure.value.faults]
    assert train.startswith(
        f"9 of 10 ids of the train split are not in {tmp_path / 'all.json'}: x0, x1, x2, x3, x4 and"
    )
    assert test.startswith("1 of 1 ids of the test split")


def test_an_id_that_stands_for_two_items_of_the_data_is_refused_only_where_it_is_named(tmp_path):
    rows = [{"id": "a", "question": "1?"}, {"id": "a", "question": "2?"}, *({"id": n, "question": n} for n in "bcd")]
    (tmp_path / "all.json").write_text(json.dumps(rows))
    manifest(tmp_path, ["d"], ["b"], ["c"])
    assert names(load(tmp_path, data_path="all.json")) == [["d"], ["b"], ["c"]]
    (tmp_path / "split" / "train" / "items.json").write_text('["a"]')
    with pytest.raises(DataError, match=r"ids of the train split stand for several items in .*: a"):
        load(tmp_path, data_path="all.json")


def test_an_id_that_a_manifest_names_twice_is_refused(tmp_path):
    manifest(tmp_path, ["a", "b"], ["b"], ["c"])
    data(tmp_path, "a", "b", "c")
    with pytest.raises(DataError, match="ids occur in both the train and the selection split: b"):
        load(tmp_path, data_path="all.json")


@pytest.mark.parametrize("row", [{"name": "a"}, None, True, [], "  ", {"id": ["a"]}])
def test_a_row_without_an_id_is_named(tmp_path, row):
    manifest(tmp_path, ["a", row], ["b"], ["c"])
    data(tmp_path, "a", "b", "c")
    with pytest.raises(DataError, match=r"items\.json, item 2 has no id"):
        load(tmp_path, data_path="all.json")


def test_a_manifest_without_data_says_what_is_missing(tmp_path):
    manifest(tmp_path, [{"id": "a"}], [{"id": "b"}], ["c"])
    with pytest.raises(DataError, match="split is a manifest: it has ids, and no items") as failure:
        load(tmp_path)
    assert "env.data_path" in failure.value.hint


def test_data_with_a_fault_are_not_taken_for_a_manifest(tmp_path):
    manifest(tmp_path, [{"id": "a", "questoin": "?"}], ["b"], ["c"])
    with pytest.raises(DataError, match="has no question"):
        load(tmp_path)
