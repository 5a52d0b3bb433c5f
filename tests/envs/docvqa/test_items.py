from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from reading import items_in

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, DataError
from skillgit_envs.docvqa import DocVQA

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
ROW = {
    "questionId": 7,
    "question": "What is the total?",
    "image": "documents/abc_2.png",
    "answers": ["12.50", "$12.50"],
}


def read(folder: Path, rows: object, *, pages: Path | None = None, limit_mb: float = 1.0):
    path = folder / "items.json"
    path.write_text(json.dumps(rows))
    return items_in(DocVQA, path, image_dir=str(pages or ""), max_image_mb=limit_mb)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", ["documents/abc_2.png", "abc_2.png", "abc_2.jpg", "abc_p1.jpg"])
def test_a_page_is_found_under_each_of_its_names(tmp_path: Path, pages: Path, name: str):
    (pages / name).parent.mkdir(exist_ok=True)
    (pages / name).write_bytes(PNG)
    row = ROW | {"ucsf_document_id": "abc", "ucsf_document_page_no": "2"}
    item = read(tmp_path, {"data": [row]}, pages=pages)[0]
    assert (item.id, item.content["image"]) == ("7", "documents/abc_2.png")
    assert item.content["answers"] == ["12.50", "$12.50"]


def test_a_blank_question_about_a_page_is_one(tmp_path: Path):
    (tmp_path / "abc_2.png").write_bytes(PNG)
    assert read(tmp_path, [ROW | {"question": "\u00a0"}])[0].content["question"] == "\u00a0"


def test_the_bytes_of_the_page_are_part_of_the_item(tmp_path: Path):
    (tmp_path / "abc_2.png").write_bytes(PNG)
    before = read(tmp_path, [ROW])[0]
    (tmp_path / "abc_2.png").write_bytes(PNG + b"x")
    assert read(tmp_path, [ROW])[0].digest != before.digest


def test_a_page_that_is_missing_too_large_or_no_picture_is_named(tmp_path: Path):
    with pytest.raises(DataError, match=r"item 1: there is no picture documents/abc_2\.png in"):
        read(tmp_path, [ROW])
    (tmp_path / "abc_2.png").write_bytes(PNG)
    with pytest.raises(DataError, match=r"has 0\.0 MB, more than 1e-06"):
        read(tmp_path, [ROW], limit_mb=0.000001)
    assert read(tmp_path, [ROW], limit_mb=len(PNG) / 1e6)
    with pytest.raises(DataError, match=r"has 0\.0 MB, more than"):
        read(tmp_path, [ROW], limit_mb=(len(PNG) - 1) / 1e6)
    (tmp_path / "abc_2.png").write_bytes(b"BM")
    with pytest.raises(DataError, match="is not a PNG, JPEG, GIF or WebP"):
        read(tmp_path, [ROW])


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        ("['12.50', '$12.50']", ["12.50", "$12.50"]),
        ('["It\'s"]', ["It's"]),
        ("1,234", ["1,234"]),
        ("0.50", ["0.50"]),
        ("1e3", ["1e3"]),
        ("[]", None),
        ("", None),
    ],
)
def test_a_cell_is_a_list_or_an_answer_as_it_stands(tmp_path: Path, cell: str, answers: list[str] | None):
    (tmp_path / "7.png").write_bytes(PNG)
    with (tmp_path / "items.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "ground_truth", "image_path", "category"])
        writer.writerow(["7", "What is the total? document_path: img/7.png", cell, "img/7.png", "form"])
    if answers is None:
        with pytest.raises(DataError, match=r"items\.csv:2 has no answers"):
            items_in(DocVQA, tmp_path / "items.csv")
        return
    item = items_in(DocVQA, tmp_path / "items.csv")[0]
    assert item.content["answers"] == answers
    assert item.content["question"] == "What is the total?"
    assert item.task_type == "form"


def test_a_broken_list_is_not_taken_for_an_answer(tmp_path: Path):
    (tmp_path / "abc_2.png").write_bytes(PNG)
    with pytest.raises(DataError, match="has answers that are not a list"):
        read(tmp_path, [ROW | {"answers": "['12.50'"}])


def test_settings_that_docvqa_does_not_know_are_refused(tmp_path: Path):
    for option, value in (("scorer", "loose"), ("image_detail", "sharp"), ("max_turns", 0)):
        with pytest.raises(ConfigError, match=f"env.{option} is"):
            DocVQA({option: value}, tmp_path)


def test_what_changes_scores_changes_the_digest(tmp_path: Path):
    digests = {
        DocVQA(o, tmp_path).digest for o in ({}, {"scorer": "skillopt"}, {"image_detail": "low"}, {"max_turns": 2})
    }
    assert len(digests) == 4


def test_the_shipped_pages_are_small_and_every_item_has_one(tmp_path: Path):
    environment = DocVQA({}, tmp_path)
    items = [item for split in Split for item in environment.items(split)]
    assert len({item.content["page"] for item in items}) == 6


def test_the_real_page_is_found_by_its_name_in_mp_docvqa(real: Path, tmp_path: Path):
    rows = json.loads((real / "val_v1.0_withQT.sample.json").read_text())["data"]
    ours = [row for row in rows if row["questionId"] == 26167]
    item = read(tmp_path, ours, pages=real / "images", limit_mb=5.0)[0]
    assert item.content["answers"] == ["2", "page 2"]
    with (real / "skillopt_layout.csv").open(newline="") as file:
        table = [row for row in csv.DictReader(file) if row["questionId"] == "26167"]
    path = tmp_path / "one.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    same = items_in(DocVQA, path, image_dir=str(real / "images"))[0]
    assert (same.content["answers"], same.content["page"]) == (item.content["answers"], item.content["page"])
    with pytest.raises(DataError, match="there is no picture"):
        read(tmp_path, rows, pages=real / "images", limit_mb=5.0)
