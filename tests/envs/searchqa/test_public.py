"""The public SearchQA becomes a file that the environment reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.errors import DataError
from skillgit.plugin.environment import PublishedRow
from skillgit.plugin.registry import load_conversion
from skillgit_envs.searchqa import SearchQA, published, read_file

ROW = {"key": "k1", "question": "Which moon?", "context": "[DOC] Titan", "answers": ["Titan"], "labels": [{"end": [1]}]}


def convert(rows):
    return published(PublishedRow(file="a.parquet", number=n, fields=row) for n, row in enumerate(rows, start=1))


def test_rows_get_the_fields_of_items_and_lose_the_others():
    assert list(convert([ROW, {**ROW, "context": None}])) == [
        {"id": "k1", "question": "Which moon?", "context": "[DOC] Titan", "answers": ["Titan"]},
        {"id": "k1", "question": "Which moon?", "context": "", "answers": ["Titan"]},
    ]


@given(st.text(min_size=1).filter(str.strip), st.lists(st.text(min_size=1).filter(str.strip), min_size=1))
def test_what_is_written_is_read_back(tmp_path_factory, question, answers):
    path = tmp_path_factory.mktemp("rows") / "items.jsonl"
    (row,) = convert([{**ROW, "question": question, "answers": answers}])
    path.write_text(f"{json.dumps(row)}\n")
    (item,) = read_file(path)
    assert (item.id, item.content["question"], item.content["answers"]) == ("k1", question.strip(), answers)


@pytest.mark.parametrize("name", ["key", "question", "answers"])
def test_a_row_without_a_field_is_named(name):
    rows = convert([ROW, {key: value for key, value in ROW.items() if key != name}])
    next(rows)
    with pytest.raises(DataError, match=rf"row 2 of a\.parquet has no {name}; it has "):
        next(rows)


def test_the_source_is_pinned_to_a_commit_and_names_the_conversion():
    assert len(SearchQA.info.public.revision) == 40
    assert load_conversion(SearchQA.info.public.convert) is published
