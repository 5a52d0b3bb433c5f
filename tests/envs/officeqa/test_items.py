from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
from reading import items_in

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit_envs.officeqa import OfficeQA, oracle_pages
from skillgit_envs.officeqa.corpus import Corpus
from skillgit_envs.officeqa.scoring import fault

ROW = {"uid": "U1", "question": "Total?", "answer": "36,495", "source_files": "b_02.txt", "difficulty": "easy"}
PAGES = "--- PAGE 1 ---\n\ncover\n\n=== PAGE 2 ===\nTotal 36,495\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "old").mkdir(parents=True)
    (folder / "b_02.txt").write_text(PAGES)
    (folder / "b_03.txt").write_text("no pages")
    (folder / "old" / "b_01.txt").write_text(PAGES)
    (folder / "notes.json").write_text("{}")
    return folder


def read(folder: Path, *rows: object, docs: Path | None = None):
    path = folder / "items.json"
    path.write_text(json.dumps(list(rows)))
    return items_in(OfficeQA, path, docs_dir=str(docs or folder / "docs"))


@pytest.mark.parametrize(
    "cell",
    [
        "b_02.txt\r\nb_03.txt",
        "b_02.txt\nb_03.txt\n",
        "b_02.txt, b_03.txt",
        "b_02.txt,b_03.txt",
        '["b_02.txt", "b_03.txt"]',
        ["b_02.txt", "b_03.txt", "b_02.txt"],
        "b_02.json;b_03.pdf",
    ],
)
def test_source_files_are_read_however_they_are_joined(tmp_path: Path, docs: Path, cell: object):
    (item,) = read(tmp_path, ROW | {"source_files": cell}, docs=docs)
    assert item.content["source_files"] == ["b_02.txt", "b_03.txt"]


def test_the_columns_of_the_public_table_and_of_the_reference_are_the_same_item(tmp_path: Path, docs: Path):
    address = "https://example.org/doc?page=2"
    table = tmp_path / "items.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["uid", "question", "answer", "source_docs", "source_files", "difficulty"])
        writer.writerow(["U1", "Total?", "36,495", f"{address}\r\n{address}3", "b_02.txt\r\nold/b_01.txt", "hard"])
    (item,) = items_in(OfficeQA, table, docs_dir=str(docs))
    other = {"id": "U1", "question": "Total?", "ground_truth": "36,495", "category": "hard"}
    files = {"source_docs": [address, f"{address}3"], "source_files": ["b_02", "b_01"]}
    (same,) = read(tmp_path, other | files, docs=docs)
    assert (
        (item.id, item.task_type, item.digest) == (same.id, same.task_type, same.digest) == ("U1", "hard", item.digest)
    )
    assert item.content["source_docs"] == [address, f"{address}3"]
    assert item.content["source_files"] == ["b_02.txt", "old/b_01.txt"]


def test_a_number_of_json_is_an_answer_even_if_it_is_nothing(tmp_path: Path, docs: Path):
    items = read(tmp_path, ROW | {"answer": 0}, ROW | {"uid": "U2", "answer": [1, 2.5]}, docs=docs)
    assert [item.content["answer"] for item in items] == ["0", "[1, 2.5]"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"uid": ""}, r"items\.json, item 1 has no uid"),
        ({"question": " "}, "has no question"),
        ({"answer": None}, "has no answer"),
        ({"source_files": "c_04.txt"}, r"there is no document c_04\.txt in"),
        ({"source_files": "twin"}, r"2 documents are called twin: a/twin\.txt, b/twin\.txt"),
        ({"source_files": "[b_02.txt"}, "has source_files that are not a list"),
        ({"source_files": [1]}, "has source_files that are not texts"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, docs: Path, change: dict[str, object], message: str):
    for name in "ab":
        (docs / name).mkdir()
        (docs / name / "twin.txt").write_text("x")
    with pytest.raises(DataError, match=message):
        read(tmp_path, ROW | change, docs=docs)


def test_the_documents_are_part_of_the_item(tmp_path: Path, docs: Path):
    def digest() -> str:
        return read(tmp_path, ROW, docs=docs)[0].digest

    first = digest()
    (docs / "b_02.txt").write_text(PAGES.replace("36", "37"))
    second = digest()
    (docs / "b_04.txt").write_text("another document to look into")
    assert len({first, second, digest()}) == 3


def test_the_folder_transformed_stands_for_its_documents(docs: Path):
    (docs / "transformed").mkdir()
    (docs / "transformed" / "b_02.txt").write_text(PAGES)
    assert Corpus(docs).names == ("b_02.txt",)


def test_data_among_the_documents_are_refused(tmp_path: Path, docs: Path):
    with pytest.raises(ConfigError, match="are in the folder of the documents"):
        read(docs, ROW, docs=docs)
    with pytest.raises(DataError, match="there is no document in"):
        read(tmp_path, ROW, docs=tmp_path / "elsewhere")


def environment(folder: Path, rows: list[dict[str, object]], **options: str | float | bool) -> OfficeQA:
    (folder / "rows.json").write_text(json.dumps(rows))
    return OfficeQA({"data_path": "rows.json", "docs_dir": "docs", "use_local_tools": False, **options}, folder)


def rows(**change: object) -> list[dict[str, object]]:
    return [ROW | {"uid": f"U{number}", "question": f"{number}?"} | change for number in range(10)]


