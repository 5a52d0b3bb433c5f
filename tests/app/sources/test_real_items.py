"""Folders of real benchmarks are read as they come."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from asking import ask
from documents import check_part

from skillgit.app.sources.data_check import check_data
from skillgit.app.sources.data_fetch import DataSelection, fetch
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import LeakKind, build_index, find_leak, words
from skillgit.errors import ExitCode
from skillgit.plugin.environment import secrets_of
from skillgit.plugin.registry import load_environment
from skillgit.plugin.shortcuts import cue_texts
from skillgit.plugin.splits import read_folders, read_ids
from skillgit_envs.livemathematicianbench import CUE

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", ROOT.parent / "shared" / "data"))
MONTHS = DATA / "livemathematicianbench"
PUBLISHED, TEXT_ONLY = "env.edition=published", "env.problem_version=Text Only"

pytestmark = pytest.mark.skipif(
    not MONTHS.is_dir(), reason=f"no real data at {DATA}; SKILLGIT_REAL_DATA names its folder"
)
FETCHED_INFO = "skillgit.app.sources.data_fetch.environment_info"


def test_the_months_of_livemathematicianbench_are_found_in_their_folders(empty):
    found = ask(check_data, empty, "livemathematicianbench/default", (f"env.data_path={MONTHS}", PUBLISHED))
    assert found.exit_code == ExitCode.OK
    assert sum(split.items for split in found.splits) == 39


def test_the_cue_of_livemathematicianbench_is_found_and_its_items_are_left_out_by_default(empty):
    published, default = (
        ask(check_data, empty, "livemathematicianbench/default", (f"env.data_path={MONTHS}", *options))
        for options in ((PUBLISHED,), ())
    )
    (cue,) = published.shortcuts.cues
    assert (cue.kind, cue.answers, cue.right) == ("text", 17, 17.0)
    (finding,) = [finding for finding in published.findings if finding.rule == "shortcut"]
    assert CUE in finding.sentence
    assert sum(split.items for split in default.splits) == 39 - 17
    assert default.shortcuts.cues == ()
    sides = {
        edition: {item.id: split for split in Split for item in environment.items(split)}
        for edition in ("published", "without_cue")
        for environment in [months(edition)]
    }
    assert sides["without_cue"].items() < sides["published"].items(), "an item is in the same split in both"


def months(edition: str):
    cls = load_environment("livemathematicianbench", Path())
    defaults = {option.name: option.default for option in cls.info.options}
    return cls(defaults | {"data_path": str(MONTHS), "edition": edition}, Path("/"))


def test_the_lint_refuses_a_rule_that_repeats_the_cue_and_takes_one_about_mathematics():
    environment = months("published")
    items = {split: environment.items(split) for split in Split}
    cues = cue_texts(environment, items)
    rows = ((item.id, split, secrets_of(environment, item)) for split in Split for item in items[split])
    index = build_index(rows, cues=cues)
    assert len(cues) == 1
    for text in (
        "- Where a choice says that a stronger result can be proven, take it.",
        "- One of the remaining options is correct: prefer that statement.",
        f"- Choose '{CUE}'!",
    ):
        leak = find_leak(index, text, "")
        assert leak is not None
        assert leak.kind is LeakKind.CUE
        assert leak.words in " ".join(words(text))
        assert leak.words in str(leak)
        assert find_leak(index, text, text) is None, "what the skill says already may stay"
    for text in (
        "- Read the quantifiers of each option before you compare bounds.",
        "- A stronger result needs a stronger hypothesis.",
        "- Exactly one of the options is correct.",
    ):
        assert find_leak(index, text, "") is None


REAL = {
    "LiveMathematicianBench, published": ("livemathematicianbench", "livemathematicianbench", (PUBLISHED,)),
    "LiveMathematicianBench, without its cue": ("livemathematicianbench", "livemathematicianbench", ()),
    "MathVerse, Text Only": ("mathverse", "mathverse/testmini_text_only.sample20.json", (TEXT_ONLY,)),
    "MathVerse, odd rows of Text Only": ("mathverse", "mathverse_odd/testmini_text_only.odd.json", (TEXT_ONLY,)),
    "SearchQA": ("searchqa", "searchqa/skillopt_split_format/items.json", ()),
    "archive sections": ("tasks", "archive_sections/tasks.jsonl", ()),
}


def test_the_table_of_shortcuts_in_the_documents_is_what_the_command_says(empty):
    """``UPDATE_DOCS=1 pytest tests/app/sources/test_real_items.py -k shortcuts`` writes it again."""
    rows = [
        "| data | items here | best without the question | right | by chance | a cue |",
        "|---|--:|---|--:|--:|---|",
    ]
    cues = 0
    for name, (environment, path, options) in REAL.items():
        report = ask(check_data, empty, f"{environment}/default", (f"env.data_path={DATA / path}", *options)).shortcuts
        best, cues = report.shortcuts[0], cues + bool(report.cues)
        right, chance = f"{best.right:.3g} of {best.n}", f"{best.chance * best.answers:.3g}"
        rule = best.rule if len(best.rule) < 80 else f'{best.rule[:60].rstrip()} …"'
        cells = (name, f"{report.items}", rule, right, chance, "yes" if report.cues else "no")
        rows.append(f"| {' | '.join(cells)} |")
    text = "\n".join([*rows, "", f"A cue is found in {cues} of these {len(REAL)}.", ""])
    check_part("benchmarks.md", "shortcuts", text)


def test_the_references_manifest_of_it_picks_items_by_id(empty):
    rows = {
        "train": [{"id": "202511:1", "month": "202511", "no": 1}],
        "val": [{"id": "202511:17", "month": "202511", "no": 17}],
        "test": [{"id": f"202511:{number}"} for number in (2, 3)],
    }
    for name, listed in rows.items():
        (empty.directory / "split" / name).mkdir(parents=True)
        (empty.directory / "split" / name / "items.json").write_text(json.dumps(listed))
    options = ("env.split_mode=split_dir", "env.split_dir=split", f"env.data_path={MONTHS}", PUBLISHED)
    found = ask(check_data, empty, "livemathematicianbench/default", options)
    assert [(split.split.value, split.items) for split in found.splits] == [("train", 1), ("selection", 1), ("test", 2)]


def test_two_splits_of_a_real_release_that_hold_the_same_items_are_a_fault(empty):
    folder = DATA / "searchqa" / "hf_datasets_dummy"
    found = ask(check_data, empty, "searchqa/default", ("env.split_mode=split_dir", f"env.split_dir={folder}"))
    assert found.exit_code == ExitCode.NO
    assert found.findings[0].sentence.startswith("ids occur in both the selection and the test split: ")


def published(hub, name: str, files: dict[str, bytes]) -> None:
    hub.repository, hub.files = load_environment(name, Path()).info.public.place, files


def loaded(user, name: str, *options: str, **selection) -> int:
    """Fetch a benchmark and return how many items its environment reads of it."""
    found = fetch(user, name, DataSelection(**selection))
    check = ask(check_data, user, f"{name}/default", (*found.options, *options))
    assert [finding.sentence for finding in check.findings if finding.rule == "unreadable"] == []
    return sum(split.items for split in check.splits)


def test_real_months_of_livemathematicianbench_are_fetched_with_the_references_ids(user, hub):
    months = sorted(MONTHS.rglob("qa_*.json"))
    published(
        hub,
        "livemathematicianbench",
        {f"data/{path.parent.name}/qa_{path.parent.name}_final.json": path.read_bytes() for path in months},
    )
    assert loaded(user, "livemathematicianbench", PUBLISHED) == 39
    written = (user.directory / "data" / "livemathematicianbench" / "items.jsonl").read_text()
    folder = load_environment("livemathematicianbench", Path()).info.public.splits["reference"]
    every = {one for ids in read_folders(folder, read_ids).values() for one in ids}
    assert {json.loads(line)["id"] for line in written.splitlines()} <= every


def test_real_tasks_of_spreadsheetbench_are_unpacked(user, hub):
    folder = DATA / "spreadsheetbench"
    tasks = [
        row for row in json.loads((folder / "dataset.json").read_text()) if (folder / row["spreadsheet_path"]).is_dir()
    ]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        listing = json.dumps(tasks[:12]).encode()
        info = tarfile.TarInfo("./spreadsheetbench_verified_400/dataset.json")
        info.size = len(listing)
        tar.addfile(info, io.BytesIO(listing))
        for row in tasks[:12]:
            tar.add(folder / row["spreadsheet_path"], f"./spreadsheetbench_verified_400/{row['spreadsheet_path']}")
    published(hub, "spreadsheetbench", {"spreadsheetbench_verified_400.tar.gz": buffer.getvalue()})
    assert loaded(user, "spreadsheetbench", "env.scorer=skillopt") == 12


def test_real_pages_of_docvqa_are_written_beside_their_questions(user, hub, parquet):
    folder = DATA / "docvqa"
    pages = folder / "images"
    rows = [
        row | {"questionId": str(row["questionId"]), "docId": str(row["docId"])}
        | {"image": {"bytes": path.read_bytes(), "path": path.name}}
        for row in json.loads((folder / "val_v1.0_withQT.sample.json").read_text())["data"]
        if (path := pages / f"{row['ucsf_document_id']}_p{int(row['ucsf_document_page_no']) - 1}.jpg").is_file()
    ][:12]  # fmt: skip
    assert rows
    published(hub, "docvqa", {"DocVQA/validation-00000-of-00006.parquet": parquet(rows)})
    assert fetch(user, "docvqa").assets == len(rows)
    found = ask(check_data, user, "docvqa/default", ("env.data_path=data/docvqa", "env.image_dir=data/docvqa/pages"))
    assert [finding.sentence for finding in found.findings if "picture" in finding.sentence] == []


def test_real_games_of_alfworld_are_unpacked(user, hub, monkeypatch):
    pytest.importorskip("textworld", reason="the engine of alfworld is not installed")
    folder, buffer = DATA / "alfworld", io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for path in sorted((folder / "json_2.1.1").rglob("game.tw-pddl")):
            file.write(path, path.relative_to(folder).as_posix())
    hub.web = {"0.4.2/json_2.1.3_tw-pddl.zip": buffer.getvalue()}
    environment = load_environment("alfworld", Path())
    source = replace(environment.info.public, place=f"{hub.url}/{{revision}}", digests={})
    monkeypatch.setattr(FETCHED_INFO, lambda *_: replace(environment.info, public=source))
    assert loaded(user, "alfworld") == 17


def test_real_rows_of_mathverse_are_read(user, hub):
    rows = (DATA / "mathverse" / "testmini_text_only.sample20.json").read_bytes()
    published(hub, "mathverse", {"testmini_text_only.json": rows})
    assert loaded(user, "mathverse", subset="text_only") == 20


MANIFESTS = {
    "searchqa": "searchqa_id_split", "docvqa": "docvqa_id_split", "officeqa": "officeqa_id_split",
    "spreadsheetbench": "spreadsheetbench_id_split", "livemathematicianbench": "livemathematicianbench_id_split",
}  # fmt: skip


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_references_split_that_comes_with_skillgit_is_the_released_one(name):
    ours = load_environment(name, Path()).info.public.splits["reference"]
    assert read_folders(ours, read_ids) == read_folders(DATA / "skillopt_manifests" / MANIFESTS[name], read_ids)


def test_the_references_games_are_those_of_its_split():
    ours = read_folders(load_environment("alfworld", Path()).info.public.splits["reference"], read_ids)
    for split, name in {Split.TRAIN: "train", Split.SELECTION: "val", Split.TEST: "test"}.items():
        rows = json.loads((DATA / "skillopt_manifests" / "alfworld_path_split" / name / "items.json").read_text())
        assert [f"{game}/game.tw-pddl" for game in ours[split]] == [row["gamefile"] for row in rows]
