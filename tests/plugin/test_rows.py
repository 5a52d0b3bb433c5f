"""Data files in every shape that people keep them in."""

from __future__ import annotations

import csv
import io
import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.data_rows import Row, read_each, read_rows, text_field, text_or_blanks

if TYPE_CHECKING:
    from pathlib import Path

ROW = {"id": "a", "question": "?"}
LONG = "x" * 100_000
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def values(path: Path, text: str) -> list[object]:
    path.write_text(text, encoding="utf-8", newline="")
    return [row.value for row in read_rows(path)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ([ROW, ROW], ["", ""]),
        ({"data": [ROW, ROW]}, ["", ""]),
        ({"one": ROW, "two": ROW}, ["one", "two"]),
        (ROW, ["file"]),
    ],
)
def test_json_is_read_in_each_of_its_shapes(tmp_path: Path, text: object, names: list[str]):
    path = tmp_path / "file.json"
    path.write_text(json.dumps(text))
    assert [(row.value, row.name) for row in read_rows(path)] == [(ROW, name) for name in names]


def test_one_line_of_json_lines_is_one_row_and_not_its_values(tmp_path: Path):
    nested = {"id": "a", "content": {"x": 1}}
    assert values(tmp_path / "one.jsonl", json.dumps(nested)) == [nested]


def test_json_lines_are_read_under_the_name_of_json_too(tmp_path: Path):
    assert values(tmp_path / "lines.json", f"{json.dumps(ROW)}\n\n{json.dumps(ROW)}\n") == [ROW, ROW]


@given(st.lists(st.fixed_dictionaries({"question": CELLS.filter(bool), "answers": CELLS}), min_size=1, max_size=5))
def test_csv_gives_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]]):
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, ["question", "answers"], quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    assert values(tmp_path_factory.mktemp("rows") / "rows.csv", written.getvalue()) == rows


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rows.jsonl", '{"a": 1}\n{oops\n', r"rows\.jsonl:2 is not JSON"),
        ("rows.json", '{"a": 1,}', r"rows\.json:1 is not JSON"),
        ("rows.csv", "a,b\n1\n", r"rows\.csv:2 has not as many cells as there are columns"),
        ("rows.csv", "a,b\n1,2,3\n", r"rows\.csv:2 has not as many cells"),
        ("rows.csv", "a,b,a,c,b\n1,2,3,4,5\n", r"rows\.csv:1 names columns twice: 'a', 'b'$"),
        ("rows.csv", 'a,b\n1,"2', r"rows\.csv:\d is not CSV: unexpected end"),
    ],
)
def test_what_is_no_data_file_is_named_with_its_line(tmp_path: Path, name: str, text: str, said: str):
    with pytest.raises(DataError, match=said):
        values(tmp_path / name, text)


def test_a_cell_of_csv_may_be_long(tmp_path: Path):
    cell = "a " * 200_000
    limit = csv.field_size_limit()
    assert values(tmp_path / "rows.csv", f"question,answer\n{cell},b\n") == [{"question": cell, "answer": "b"}]
    assert csv.field_size_limit() == limit


def test_every_broken_row_of_csv_is_told(tmp_path: Path):
    with pytest.raises(DataError) as failure:
        values(tmp_path / "rows.csv", 'a,b\n1,2,3\n1\n1,2\n1,2,3\n1,"2')
    told = [fault.message.rpartition("rows.csv:")[2] for fault in failure.value.faults]
    assert [sentence.partition(" ")[0] for sentence in told[:3]] == ["2", "3", "5"]
    assert "is not CSV" in told[3]


def test_a_file_that_is_not_there_and_one_that_is_not_text_are_sentences(tmp_path: Path):
    with pytest.raises(DataError, match="cannot be read"):
        read_rows(tmp_path / "absent.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_rows(tmp_path / "bytes.json")


@pytest.mark.parametrize("odd", ["fifo", "endless", "folder"])
def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, odd: str):
    path = tmp_path / "rows.jsonl"
    match odd:
        case "fifo":
            os.mkfifo(path)
        case "endless":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    with pytest.raises(DataError, match=r"rows\.jsonl"):
        read_rows(path)