def test_pages_are_cut_out_by_their_marks(tmp_path: Path, docs: Path):
    made = environment(tmp_path, rows(source_docs="https://x.org/d?pagenum=2&z=1"), oracle_pages=True)
    item = made.items(Split.TRAIN)[0]
    expected = '<page document="b_02.txt" number="2">\nTotal 36,495\n</page>'
    assert oracle_pages(item, Corpus(docs)) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "has 0 source_docs for 1 source_files"),
        ({"source_docs": "https://x.org/d"}, r"https://x\.org/d names no page"),
        ({"source_docs": "https://x.org/d?page=x"}, "names no page"),
        ({"source_docs": "https://x.org/d?page=9"}, r"b_02\.txt has no page 9"),
        ({"source_docs": "https://x.org/d?page=1", "source_files": "b_03.txt"}, r"b_03\.txt does not mark its pages"),
        ({"source_docs": "https://x.org/d?page=1", "source_files": "b_02,b_03"}, "has 1 source_docs for 2"),
    ],
)
def test_pages_that_are_not_there_are_named_before_a_run(tmp_path: Path, docs: Path, change, message):
    assert docs.is_dir()
    with pytest.raises(DataError, match=message):
        environment(tmp_path, rows(**change), oracle_pages=True).items(Split.TRAIN)


def test_an_item_without_documents_needs_all_of_them(tmp_path: Path, docs: Path):
    assert docs.is_dir()
    assert environment(tmp_path, rows(source_files="")).items(Split.TRAIN)
    with pytest.raises(DataError, match="has no source_files"):
        environment(tmp_path, rows(source_files=""), scope="item").items(Split.TRAIN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scope": "some"}, r"env\.scope is 'some'"),
        ({"scorer": "loose"}, r"env\.scorer is 'loose'"),
        ({"sandbox": "chroot"}, r"env\.sandbox is 'chroot'"),
        ({"tolerance": 5.0}, r"env\.tolerance is 5\.0"),
        ({"tolerance": -0.01}, r"env\.tolerance is -0\.01"),
        ({"max_turns": 0}, r"env\.max_turns is 0"),
        ({"data_path": "x.csv"}, r"env\.docs_dir is not set"),
    ],
)
def test_options_that_are_not_usable_are_refused(tmp_path: Path, options: dict[str, str | float], message: str):
    with pytest.raises(ConfigError, match=message):
        OfficeQA(options, tmp_path)


def test_what_decides_an_outcome_changes_the_digest(tmp_path: Path):
    options: tuple[dict[str, str | float | bool], ...] = (
        {},
        {"scope": "item"},
        {"oracle_pages": True},
        {"use_local_tools": False},
        {"max_turns": 3},
        {"scorer": "skillopt"},
        {"tolerance": 0.01},
        {"search_url": "https://search.example.org"},
        {"search_url": "https://search.example.org", "search_max_num_results": 9},
    )
    assert len({OfficeQA(chosen, tmp_path).digest for chosen in options}) == len(options)
    assert OfficeQA({"sandbox": "none"}, tmp_path).digest == OfficeQA({}, tmp_path).digest


def test_documents_that_only_root_may_read_are_refused(tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch):
    made = environment(tmp_path, rows(), use_local_tools=True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert made.items(Split.TRAIN)
    (docs / "b_03.txt").chmod(0o600)
    with pytest.raises(ConfigError, match=r"cannot read .*b_03\.txt"):
        environment(tmp_path, rows(), use_local_tools=True).items(Split.TRAIN)


def test_a_document_that_has_gone_is_a_fault(docs: Path):
    corpus = Corpus(docs)
    assert corpus.names
    (docs / "b_02.txt").unlink()
    with pytest.raises(EnvironmentFaultError, match=r"document b_02\.txt cannot be copied"), corpus.shown(["b_02.txt"]):
        pass
    with pytest.raises(EnvironmentFaultError, match=r"document b_02\.txt cannot be read"):
        corpus.text("b_02.txt")


def test_every_shipped_answer_stands_on_its_pages_or_is_worked_out_from_them(tmp_path: Path):
    made = OfficeQA({"oracle_pages": True}, tmp_path)
    items = [item for split in Split for item in made.items(split)]
    shipped = Corpus(Path(__file__).parents[3] / "envs/skillgit_envs/officeqa/data/bulletins")
    worked_out = {"calder-03", "calder-07", "calder-11", "calder-12"}
    for item in items:
        answer, pages = str(item.content["answer"]), oracle_pages(item, shipped)
        words = answer.strip("[]").split(", ") if answer.startswith("[") else [answer.replace("-11.7", "(11.7)")]
        assert item.id in worked_out or all(word in pages for word in words), item.id
        assert fault(answer, answer, 0.0) == ""
    assert len(items) == 12


def test_the_real_bulletins_are_a_corpus(real: Path):
    corpus = Corpus(real / "text_pypdf")
    name = corpus.find("here", "treasury_bulletin_2016_12.pdf")
    assert name == "treasury_bulletin_2016_12.txt"
    content = {"source_files": [name], "source_docs": ["https://example.org/bulletin?page=1"]}
    assert "DECEMBER 2016" in oracle_pages(Item(id="ours", content=content), corpus)
