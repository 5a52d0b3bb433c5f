from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skillgit.errors import DataError
from skillgit_envs.searchqa import is_single_crawl, read_file

if TYPE_CHECKING:
    from pathlib import Path

ROW = {"id": "a", "question": "Who?", "context": "[DOC] x", "answers": ["y", "z"]}
MRQA = [
    {"header": {"dataset": "SearchQA", "split": "dev"}},
    {"id": "1", "context": "[DOC] x", "qas": [{"qid": "q1", "question": "Who?", "answers": ["y", "z"]}]},
]
CRAWL = {
    "id": 19,
    "question": "Who?",
    "answer": "y",
    "category": "C",
    "search_results": [
        {"title": "t", "snippet": "s", "url": "u", "related_links": None},
        {"title": None, "snippet": "s2"},
        {"title": "empty", "snippet": None},
    ],
}


def put(tmp_path: Path, value: object, name: str = "items.json") -> Path:
    path = tmp_path / name
    lines = [json.dumps(row) for row in value] if name.endswith("jsonl") else [json.dumps(value)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("value", [[ROW], {"data": [ROW]}, {"a": ROW}, ROW, {"a": {**ROW, "id": None}}])
def test_rows_are_read_from_every_json_shape(tmp_path: Path, value: object):
    (item,) = read_file(put(tmp_path, value))
    assert item.id == "a"
    assert item.content == {"question": "Who?", "context": "[DOC] x", "answers": ["y", "z"]}
    assert item.task_type == "default"


def test_lines_are_read_whatever_the_file_is_called(tmp_path: Path):
    rows = [ROW, {**ROW, "id": 7, "task_type": "person"}]
    for name in ("items.jsonl", "lines.json"):
        path = tmp_path / name
        path.write_text("\ufeff" + "\n\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
        assert [(item.id, item.task_type) for item in read_file(path)] == [("a", "default"), ("7", "person")]
    assert [item.id for item in read_file(put(tmp_path, [ROW], "one.jsonl"))] == ["a"], "one line is one row"


def test_the_same_question_is_the_same_item_in_every_format(tmp_path: Path):
    (row,) = read_file(put(tmp_path, [ROW]))
    (mrqa,) = read_file(put(tmp_path, MRQA, "dev.jsonl"))
    assert mrqa.id == "q1"
    assert mrqa.digest == row.digest
    (text,) = read_file(put(tmp_path, [{"key": "k", "question": "Who?", "answers": "yes"}]))
    assert (text.id, text.content) == ("k", {"question": "Who?", "context": "", "answers": ["yes"]})


def test_a_paragraph_may_have_several_questions(tmp_path: Path):
    question = {"question": "Who?", "answers": ["y"]}
    paragraph = {"context": "c", "qas": [{**question, "qid": "q1"}, {**question, "id": "q2"}]}
    assert [item.id for item in read_file(put(tmp_path, [paragraph], "dev.jsonl"))] == ["q1", "q2"]


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        ({"answers": "y"}, ["y"]),
        ({"answer": "y"}, ["y"]),
        ({"answers": {"text": ["y", "z"], "answer_start": [0, 1]}}, ["y", "z"]),
        ({"answers": [1912, "1912"]}, ["1912", "1912"]),
        ({"answers": 0}, ["0"]),
        ({"answers": ['"Quoted"', "It\\'s"]}, ['"Quoted"', "It\\'s"]),
        ({"detected_answers": [{"text": "y"}, {"text": "z"}, {"text": "y"}]}, ["y", "z"]),
        ({"answers": [], "detected_answers": [{"text": "y"}]}, ["y"]),
        ({"answers": ["x"], "detected_answers": [{"text": "y"}]}, ["x"]),
    ],
)
def test_answers_are_read_however_they_are_written(tmp_path: Path, fields: dict[str, object], answers: list[str]):
    row = {"id": "a", "question": "Who?", **fields}
    assert read_file(put(tmp_path, [row]))[0].content["answers"] == answers
    paragraph = {"context": "c", "qas": [{"qid": "q", "question": "Who?", **fields}]}
    assert read_file(put(tmp_path, [paragraph], "dev.jsonl"))[0].content["answers"] == answers


def test_a_crawled_item_gets_the_context_that_was_published(tmp_path: Path):
    path = put(tmp_path, CRAWL, "000019-4680_x.json")
    (item,) = read_file(path)
    assert item.id == "000019-4680_x"
    assert item.content["context"] == "[DOC] [TLE] t [PAR] s [DOC] [TLE]  [PAR] s2"
    assert item.content["answers"] == ["y"]
    assert is_single_crawl(path)
    assert not is_single_crawl(put(tmp_path, [ROW]))
    assert [one.id for one in read_file(put(tmp_path, [CRAWL]))] == ["19"]


def test_a_context_that_is_null_or_absent_is_empty(tmp_path: Path):
    rows = [{**ROW, "context": None}, {"id": "b", "question": "Q", "answers": ["y"]}]
    assert [item.content["context"] for item in read_file(put(tmp_path, rows))] == ["", ""]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "a"}, "has no question"),
        ({**ROW, "question": " "}, "has an empty question"),
        ({**ROW, "question": ["Who?"]}, "has an empty question"),
        ({"question": "Who?", "answers": ["y"]}, "has no id"),
        ({**ROW, "id": "a b"}, "item id 'a b' is not usable"),
        ({**ROW, "id": "../x"}, "names a path outside"),
        ({"id": "a", "question": "Who?"}, "has no answers"),
        ({**ROW, "answers": []}, "has no answer that is not empty"),
        ({**ROW, "answers": ["", " "]}, "has no answer that is not empty"),
        ({**ROW, "answers": [1.5]}, "has no answers"),
        ({**ROW, "answers": [True]}, "has no answers"),
        ({**ROW, "answers": {"texts": ["y"]}}, "has no answers"),
        ({**ROW, "answers": None, "detected_answers": ["y"]}, "has a 'detected_answers' that is not a list of objects"),
        ({**ROW, "context": ["x"]}, "has a context that is not text"),
        ({"context": "c", "qas": "q"}, "has a 'qas' that is not a list of objects"),
        ({"question": "q", "answer": "y", "search_results": [1]}, "has a 'search_results' that is not a list"),
        ("text", "is not an object"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_with_its_place(tmp_path: Path, row: object, message: str):
    with pytest.raises(DataError, match=r"items\.json, item 2\b.*" + message):
        read_file(put(tmp_path, [{**ROW, "id": "first"}, row]))


def test_a_list_of_ids_is_told_what_it_is(tmp_path: Path):
    with pytest.raises(DataError) as caught:
        read_file(put(tmp_path, [{"id": "a"}]))
    assert "a list of ids" in caught.value.hint


def test_a_file_that_is_not_json_is_named_with_its_line(tmp_path: Path):
    (tmp_path / "a.json").write_text('[\n{"id": 1,}\n]')
    with pytest.raises(DataError, match=r"a\.json:2 is not JSON"):
        read_file(tmp_path / "a.json")
    (tmp_path / "b.jsonl").write_text(json.dumps(ROW) + "\nnot json\n")
    with pytest.raises(DataError, match=r"b\.jsonl:2 is not JSON"):
        read_file(tmp_path / "b.jsonl")
    (tmp_path / "c.json").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_file(tmp_path / "c.json")
