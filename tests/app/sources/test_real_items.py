"""Folders of real benchmarks are read as they come."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from skillgit.app.sources.data_check import check_data
from skillgit.errors import ExitCode

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", ROOT.parent / "shared" / "data"))
MONTHS = DATA / "livemathematicianbench"

pytestmark = pytest.mark.skipif(
    not MONTHS.is_dir(), reason=f"no real data at {DATA}; SKILLGIT_REAL_DATA names its folder"
)


def test_the_months_of_livemathematicianbench_are_found_in_their_folders(empty):
    found = check_data(empty, "livemathematicianbench/default", (f"env.data_path={MONTHS}",))
    assert found.exit_code == ExitCode.OK
    assert sum(split.items for split in found.splits) == 39


def test_the_references_manifest_of_it_picks_items_by_id(empty):
    rows = {
        "train": [{"id": "202511:1", "month": "202511", "no": 1}],
        "val": [{"id": "202511:17", "month": "202511", "no": 17}],
        "test": [{"id": f"202511:{number}"} for number in (2, 3)],
    }
    for name, listed in rows.items():
        (empty.directory / "split" / name).mkdir(parents=True)
        (empty.directory / "split" / name / "items.json").write_text(json.dumps(listed))
    options = ("env.split_mode=split_dir", "env.split_dir=split", f"env.data_path={MONTHS}")
    found = check_data(empty, "livemathematicianbench/default", options)
    assert [(split.split.value, split.items) for split in found.splits] == [("train", 1), ("selection", 1), ("test", 2)]


def test_two_splits_of_a_real_release_that_hold_the_same_items_are_a_fault(empty):
    folder = DATA / "searchqa" / "hf_datasets_dummy"
    found = check_data(empty, "searchqa/default", ("env.split_mode=split_dir", f"env.split_dir={folder}"))
    assert found.exit_code == ExitCode.NO
    assert found.findings[0].sentence.startswith("ids occur in both the selection and the test split: ")
