"""``skillgit data``: what people and programs get of it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import cli_sample as sample
import pytest
from rich.console import Console

from skillgit.app.sources.data_check import DataCheck, SplitSummary
from skillgit.app.sources.data_fetch import DataSelection, FetchedData, Written
from skillgit.app.sources.public_data.downloads import FetchProgress
from skillgit.app.train.doctor import Checkup, Machine
from skillgit.cli.diagnostics import Diagnostics
from skillgit.cli.watchers import LiveFetchWatcher
from skillgit.domain.evaluation import Split
from skillgit.domain.finding import Finding, Severity
from skillgit.errors import ExitCode
from skillgit.plugin.shortcuts import AnswerForm, Shortcut, ShortcutReport
from skillgit.view.surface import Screen

GOLDEN = Path(__file__).parent / "golden"


def summary(split: Split, items: int, used: int, detectable: float | None, **types: int) -> SplitSummary:
    return SplitSummary(
        split=split,
        items=items,
        used=used,
        types=types,
        digest=f"{items:012x}",
        step=1 / used,
        detectable=detectable,
    )


def shortcut(kind: str, rule: str, answered: int, right: float, form: AnswerForm = AnswerForm.CHOICE) -> Shortcut:
    return Shortcut(
        kind=kind,
        rule=rule,
        form=form,
        n=177,
        answers=answered,
        right=right,
        score=right / 177,
        chance=0.2,
        p=0.01,
        is_cue=kind == "text",
        advice="rewrite the choices",
        splits={Split.TRAIN: right / 177},
    )


FOUND = DataCheck(
    environment="searchqa",
    splits=(
        summary(Split.TRAIN, 400, 400, 0.0171, person=212, place=99, work=40, date=30, thing=19),
        summary(Split.SELECTION, 200, 40, 0.1623, person=200),
        summary(Split.TEST, 3, 3, None, person=2, date=1),
    ),
    findings=(
        Finding(
            severity=Severity.ERROR,
            rule="leak",
            sentence="the seed skill quotes answers of selection or test items: q-7",
            hint="take the words out of the skill, or the items out of the splits",
            items=("q-7",),
        ),
        Finding(
            severity=Severity.WARNING,
            rule="alike",
            sentence="items of the train and the test split are almost the same: a-1 ~ z-9, a-2 ~ z-8",
            hint="look at them with --json, which lists all, and keep one of each in one split",
            items=("a-1", "z-9", "a-2", "z-8"),
        ),
    ),
    notes=("40 selection items: gains of less than 16.2 points look like chance; more items find smaller ones",),
    exit_code=ExitCode.NO,
    shortcuts=ShortcutReport(
        items=603,
        sample=354,
        shortcuts=(
            shortcut("text", f'the choice "One of the remaining {"options " * 9}is correct"', 85, 85),
            shortcut("longest", "the longest choice", 177, 92.5),
            shortcut("constant", 'always "yes\nno"', 177, 3, AnswerForm.FREE),
        ),
        reason="249 items are not scored by the text of an answer",
    ),
)
UNREADABLE = DataCheck(
    environment="docvqa",
    splits=(),
    findings=tuple(
        Finding(severity=Severity.ERROR, rule="unreadable", sentence=f"val.csv:{line} has no question", hint="add one")
        for line in (3, 9)
    ),
    notes=(),
    exit_code=ExitCode.NO,
)
FETCHED = FetchedData(
    environment="searchqa",
    place=Path("/mine/data/searchqa"),
    source="lucadiliello/searchqa",
    revision="c0ffee" + 34 * "0",
    licence="MIT",
    assets=3,
    files=tuple(
        Written(path=f"{name}/items.jsonl", items=items, sha256=f"{items:064x}")
        for name, items in (("train", 400), ("val", 200), ("test", 1))
    ),
    same=2,
    repeated=2,
    options=("env.split_mode=split_dir", "env.split_dir=data/searchqa"),
)
HEALTHY = Checkup(
    machine=Machine(python="3.13.1", system="Linux", git="2.47.0", sqlite="3.46.0", programs=()),
    repository=None,
    config="mine.yaml",
    roles=(),
    prices_of="2026-11-21",
    contexts_of="2026-11-21",
    notes=(),
)
CASES = {
    "doctor-data": ("data_check.check_data", FOUND, ("doctor", "mine.yaml")),
    "doctor-data-json": ("data_check.check_data", FOUND, ("doctor", "mine.yaml", "--json")),
    "doctor-data-unreadable": ("data_check.check_data", UNREADABLE, ("doctor", "mine.yaml")),
    "data-fetch": ("data_fetch.fetch", FETCHED, ("plugins", "searchqa", "--fetch", "there")),
    "data-fetch-json": ("data_fetch.fetch", FETCHED, ("plugins", "searchqa", "--fetch", "there", "--json")),
}


@pytest.mark.parametrize("name", CASES)
def test_every_form_is_golden(name, skillgit, fake):
    verb, result, arguments = CASES[name]
    fake(f"sources.{verb}", result)
    fake("train.doctor.doctor", HEALTHY)
    ended = skillgit(*arguments)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_bytes(ended.out)
    assert ended.out == path.read_bytes()
    assert ended.code == (ExitCode.NO if "doctor" in name else ExitCode.OK)


def test_the_items_that_come_with_skillgit_pass(skillgit):
    ended = skillgit("doctor", "searchqa/default", "--json")
    document = json.loads(ended.out)
    assert (ended.code, document["schema"], document["data"]["findings"]) == (ExitCode.OK, "skillgit.doctor/1", [])


def test_faults_end_with_1_and_a_wrong_configuration_with_2(skillgit, tmp_path):
    for split in ("train", "val", "test"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "items.jsonl").write_text('{"id": "a", "question": "?"}\n')
    place = ("-o", "env.split_mode=split_dir", "-o", f"env.split_dir={tmp_path}")
    ended = skillgit("doctor", "searchqa/default", *place)
    assert (ended.code, ended.err) == (ExitCode.NO, "the models are not asked while items cannot be read\n")
    assert "searchqa: " in ended.text
    assert "no answers" in ended.text
    assert skillgit("doctor", "searchqa/default", "-o", "env.limit=-1").code == ExitCode.USAGE


def test_options_of_fetch_are_handed_on(skillgit, fake):
    calls = fake("sources.data_fetch.fetch", FETCHED)
    skillgit("plugins", "searchqa", "--fetch", "there", "--revision", "main", "--ids", "split", "--subset", "a")
    name, selection, options = calls[0]
    assert (name, str(options["to"])) == ("searchqa", "there")
    assert selection == DataSelection(revision="main", ids="split", subset="a")


@pytest.mark.parametrize("quiet", [("--quiet",), ("--json",)])
def test_a_fetch_says_how_large_it_is_unless_it_is_to_be_quiet(skillgit, monkeypatch, quiet):
    def fetch(*_, remark, watch, **__):
        remark("fetching the place at v1: 2 files, 1.0 MB; licence: unknown")
        watch(FetchProgress(name="a", number=1, files=2, done=1, total=2))
        return FETCHED

    monkeypatch.setattr("skillgit.app.sources.data_fetch.fetch", fetch)
    assert (
        skillgit("plugins", "searchqa", "--fetch", "there").err
        == "fetching the place at v1: 2 files, 1.0 MB; licence: unknown\n"
    )
    assert skillgit("plugins", "searchqa", "--fetch", "there", *quiet).err == ""


def test_the_live_display_shows_how_far_a_fetch_is():
    stream = io.StringIO()
    console = Console(file=stream, width=80, color_system=None)
    watcher = LiveFetchWatcher(Diagnostics(stream, Screen(terminal=True, width=80)), lambda: sample.NOW, console)
    with console.capture() as capture:
        for total in (284_000_000, 0):
            watcher.progress(FetchProgress(name="a.parquet", number=2, files=4, done=71_000_000, total=total))
            console.print(watcher)
    assert capture.get().splitlines() == [
        "▶ ━━━━───────────  25%  71.0 of 284.0 MB  2/4 a.parquet",
        "▶ ━━━━───────────  25%  71.0 MB  2/4 a.parquet",
    ]
