from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.spreadsheetbench.workbooks import (
    LAST_ROW,
    READINGS,
    UnreadablePositionError,
    answer_cells,
    column_name,
    column_number,
    lenient,
    official,
    skillopt,
)

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS, ROWS = st.integers(1, 16_384), st.integers(1, LAST_ROW)
SHEETS = st.text("abXY 12,.-'()äß", min_size=1, max_size=12).filter(lambda name: name.strip(" ',\u00a0") == name)


CUT = [(None, "X1"), ("1", "A1:A2")]


def read(reading, position: str, sheet: str = ""):
    """Return sheet and cells of each area; a word if the position cannot be read."""
    try:
        return [(area.sheet, area.name) for area in reading(position, sheet)]
    except UnreadablePositionError:
        return "unreadable"


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
@pytest.mark.parametrize(
    ("position", "areas"),
    [
        ("B2", [(None, "B2")]),
        ("C2:C6", [(None, "C2:C6")]),
        ("'Sea Freight'!H2:H191", [("Sea Freight", "H2:H191")]),
        ("worksheet2'!C3:C6", [("worksheet2", "C3:C6")]),
        ("'Main!'A2:M70", [("Main", "A2:M70")]),
        ("'Sub CO's'!B4:B11", [("Sub CO's", "B4:B11")]),
        ("'SHEET1'!B2:B8,'SHEET2'!B2:B7", [("SHEET1", "B2:B8"), ("SHEET2", "B2:B7")]),
    ],
)
def test_every_reading_agrees_on_the_usual_forms(reading, position, areas):
    assert read(reading, position) == areas


@pytest.mark.parametrize(
    ("position", "by_script", "by_reference", "meant"),
    [
        ("G4:G6, G11:G13", "unreadable", [(None, "G4:G6"), (None, "G11:G13")], [(None, "G4:G6"), (None, "G11:G13")]),
        ("Sheet3'!A:G", "unreadable", "unreadable", [("Sheet3", f"A1:G{LAST_ROW}")]),
        ("'Received'!'Received!A1:G16'", "unreadable", "unreadable", [("Received", "A1:G16")]),
        ("BD2:308", "unreadable", "unreadable", [(None, "BD2:BD308")]),
        ("K4:k35", [(None, "K4:AQ35")], [(None, "K4:AQ35")], [(None, "K4:K35")]),
        ("'Sheet1'!E4:j11", [("Sheet1", "E4:AP11")], [("Sheet1", "E4:AP11")], [("Sheet1", "E4:J11")]),
        ("\u00a0'Sheet 2'!B2:B8", [("\u00a0'Sheet 2", "B2:B8")], [("Sheet 2", "B2:B8")], [("Sheet 2", "B2:B8")]),
        ("A1\uff1aB2", "unreadable", "unreadable", [(None, "A1:B2")]),
        ("$B$2:$B$4", "unreadable", [(None, "B2:B4")], [(None, "B2:B4")]),
        ("'b2b, sez, de'!A5:V10", "unreadable", "unreadable", [("b2b, sez, de", "A5:V10")]),
        ("'X1,1'!A1:A2", CUT, CUT, [("X1,1", "A1:A2")]),
        ("B9:A1", "unreadable", "unreadable", [(None, "A1:B9")]),
        ("", "unreadable", "unreadable", "unreadable"),
        ("the whole sheet", "unreadable", "unreadable", "unreadable"),
    ],
)
def test_odd_forms_are_read_to_the_letter_or_as_they_are_meant(position, by_script, by_reference, meant):
    assert read(official, position) == by_script
    assert read(skillopt, position) == by_reference
    assert read(lenient, position) == meant


def test_the_reference_puts_the_answer_sheet_before_the_first_part_only():
    assert read(skillopt, "A1:A2,C3", "Data") == [("Data", "A1:A2"), (None, "C3")]
    assert read(skillopt, "'Other'!C3", "Data") == [("Other", "C3")]
    assert read(official, "A1:A2,C3", "Data") == read(lenient, "A1:A2,C3", "Data") == [(None, "A1:A2"), (None, "C3")]


@given(st.lists(st.tuples(st.none() | SHEETS, COLUMNS, ROWS, COLUMNS, ROWS), min_size=1, max_size=4), st.data())
def test_what_is_written_in_any_style_is_read_as_it_was_meant(areas, data):
    parts, expected = [], []
    for sheet, left, top, right, bottom in areas:
        blank = data.draw(st.sampled_from(["", " ", "\u00a0"]))
        colon, letters = (
            data.draw(st.sampled_from([":", " : ", "\uff1a"])),
            data.draw(st.sampled_from([str, str.lower])),
        )
        cells = f"{letters(column_name(left))}{top}{colon}{letters(column_name(right))}{bottom}"
        quoted = "'" + sheet.replace("'", "''") + "'!" if sheet is not None else ""
        parts.append(f"{blank}{quoted}{cells}{blank}")
        (west, east), (north, south) = sorted((left, right)), sorted((top, bottom))
        expected.append((sheet, west, north, east, south))
    found = lenient(",".join(parts), "")
    assert [(area.sheet, area.left, area.top, area.right, area.bottom) for area in found] == expected


@given(COLUMNS)
def test_columns_have_one_name(number: int):
    assert column_number(column_name(number)) == number


@given(st.text("AZaz19$:!', \u00a0\uff1a", max_size=20))
def test_any_text_is_read_or_refused(text: str):
    for reading in READINGS.values():
        areas = read(reading, text, "S")
        assert areas == "unreadable" or areas
    assert all(area.left <= area.right and area.top <= area.bottom for area in answer_cells(text))


def test_every_real_position_can_be_read_as_it_is_meant(real: Path):
    rows = json.loads((real / "dataset.json").read_text())
    unread = [row["id"] for row in rows if not answer_cells(row["answer_position"])]
    assert unread == []
    by_script = {str(row["id"]) for row in rows if read(official, row["answer_position"]) == "unreadable"}
    assert by_script == {"283-32", "532-3", "45944"}
