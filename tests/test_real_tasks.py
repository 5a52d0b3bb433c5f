"""The scripts that make real tasks: the same draw every time, divided splits, and checks that the truth passes."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import run

from skillgit.domain.evaluation import Split
from skillgit_envs.tasks import Tasks
from skillgit_envs.tasks.checks.catalogue import graded
from skillgit_envs.tasks.checks.comparisons import Sheet

sys.path.insert(0, str(Path(__file__).parent / "bench" / "real" / "tasks"))

from drawing import Candidate, draw, quotas

SCRIPTS = Path(__file__).parent / "bench" / "real" / "tasks"
SIZES = {"train": 6, "selection": 6, "test": 12}
WORDS = ("amber", "basalt", "cedar", "dune", "ember", "flint", "garnet", "heath", "iris", "jasper", "kelp", "larch")
LANGUAGES = {"perl": "perl", "python": "python3", "c": "libc6"}


def sentence(number: int, length: int) -> str:
    return " ".join(random.Random(number).choices(WORDS, k=length))  # noqa: S311 - the same words every time


def record(number: int, section: str, **more: str) -> str:
    language = [*LANGUAGES][number % 3]
    fields = {
        "Package": f"lib{number}-{WORDS[number % len(WORDS)]}",
        "Source": f"source-{number // 2} (1.{number})",
        "Version": f"1.{number}-1",
        "Status": "install ok installed",
        "Section": section,
        "Depends": f"{LANGUAGES[language]} (>= 2.0) | other,\n {WORDS[number % 5]}:any",
        "Description": f"{sentence(number, 5)}\n {sentence(number + 1000, 30).capitalize()}.\n .\n Another paragraph.",
        "Tag": f"implemented-in::{language}, role::{'program' if number % 2 else 'shared-lib'},\n use::viewing",
        "Filename": f"pool/main/l/lib{number}_1_all.deb",
        "SHA256": sha256(str(number).encode()).hexdigest(),
        **more,
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


SECTIONS = ("perl", "contrib/net", "utils", "libs")
RECORDS = (
    *(record(number, SECTIONS[number % 4]) for number in range(160)),
    *(record(number, "debug") for number in range(200, 220)),
    *(record(number, "oldlibs") for number in range(220, 240)),
    *(record(number, "utils", Description=f"transitional package {number}") for number in range(240, 260)),
    *(record(number, "elsewhere", Filename=f"./lib{number}.deb", Tag="") for number in range(260, 280)),
)
NAMES = {
    "archive_sections": "archive-section",
    "package_facets": "package-facets",
    "package_synopses": "package-synopsis",
}


def made(script: str, folder: Path, source: Path, *more: str):
    sizes = [word for name, size in SIZES.items() for word in (f"--{name}", str(size))]
    return run(sys.executable, SCRIPTS / f"{script}.py", folder, "--from", source, *sizes, *more)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def source_at(path: Path, seed: int = 0) -> Path:
    records = random.Random(seed).sample(RECORDS, len(RECORDS))  # noqa: S311 - the same order every time
    path.write_text("\n".join(records), encoding="utf-8")
    return path


@pytest.fixture(params=NAMES)
def script(request):
    return request.param


def test_a_draw_depends_on_the_records_and_the_seed_alone(script, tmp_path):
    sources = [source_at(tmp_path / f"source-{seed}", seed) for seed in (0, 1)]
    folders = [tmp_path / name for name in ("first", "again", "shuffled", "other")]
    rest = (sources[0], sources[0], sources[1])
    assert [made(script, *pair).code for pair in zip(folders, rest, strict=False)] == [0, 0, 0]
    assert made(script, folders[3], sources[0], "--seed", "12").code == 0
    first, again, shuffled, other = map(files, folders)
    tasks, skill = f"tasks/{NAMES[script]}.jsonl", f".claude/skills/{NAMES[script]}/SKILL.md"
    assert [*first] == sorted([tasks, skill, "SOURCE.json"])
    assert first == again
    assert first[tasks] == shuffled[tasks]
    assert first[tasks] != other[tasks]
    assert first[skill] == other[skill]


def test_the_splits_share_no_source_package_and_no_question(script, tmp_path):
    done = made(script, tmp_path / "task", source_at(tmp_path / "source"))
    assert done.code == 0, done
    text = (tmp_path / "task" / "tasks" / f"{NAMES[script]}.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    origin = json.loads((tmp_path / "task" / "SOURCE.json").read_text())
    assert Counter(row["split"] for row in rows) == SIZES == origin["draw"]["splits"]
    assert len({row["question"].split("\n", 1)[1] for row in rows}) == len({row["id"] for row in rows}) == len(rows)
    sources = [item["source"] for item in origin["items"]]
    assert len(set(sources)) == len(sources) == len(rows)
    assert origin["read_sha256"] == sha256((tmp_path / "source").read_bytes()).hexdigest()
    numbers = {int(row["question"].split("-")[0].removeprefix("Package: lib")) for row in rows}
    if script != "package_synopses":
        assert max(numbers) < 260, "packages from elsewhere are not in the archive"
    assert numbers.isdisjoint(range(240, 260)), "transitional packages share a label"
    if script == "archive_sections":
        assert {row["answer"] for row in rows} == {"perl", "net", "utils", "libs"}
        assert numbers.isdisjoint(range(200, 240)), "detached symbols and their like share a label"


def test_the_environment_reads_the_items_and_the_truth_passes_every_check(script, tmp_path):
    assert made(script, tmp_path, source_at(tmp_path / "source")).code == 0
    options = {option.name: option.default for option in Tasks.info.options}
    tasks = Tasks({**options, "data_path": f"tasks/{NAMES[script]}.jsonl"}, tmp_path)
    assert {split: len(tasks.items(split)) for split in Split} == dict(zip(Split, SIZES.values(), strict=True))
    for item in tasks.items(Split.TEST):
        *_, last = item.content["checks"]
        truth = json.dumps(last["fields"]) if last["type"] == "json" else last["answers"][0]
        sheet = Sheet(
            prompt="", answer=truth, row={}, products={}, attachments=None, judge=None, sandbox=None, limits=None
        )
        assert asyncio.run(graded(item.content["checks"], sheet))[0].hard == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "source"), ("", "no package|No package"), (RECORDS[0], "items that differ enough, and 24 are needed")],
)
def test_what_is_missing_is_said_in_a_sentence(script, text, words, tmp_path):
    if text is not None:
        (tmp_path / "source").write_text(text, encoding="utf-8")
    done = made(script, tmp_path / "task", tmp_path / "source")
    assert done.code == 1
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert any(word in line for word in words.split("|"))
    assert line.endswith((".", "first."))
    assert not (tmp_path / "task").exists()


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 400), min_size=1), st.integers(0, 500))
def test_quotas_are_all_that_is_wanted_and_no_more_than_there_is(sizes, count):
    quota = quotas(sizes, count)
    assert sum(quota.values()) == min(count, sum(sizes.values()))
    assert all(quota[name] <= size for name, size in sizes.items())
    assert all(
        quota[small] <= quota[large] + 1
        for small in sizes
        for large in sizes
        if sizes[small] <= sizes[large] and quota[small] < sizes[small]
    )


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 3))
def test_no_two_items_of_a_draw_are_alike_or_of_one_origin(seed, per_split, strata):
    candidates = [
        Candidate(
            key=str(number),
            origin=f"o{number // 2}",
            stratum=str(number % (strata + 1)),
            row={"question": sentence(number % 90, 6)},
            provenance={},
        )
        for number in range(120)
    ]
    parts = draw(candidates, dict.fromkeys(SIZES, per_split), seed)
    items = [item for part in parts.values() for item in part]
    assert {len(part) for part in parts.values()} == {per_split}
    assert len({item.origin for item in items}) == len({item.row["question"] for item in items}) == len(items)
