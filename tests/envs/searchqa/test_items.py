from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Split
from skillgit.errors import DataError
from skillgit_envs.searchqa import SearchQA, read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.trajectory import Item


def load(root: Path, **options: str) -> dict[Split, Sequence[Item]]:
    environment = SearchQA(options, root)
    return {split: environment.items(split) for split in Split}


def rows(*ids: str) -> str:
    return json.dumps([{"id": identity, "question": f"{identity}?", "answers": ["y"]} for identity in ids])


def test_a_folder_holds_one_file(tmp_path: Path):
    for split in ("train", "val", "test"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "items.json").write_text(rows(split))
    splits = load(tmp_path, split_mode="split_dir", split_dir=str(tmp_path))
    assert [item.id for item in splits[Split.SELECTION]] == ["val"]
    (tmp_path / "val" / "more.json").write_text(rows("other"))
    with pytest.raises(DataError, match=r"val has 2 data files and items\.json is not a single crawled item"):
        load(tmp_path, split_mode="split_dir", split_dir=str(tmp_path))


def test_one_file_is_divided_by_ratio(tmp_path: Path):
    (tmp_path / "all.json").write_text(rows(*(f"i{number}" for number in range(20))))
    splits = load(tmp_path, data_path="all.json")
    assert [len(splits[split]) for split in Split] == [4, 2, 14]


def test_shipped_data_have_the_published_shape():
    for item in chain.from_iterable(load(Path()).values()):
        assert str(item.content["context"]).startswith("[DOC] [TLE] ")
        assert item.content["answers"]


def test_real_rows(real: Path, tmp_path: Path):
    items = read_file(real / "skillopt_split_format" / "items.json")
    assert len(items) == 7
    assert [item.content["context"] == "" for item in items].count(True) == 2
    answers = {answer for item in items for answer in item.content["answers"]}
    assert {'"Seasons In The Sun"', "Grauman\\'s Chinese Theater"} <= answers
    with pytest.raises(DataError, match="7 items are too few"):
        load(tmp_path, data_path=str(real / "skillopt_split_format"), split_ratio="1:1:20")
    splits = load(tmp_path, data_path=str(real / "skillopt_split_format"))
    assert [len(splits[split]) for split in Split] == [1, 1, 5]


def test_real_mrqa(real: Path):
    (item,) = read_file(real / "mrqa_format" / "SearchQA.dev.dummy.jsonl")
    assert item.id == "e7528ab96f1a4351bdff5a095bff1b35"
    assert item.content["answers"] == ["Rocky"]


def test_real_mrqa_is_the_same_without_the_list_of_answers(real: Path, tmp_path: Path):
    header, paragraph = (real / "mrqa_format" / "SearchQA.dev.dummy.jsonl").read_text().splitlines()[:2]
    stripped = json.loads(paragraph)
    for question in stripped["qas"]:
        del question["answers"]
    (tmp_path / "dev.jsonl").write_text(f"{header}\n{json.dumps(stripped)}\n")
    (item,) = read_file(tmp_path / "dev.jsonl")
    assert item.content["answers"] == ["Rocky"]


def test_a_real_crawl_whose_splits_leak_is_refused(real: Path, tmp_path: Path):
    crawl = real / "hf_datasets_dummy"
    with pytest.raises(DataError, match="ids occur in both the selection and the test split: 000528"):
        load(tmp_path, split_mode="split_dir", split_dir=str(crawl))
    loose = [item for path in sorted(crawl.glob("*.json")) for item in read_file(path)]
    assert [item.content["answers"] for item in loose] == [["Samos"], ["Matthew Broderick"]]
    assert all(str(item.content["context"]).count("[DOC]") > 20 for item in loose)