def test_a_row_that_is_no_object_says_where_it_stands(tmp_path: Path):
    path = tmp_path / "list.json"
    path.write_text("[1]")
    with pytest.raises(DataError, match=r"list\.json, item 1 is not an object"):
        _ = read_rows(path)[0].fields


def test_every_fault_of_every_file_is_told(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id"\n[]\n{\n')
    (tmp_path / "b.json").write_text('[{"id": 2}, {"id": "x"}, {"id": 3}, "y"]')

    def numbers(row: Row, path: Path) -> list[int]:
        number = row.fields["id"]
        if not isinstance(number, int):
            raise DataError(f"{row.where}: '{number}' of {path.name} is no number", hint="write digits")
        return [number]

    with pytest.raises(DataError) as failure:
        read_each([tmp_path / "a.jsonl", tmp_path / "b.json", tmp_path / "c.json"], numbers)
    assert [fault.message.removeprefix(f"{tmp_path}/").partition(": ")[0] for fault in failure.value.faults] == [
        "a.jsonl:2 is not JSON",
        "a.jsonl:4 is not JSON",
        "b.json, item 2",
        "b.json, item 4 is not an object",
        "c.json cannot be read",
    ]
    assert failure.value.message.endswith("; and 4 more faults")
    (tmp_path / "a.jsonl").write_text('{"id": 1}')
    assert read_each([tmp_path / "a.jsonl"], numbers) == [1]


def test_a_fault_without_a_place_is_given_that_of_its_row(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"id": "a b"}\n')

    with pytest.raises(DataError, match=r"a\.jsonl:1: item id 'a b' is not usable"):
        read_each([tmp_path / "a.jsonl"], lambda row, _: [Item(id=str(row.fields["id"]), content={})])


@pytest.mark.parametrize(
    ("fields", "text"), [({}, ""), ({"a": None, "b": " "}, ""), ({"a": "", "b": 0}, "0"), ({"a": " x ", "b": []}, "x")]
)
def test_a_field_is_the_first_text_or_number_of_its_names(fields: dict[str, object], text: str):
    assert text_field("the row", fields, "a", "b") == text


@given(st.text(" \u00a0\nab", max_size=5))
def test_only_a_text_without_any_character_is_missing_where_blanks_are_taken(text: str):
    assert text_or_blanks("the row", {"a": text}, "a") == (text.strip() or text)
    assert text_or_blanks("the row", {}, "a") == text_or_blanks("the row", {"a": None}, "a") == ""


@pytest.mark.parametrize("rows", [[{"id": LONG}], {LONG: {"id": "a b"}}, [{"id": "a", "split": LONG}], [LONG, LONG]])
def test_no_fault_is_as_long_as_what_it_names(tmp_path: Path, rows: object):
    (tmp_path / "a.json").write_text(json.dumps(rows))

    def item(row: Row, path: Path) -> list[Item]:
        del path
        split = Split.parse(str(row.fields.get("split", "train")))
        return [Item(id=str(row.fields["id"]), content={"split": split})]

    with pytest.raises(DataError) as failure:
        read_each([tmp_path / "a.json"], item)
    assert len(failure.value.message) < len(str(tmp_path)) * 2 + 400


def test_a_single_fault_is_told_in_its_own_words(tmp_path: Path):
    with pytest.raises(DataError) as failure:
        read_each([tmp_path / "missing.json"], lambda row, _: [row])
    assert (failure.value.faults, failure.value.message) == (
        (),
        f"{tmp_path / 'missing.json'} cannot be read: No such file or directory",
    )


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 100_000])
@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_a_file_with_values_beyond_measure_is_told(tmp_path, name, value):
    (tmp_path / name).write_text(value)
    with pytest.raises(DataError, match="thousands of digits"):
        read_rows(tmp_path / name)
