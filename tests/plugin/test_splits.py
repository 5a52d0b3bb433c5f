from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.splits import (
    OPTIONS,
    check,
    data_files,
    divide,
    divide_each_type,
    load_splits,
    parse_ratio,
    read_folders,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path


def item(identity: str, content: str | None = None) -> Item:
    return Item(id=identity, content={"text": identity if content is None else content})


def read(files: Sequence[Path]) -> list[Item]:
    return [item(identity) for path in files for identity in json.loads(path.read_text())]


def folder(place: Path, **splits: list[str]) -> Path:
    for name, ids in splits.items():
        (place / name).mkdir(parents=True)
        (place / name / "items.json").write_text(json.dumps(ids))
    return place


def options(**values: str | int) -> dict[str, str | float | bool]:
    return {option.name: option.default for option in OPTIONS} | values


def ids(splits: dict[Split, tuple[Item, ...]]) -> dict[str, list[str]]:
    return {split.value: [one.id for one in items] for split, items in splits.items()}


@given(st.integers(3, 200), st.tuples(*[st.integers(1, 9)] * 3), st.integers())
def test_a_division_keeps_every_item_and_comes_near_the_ratio(count: int, ratio: tuple[int, int, int], seed: int):
    items = [item(f"i{number}") for number in range(count)]
    text = ":".join(map(str, ratio))
    try:
        splits = divide(items, text, seed)
    except DataError:
        assert min(count * weight / sum(ratio) for weight in ratio) < 1
        return
    assert sorted(one.id for part in splits.values() for one in part) == sorted(one.id for one in items)
    for split, weight in zip(Split, ratio, strict=True):
        assert abs(len(splits[split]) - count * weight / sum(ratio)) < 1


@given(st.randoms(use_true_random=False))
def test_a_division_does_not_depend_on_the_order_of_the_items(chance: random.Random):
    items = [item(f"i{number}") for number in range(20)]
    shuffled = list(items)
    chance.shuffle(shuffled)
    assert divide(shuffled, "2:1:7", 42) == divide(items, "2:1:7", 42)


def test_another_seed_divides_otherwise_and_the_same_one_for_ever():
    items = [item(f"i{number}") for number in range(10)]
    assert divide(items, "2:1:7", 1) != divide(items, "2:1:7", 2)
    assert ids(divide(items, "2:1:7", 42)) == {
        "train": ["i5", "i8"],
        "selection": ["i3"],
        "test": ["i4", "i0", "i9", "i7", "i1", "i2", "i6"],
    }


def test_of_equal_remainders_the_larger_share_wins():
    counts = {split: len(part) for split, part in divide([item(f"i{n}") for n in range(5)], "1:2:1", 0).items()}
    assert counts == {Split.TRAIN: 1, Split.SELECTION: 3, Split.TEST: 1}


def test_too_few_items_are_refused_with_the_split_that_would_be_empty():
    with pytest.raises(DataError, match="5 items are too few for the ratio 2:1:7: the selection split would be empty"):
        divide([item(f"i{number}") for number in range(5)], "2:1:7", 42)


@pytest.mark.parametrize("ratio", ["", "2:1", "2:1:0", "a:b:c", "2:1:7:1", "-1:1:1", "2.5:1:1", "²:1:1"])
def test_a_ratio_is_three_positive_numbers(ratio: str):
    with pytest.raises(ConfigError, match="three positive whole numbers"):
        parse_ratio(ratio)


def test_an_id_may_occur_once():
    with pytest.raises(DataError, match="ids occur more than once in the train split: a"):
        check({Split.TRAIN: [item("a"), item("a")], Split.SELECTION: [item("b")], Split.TEST: [item("c")]})
    with pytest.raises(DataError, match="ids occur in both the train and the test split: a"):
        check({Split.TRAIN: [item("a", "x")], Split.SELECTION: [item("b")], Split.TEST: [item("a", "y")]})


def test_no_content_stands_in_two_splits_under_other_ids():
    with pytest.raises(DataError, match="the same content is in both the selection and the test split: b = c"):
        check({Split.TRAIN: [item("a")], Split.SELECTION: [item("b", "x")], Split.TEST: [item("c", "x")]})


def test_many_repetitions_are_counted_and_some_named():
    many = [item(f"i{number}") for number in range(9)]
    with pytest.raises(DataError, match=r"ids .*: i0, i1, i2, i3, i4 and 4 more"):
        check({Split.TRAIN: many, Split.SELECTION: many, Split.TEST: [item("z")]})


def test_a_split_without_items_is_refused():
    with pytest.raises(DataError, match="the selection split has no items"):
        check({Split.TRAIN: [item("a")], Split.SELECTION: [], Split.TEST: [item("c")]})


@pytest.mark.parametrize(
    "names", [("train", "val", "test"), ("train", "selection", "test"), ("Train", "valid_seen", "valid_unseen")]
)
def test_folders_are_found_under_all_their_names(tmp_path: Path, names: tuple[str, str, str]):
    folder(tmp_path, **dict(zip(names, (["a"], ["b"], ["c"]), strict=True)))
    (tmp_path / "images").mkdir()
    assert ids(read_folders(tmp_path, read)) == {"train": ["a"], "selection": ["b"], "test": ["c"]}


def test_a_missing_and_a_double_folder_are_refused(tmp_path: Path):
    with pytest.raises(DataError, match="has no folder for: selection, test"):
        read_folders(folder(tmp_path / "one", train=["a"]), read)
    with pytest.raises(DataError, match="two folders for the selection split: selection and val"):
        read_folders(folder(tmp_path / "two", train=["a"], val=["b"], selection=["c"], test=["d"]), read)
    with pytest.raises(DataError, match="there is no folder"):
        read_folders(tmp_path / "three", read)


def test_data_files_are_json_in_the_order_of_their_names(tmp_path: Path):
    for name in ("b.json", "a.jsonl", "notes.md"):
        (tmp_path / name).write_text("[]")
    assert [path.name for path in data_files(tmp_path)] == ["a.jsonl", "b.json"]
    assert data_files(tmp_path / "b.json") == (tmp_path / "b.json",)
    with pytest.raises(DataError, match="there is no data at"):
        data_files(tmp_path / "c.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DataError, match=r"pipe\.json is a pipe, a socket or a device"):
        data_files(tmp_path / "pipe.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no \*\.json, \*\.jsonl or \*\.csv file"):
        data_files(tmp_path / "empty")


def test_files_of_subfolders_are_taken_by_path_where_the_folder_itself_has_none(tmp_path: Path):
    for name in ("202512/qa.json", "202511/qa.json", "202511/more/qa.csv", ".cache/qa.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[]")
    names = [path.relative_to(tmp_path).as_posix() for path in data_files(tmp_path)]
    assert names == ["202511/more/qa.csv", "202511/qa.json", "202512/qa.json"]
    (tmp_path / "all.json").write_text("[]")
    assert data_files(tmp_path) == (tmp_path / "all.json",)


def test_a_split_may_be_a_file_of_its_name(tmp_path: Path):
    for name, identity in (
        ("train.json", "a"),
        ("valid_seen.json", "b"),
        ("test.json", "c"),
        ("split_manifest.json", "d"),
    ):
        (tmp_path / name).write_text(json.dumps([identity]))
    assert ids(read_folders(tmp_path, read)) == {"train": ["a"], "selection": ["b"], "test": ["c"]}
    folder(tmp_path, val=["b"])
    with pytest.raises(DataError, match=r"has two folders for the selection split: val and valid_seen\.json"):
        read_folders(tmp_path, read)


def test_the_faults_of_all_folders_are_told_at_once(tmp_path: Path):
    def broken(files: Sequence[Path]) -> list[Item]:
        raise DataError(f"{files[0].parent.name} is broken", hint="mend it")

    folder(tmp_path, train=["a"], val=["b"], test=["c"])
    with pytest.raises(DataError, match="train is broken; and 2 more faults") as failure:
        read_folders(tmp_path, broken)
    assert [fault.message for fault in failure.value.faults] == [
        "train is broken",
        "val is broken",
        "test is broken",
    ]


def test_everything_that_spoils_the_splits_is_told_at_once():
    with pytest.raises(DataError, match="the test split has no items; and 2 more faults") as failure:
        check({Split.TRAIN: [item("a", "x"), item("a", "y")], Split.SELECTION: [item("a", "z")]})
    assert [fault.message for fault in failure.value.faults[1:]] == [
        "ids occur more than once in the train split: a",
        "ids occur in both the train and the selection split: a",
    ]


def test_the_options_say_where_the_items_come_from(tmp_path: Path):
    shipped = folder(tmp_path / "shipped", train=["s1"], val=["s2"], test=["s3"])
    folder(tmp_path / "mine", train=["m1"], val=["m2"], test=["m3"])
    (tmp_path / "all.json").write_text(json.dumps([f"i{number}" for number in range(10)]))
    for chosen, train in (
        (options(), ["s1"]),
        (options(split_mode="split_dir"), ["s1"]),
        (options(split_mode="split_dir", split_dir="mine"), ["m1"]),
        (options(data_path="all.json"), ["i5", "i8"]),
        (options(data_path="all.json", split_dir="mine"), ["i5", "i8"]),
        (options(data_path=str(tmp_path / "all.json"), limit=1), ["i5"]),
    ):
        assert ids(load_splits(chosen, tmp_path, shipped, read))["train"] == train


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"split_dir": "x"}, "env.split_dir is set though env.split_mode is ratio"),
        ({"split_mode": "split_dir", "data_path": "x"}, "env.data_path is set though env.split_mode is split_dir"),
        ({"split_mode": "both"}, "it must be ratio, stratified or split_dir"),
        ({"limit": -1}, "env.limit is -1"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tmp_path: Path, values: dict[str, str | int], message: str):
    with pytest.raises(ConfigError, match=message):
        load_splits(options(**values), tmp_path, tmp_path, read)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=1), st.integers(0, 9))
def test_every_task_type_is_divided_and_nothing_is_lost(sizes: dict[str, int], seed: int):
    names = [(kind, number) for kind, size in sizes.items() for number in range(size)]
    items = [Item(id=f"{kind}-{number}", content={"n": f"{kind}{number}"}, task_type=kind) for kind, number in names]
    splits = divide_each_type(items, "2:1:7", seed)
    assert sorted(item.id for part in splits.values() for item in part) == sorted(item.id for item in items)
    counts = {split: Counter(item.task_type for item in splits[split]) for split in Split}
    for kind, size in sizes.items():
        train, selection, test = (counts[split][kind] for split in Split)
        assert (train, selection, test) == (
            (max(1, round(size / 5)), max(1, round(size / 10)), test) if size > 2 else (size - 1, 0, 1)
        )
    assert divide_each_type(items[::-1], "2:1:7", seed) == splits
