"""Every benchmark is fetched from a hub with the layout of its own, and its environment reads what was written.

Rows are of the published forms, and invented.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import shutil
import tarfile
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from asking import ask

import skillgit_envs
from skillgit.app.setup.config.load import load_config
from skillgit.app.sources.data_check import check_data
from skillgit.app.sources.data_fetch import DataSelection, converted_rows, fetch
from skillgit.app.sources.public_data.contents import published_rows
from skillgit.app.sources.public_data.downloads import listed
from skillgit.domain.evaluation import Split
from skillgit.domain.finding import Severity
from skillgit.errors import DataError, NotFoundError, ServiceError
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, PublishedRow
from skillgit.plugin.registry import load_conversion, load_environment
from skillgit.plugin.splits import divide, divide_each_type, read_folders, read_ids, repetitions
from skillgit.view.setup import fetched as shown_text
from skillgit.view.surface import Screen

if TYPE_CHECKING:
    from collections.abc import Callable

FETCHED_INFO = "skillgit.app.sources.data_fetch.environment_info"
ENVS = Path(skillgit_envs.__file__).parent
PICTURE = (ENVS / "mmrb" / "data" / "images" / "0_0.png").read_bytes()
WORKBOOKS = ENVS / "spreadsheetbench" / "data" / "workbooks"
NUMBERS = range(12)
TRIAL = "pick_and_place_simple-Mug-None-Desk-3{0:02}/trial_T2019090{0:06}"


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return buffer.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def jsons(rows: list[Any]) -> bytes:
    return json.dumps(rows).encode()


def image(name: str) -> dict[str, object]:
    return {"bytes": PICTURE, "path": name}


def searchqa(parquet) -> dict[str, bytes]:
    rows = [
        {
            "key": f"k{n}",
            "question": f"Which mill number {n} burned?",
            "answers": [f"mill {n}"],
            "context": None,
            "labels": [],
        }
        for n in NUMBERS
    ]
    return {"data/train-00000-of-00001-a.parquet": parquet(rows[:6]), "data/validation-0.parquet": parquet(rows[6:])}


def docvqa(parquet) -> dict[str, bytes]:
    rows = [
        {
            "questionId": str(1000 + n), "question": f"What is on page {n}?", "question_types": ["layout"], "docId": n,
            "ucsf_document_id": "abcd0001", "ucsf_document_page_no": "2", "answers": [f"number {n}"],
            "image": image(f"{n}.png"), "data_split": "val",
        }
        for n in NUMBERS
    ]  # fmt: skip
    return {"DocVQA/validation-00000-of-00001.parquet": parquet(rows), "DocVQA/train-00000-of-00001.parquet": b"large"}


def livemathematicianbench(_) -> dict[str, bytes]:
    def rows(month: str) -> list[dict[str, object]]:
        choice = {"label": "A", "text": f"It is compact in {month}."}
        others = [{"label": label, "text": f"It is {label}."} for label in "BCDE"]
        return [
            {"no": n, "theorem_type": ["bound"], "theorem": "T", "sketch": "S",
             "mcq": {"question": f"What holds for case {n} of {month}?", "choices": others, "correct_choice": choice}}
            for n in range(1, 7)
        ]  # fmt: skip

    months = ("202511", "202602")
    return {f"data/{month}/qa_{month}_final.json": jsons(rows(month)) for month in months}


def spreadsheetbench(_) -> dict[str, bytes]:
    task = next(path for path in sorted(WORKBOOKS.iterdir()) if path.is_dir())
    books = sorted(task.glob("*.xlsx"))[:2]
    answer, question = (next(path for path in books if word in path.name).read_bytes() for word in ("answer", "input"))
    top, files = "spreadsheetbench_verified_400", {}
    rows = [
        {"id": n if n % 2 else f"{n}-1", "instruction": f"Add up column {n}.", "answer_position": "A1:A2",
         "instruction_type": "Cell-Level Manipulation", "spreadsheet_path": f"spreadsheet/{n if n % 2 else f'{n}-1'}"}
        for n in NUMBERS
    ]  # fmt: skip
    for row in rows:
        names = (
            ("initial.xlsx", "golden.xlsx") if row["id"] == 1 else (f"1_{row['id']}_init.xlsx", "1_43930_golden.xlsx")
        )
        for name, content in zip(names, (question, answer), strict=True):
            files[f"{top}/{row['spreadsheet_path']}/{name}"] = content
        files[f"{top}/{row['spreadsheet_path']}/prompt.txt"] = b"unused"
    return {f"{top}.tar.gz": tarred({f"{top}/dataset.json": jsons(rows), **files}), "README.md": b""}


def officeqa(_) -> dict[str, bytes]:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["uid", "question", "answer", "source_docs", "source_files", "difficulty"])
    for n in NUMBERS:
        sources = "treasury_bulletin_1941_01.txt\r\ntreasury_bulletin_1941_02.txt"
        writer.writerow(
            [f"UID{n:04}", f"What was receipt {n} in 1941?", f"{n}.5", "https://example.org?page=1", sources, "easy"]
        )
    texts = {
        f"treasury_bulletins_parsed/transformed/treasury_bulletin_1941_0{n}.txt": f"Bulletin {n}".encode()
        for n in (1, 2)
    }
    return {"officeqa_full.csv": table.getvalue().encode(), **texts, "treasury_bulletin_pdfs/a.pdf": b"large"}


def alfworld(_) -> dict[str, bytes]:
    def game(name: str, *, solvable: bool = True) -> tuple[str, bytes]:
        fields = {"pddl_domain": "d", "grammar": "g", "pddl_problem": name, "solvable": solvable}
        return f"json_2.1.1/{name}/game.tw-pddl", json.dumps(fields).encode()

    splits = ("train", "valid_seen", "valid_unseen")
    games = [game(f"{splits[n % 3]}/{TRIAL.format(n)}") for n in NUMBERS]
    left_out = [game("train/pick_two_movable_x/trial_1"), game("train/look_at/trial_2", solvable=False)]
    return {
        "0.4.2/json_2.1.3_tw-pddl.zip": zipped(dict([*games, *left_out, ("json_2.1.1/train/x/initial.pddl", b"x")]))
    }


def babyvision(_) -> dict[str, bytes]:
    rows = [
        {"taskId": n, "type": "Visual Tracking", "subtype": "Maze", "image": f"images/{n}.png", "ansType": "choice",
         "question": f"Which exit does path {n} reach?", "options": ["1", "2", "3"], "choiceAns": 2, "blankAns": None}
        for n in NUMBERS
    ]  # fmt: skip
    pictures = {f"babyvision_data/images/{n}.png": PICTURE for n in NUMBERS}
    meta = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    return {"raw/data/babyvision_data.zip": zipped({"babyvision_data/meta_data.jsonl": meta, **pictures})}


def mathverse(parquet) -> dict[str, bytes]:
    def row(n: int, version: str) -> dict[str, object]:
        return {
            "sample_index": str(n), "problem_index": str(n // 2), "problem_version": version, "answer": "B",
            "question": f"Find angle {n}.\nChoices:\nA:30°\nB:45°", "question_type": "multi-choice",
            "image": image("images_version_1-4/image.png") if version != "Text Only" else "",
            "metadata": {"split": "testmini", "source": "s", "subject": "Plane Geometry", "subfield": "Angle"},
            "query_wo": "", "query_cot": "", "question_for_eval": f"Find angle {n}.",
        }  # fmt: skip

    rows = [row(n, ("Text Lite", "Vision Only")[n % 2]) for n in range(24)]
    texts = [row(2 * n, "Text Only") for n in NUMBERS]
    return {"testmini.parquet": parquet(rows), "testmini_text_only.json": jsons(texts)}


def mmrb(_) -> dict[str, bytes]:
    rows = [
        {"source": "DemoSet", "subtask": "Visual Ordering", "index": n, "options": ["(A) first", "(B) second"],
         "question": f"{{image#1}} {{image#2}} Which of pair {n} came first? (A) first (B) second", "answer": "B",
         "question_type": "multi-choice", "image_paths": [f"img/{n}_0.png", f"./img/{n}_1.png"], "reasoning_steps": []}
        for n in NUMBERS
    ]  # fmt: skip
    folder = "001_Visual_Ordering"
    name = f"{folder}/001_reasoning_steps_DemoSet_Visual Ordering_0_11_human.json"
    pictures = {f"{folder}/img/{n}_{i}.png": PICTURE for n in NUMBERS for i in (0, 1)}
    return {
        "all/001.zip": zipped({name: jsons([*rows, rows[0] | {"answer": "A"}]), **pictures}),
        "MMRB_data.json": b"[]",
    }


def sealqa(parquet) -> dict[str, bytes]:
    rows = [
        {"question": f"How many bridges of survey {n} are closed?", "answer": f"{n} bridges", "urls": ["https://example.org"],
         "topic": "Others", "canary": "never print this", "freshness": "fast-changing"}
        for n in NUMBERS
    ]  # fmt: skip
    haystack = [{"date": None, "text": "Three are closed.", "title": "Survey", "url": "https://example.org"}]
    long = [row | {"12_docs": haystack, "20_docs": haystack, "30_docs": haystack} for row in rows]
    return {"seal-0.parquet": parquet(rows[:11]), "seal-hard.parquet": parquet(rows), "longseal.parquet": parquet(long)}


LAYOUTS = {
    function.__name__: function
    for function in (
        alfworld, babyvision, docvqa, livemathematicianbench, mathverse, mmrb, officeqa, sealqa, searchqa,
        spreadsheetbench,
    )
}  # fmt: skip
MORE = {"spreadsheetbench": ("env.scorer=skillopt",)}


@pytest.fixture
def publish(hub, parquet, monkeypatch) -> Callable[[str], EnvironmentInfo]:
    """Publish a benchmark at the hub, and return what its environment says; files on the web have no digest here."""
    return partial(published, hub, parquet, monkeypatch)


def published(hub, parquet, monkeypatch, name: str) -> EnvironmentInfo:
    info = load_environment(name, Path()).info
    source = info.public
    assert source is not None
    files = LAYOUTS[name](parquet)
    if source.place.startswith("https:"):
        hub.web = files
        place = f"{hub.url}/{'raw' if name == 'babyvision' else '{revision}'}"
        info = replace(info, public=replace(source, place=place, digests={}))
        monkeypatch.setattr(FETCHED_INFO, lambda *_: info)
    else:
        hub.files, hub.repository = files, source.place
        hub.plain = {file for file in files if file.endswith((".csv", ".json", ".txt"))}
    return info


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_environment_reads_what_was_fetched_for_it(user, hub, publish, name):
    publish(name)
    found = fetch(user, name)
    assert [file.items for file in found.files] == [24 if name == "mathverse" else 12]
    check = ask(check_data, user, f"{name}/default", (*found.options, *MORE.get(name, ())))
    assert [finding.sentence for finding in check.findings if finding.rule == "unreadable"] == []
    assert sum(split.items for split in check.splits) == 12
    assert not any("large" in path or path.endswith(".pdf") for path in hub.asked)


@pytest.mark.parametrize(
    "name", [name for name, _ in LAYOUTS.items() if load_environment(name, Path()).info.public.splits]
)
def test_the_references_split_is_written_in_its_order(user, publish, monkeypatch, name, tmp_path):
    info = publish(name)
    ids = [json.loads(line)["id"] for line in (fetch(user, name).place / "items.jsonl").read_text().splitlines()]
    own = {"train": ids[4::-1], "val": ids[5:7], "test": ids[7:][::-1]}
    for split, names in own.items():
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in names))
    own_split = replace(info, public=replace(info.public, splits={"reference": tmp_path}))
    monkeypatch.setattr(FETCHED_INFO, lambda *_: own_split)
    shutil.rmtree(user.directory / "data" / name)
    found = fetch(user, name, DataSelection(ids="reference"))
    # its configuration finds in the working directory what was written there
    check = ask(check_data, user, f"{name}/reference", ("env.prompts=own",))
    assert [finding.sentence for finding in check.findings if finding.rule == "unreadable"] == []
    environment_items = {
        split: [json.loads(line)["id"] for line in (found.place / split / "items.jsonl").read_text().splitlines()]
        for split in own
    }
    assert environment_items == own


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("rules", ["official", "reference"])
def test_every_benchmark_has_a_configuration_of_its_authors_and_one_of_the_reference(user, name, rules):
    options = load_config(user, f"{name}/{rules}").options
    scorer = {"official": "official", "reference": "skillopt"}[rules]
    choices = getattr(load_environment(name, Path()), "_choices", {}).get("scorer", ())
    assert options.get("scorer", scorer) == scorer or scorer not in choices


COUNTS = {
    "searchqa": (400, 200, 1400), "docvqa": (107, 53, 374), "livemathematicianbench": (35, 17, 125),
    "spreadsheetbench": (80, 40, 280), "officeqa": (50, 24, 172), "alfworld": (39, 18, 134),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_the_references_split_has_the_ids_of_its_release(name):
    folder = load_environment(name, Path()).info.public.splits["reference"]
    manifest = read_folders(folder, read_ids)
    assert tuple(len(manifest[split]) for split in Split) == COUNTS[name]
    every = [one for ids in manifest.values() for one in ids]
    assert len(set(every)) == len(every)
    assert "Copyright (c) 2026 Microsoft Corporation" in (folder.parent / "LICENSE").read_text()


@pytest.mark.parametrize(("subset", "items"), [("seal_0", 11), ("longseal", 12)])
def test_subsets_of_sealqa_bring_their_options_and_say_their_revision(user, publish, subset, items):
    publish("sealqa")
    found = fetch(user, "sealqa", DataSelection(subset=subset))
    assert found.files[0].items == items
    assert f"env.revision={found.revision}" in found.options
    check = ask(check_data, user, "sealqa/default", found.options)
    assert sum(split.items for split in check.splits) == items


def test_the_text_version_of_mathverse_needs_no_picture(user, publish):
    publish("mathverse")
    found = fetch(user, "mathverse", DataSelection(subset="text_only"))
    assert (found.assets, found.files[0].items) == (0, 12)
    assert sum(split.items for split in ask(check_data, user, "mathverse/default", found.options).splits) == 12


def test_pages_are_called_as_the_reference_calls_them(user, publish):
    publish("docvqa")
    found = fetch(user, "docvqa")
    names = sorted(path.name for path in (found.place / "pages").iterdir())
    assert names == sorted(f"q{1000 + n}_d{n}.png" for n in NUMBERS)
    assert "env.image_dir=data/docvqa/pages" in found.options


def test_only_the_pages_of_a_split_are_written(user, publish, tmp_path):
    publish("docvqa")
    for split, names in {"train": ["1000"], "val": ["1003"], "test": ["1001", "1002"]}.items():
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in names))
    assert fetch(user, "docvqa", DataSelection(ids=str(tmp_path))).assets == 4


def test_the_size_of_a_file_on_the_web_is_said_before_it_is_fetched(user, hub, publish):
    publish("alfworld")

    def remark(text):
        assert text.endswith(f": 1 file, {len(next(iter(hub.web.values()))) / 1e6:.1f} MB; licence: MIT")
        assert all(path.startswith("HEAD ") for path in hub.asked)

    fetch(user, "alfworld", remark=remark)
    nobody = replace(load_environment("alfworld", Path()).info.public, place="http://127.0.0.1:1")
    with pytest.raises(ServiceError, match=r"http://127\.0\.0\.1:1 cannot be fetched"):
        listed(nobody, "v1", {})


def test_what_is_written_beside_a_file_on_the_web_is_held_to_its_pinned_digest(user, publish, monkeypatch):
    source = load_environment("babyvision", Path()).info.public
    info = publish("babyvision")
    pinned = replace(info.public, digests=source.digests)
    monkeypatch.setattr(FETCHED_INFO, lambda *_: replace(info, public=pinned))
    with pytest.raises(DataError, match=r"babyvision_data\.zip is not what .* declares: its digest is md5:"):
        fetch(user, "babyvision")
    assert list(user.directory.rglob("data/*")) == []


@pytest.mark.parametrize("name", ["spreadsheetbench", "babyvision"])
def test_a_hostile_archive_leaves_nothing_behind(user, hub, publish, name):
    publish(name)
    files = hub.files if name == "spreadsheetbench" else hub.web
    archive = next(file for file in files if file.endswith((".zip", ".gz")))
    make = zipped if archive.endswith(".zip") else tarred
    files[archive] = make({"a/dataset.json": b"[]", "a/meta_data.jsonl": b"", "a/../../../../escape": b"!"})
    with pytest.raises(DataError, match=r"is refused: .* it leads out of its folder"):
        fetch(user, name)
    assert [path for path in user.directory.rglob("*") if path.name not in {"data", "riddles.py"}] == []
    assert not list(user.directory.parent.rglob("escape"))


def test_a_gated_benchmark_says_who_gives_access(user, hub, publish):
    publish("officeqa")
    hub.closed, hub.lists = (401, "GatedRepo"), True
    with pytest.raises(NotFoundError, match="databricks/officeqa") as gated:
        fetch(user, "officeqa")
    assert f"{hub.url}/datasets/databricks/officeqa" in gated.value.hint


def test_rows_of_swebench_keep_their_columns(tmp_path, parquet):
    row = {
        "instance_id": "acme__tool-12", "repo": "acme/tool", "base_commit": "0" * 40, "problem_statement": "It breaks.",
        "hints_text": "", "patch": "diff", "test_patch": "diff", "FAIL_TO_PASS": '["tests/test_a.py::test_x"]',
        "PASS_TO_PASS": "[]", "image": "an image", "eval_script": "#!/bin/bash\n", "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
    }  # fmt: skip
    (tmp_path / "test.parquet").write_bytes(parquet([row]))
    public = load_environment("swebench", Path()).info.public
    (found,) = converted_rows(public, published_rows({"data/test.parquet": tmp_path / "test.parquet"}))
    assert found == {**row, "id": "acme__tool-12"}
    nameless = PublishedRow(file="a", number=3, fields={"repo": "acme/tool"})
    with pytest.raises(DataError, match="row 3 of a has no instance_id"):
        list(converted_rows(public, [nameless]))


def test_every_environment_with_public_data_can_have_them_fetched():
    def sources(source: PublicSource) -> list[PublicSource]:
        return [source, *source.subsets.values()]

    for name in LAYOUTS:
        public = load_environment(name, Path()).info.public
        assert public is not None
        for source in sources(public):
            assert ":" not in source.convert or callable(load_conversion(source.convert)), name
            assert source.files
            assert source.layout


def renamed(value: dict[str, object], number: int) -> dict[str, object]:
    """Return a published row under another id, as publishers repeat rows."""
    fields = ("problem_index", "sample_index", "id", "uid", "key", "taskId", "questionId", "no")
    return {key: f"9{number}{field}" if key in fields else field for key, field in value.items()}


def test_rows_that_a_source_repeats_stay_on_one_side_and_are_said_once(user, hub, publish):
    publish("mathverse")
    rows = json.loads(hub.files["testmini_text_only.json"])
    copies = [renamed(row, number) for number, row in enumerate(rows[:4])]
    hub.files["testmini_text_only.json"] = json.dumps([*rows, *copies]).encode()
    found = fetch(user, "mathverse", DataSelection(subset="text_only"))
    assert (found.files[0].items, found.repeated, found.same) == (16, 0, 4)
    printed = [line for line in shown_text(found, Screen()) if line.startswith("use it with ")]
    words = shlex.split(printed[0].removeprefix("use it with "))
    assert words[::2] == ["-o"] * len(found.options)
    assert words[1::2] == [*found.options]
    assert "env.problem_version=Text Only" in words
    for seed in range(12):
        check = ask(check_data, user, "mathverse/default", (*words[1::2], f"env.split_seed={seed}"))
        assert [finding.sentence for finding in check.findings if finding.severity is Severity.ERROR] == []
        assert sum(split.items for split in check.splits) == 16


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_division_of_any_benchmark_keeps_repeated_items_on_one_side(user, publish, name):
    publish(name)
    found = fetch(user, name)
    config = load_config(user, f"{name}/default", (*found.options, *MORE.get(name, ())))
    environment = load_environment(name, user.directory)(config.options, user.directory)
    items = [item for split in Split for item in environment.items(split)]
    copies = [replace(item, id=f"{item.id}-again") for item in items[::3]]
    for divided in (divide, divide_each_type):
        splits = divided([*items, *copies], "2:1:2", 5)
        assert sum(map(len, splits.values())) == len(items) + len(copies)
        side = {item.id: split for split, part in splits.items() for item in part}
        assert all(side[item.id] is side[f"{item.id}-again"] for item in items[::3])
        assert list(repetitions(splits)) == []
