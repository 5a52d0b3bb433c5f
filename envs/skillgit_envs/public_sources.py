"""Public benchmarks as they are published, and how their rows become those of data files.

The splits of the reference, microsoft/SkillOpt at bdfdc30a8e17309c06cdbe8449f01bdecc120203, are in ``reference_splits``
under its licence: nothing but ids was taken. They are manifests that ``env.split_dir`` may name too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from skillgit.domain.ids import short_digest
from skillgit.errors import DataError
from skillgit.plugin.environment import Assets, Attachment, Defect, PublicSource, PublishedRow, SourceKind
from skillgit_envs.visual_questions import SUFFIXES, picture

if TYPE_CHECKING:
    Table = Iterable[PublishedRow]
    Rows = Iterator[dict[str, object]]


def _reference_split(environment: str) -> dict[str, Path]:
    return {"reference": Path(__file__).parent / "reference_splits" / environment}


SEARCHQA = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="lucadiliello/searchqa",
    # The reference names none; this one changed the description of the same data.
    revision="c1a979068ba118d85467179b704031d113d689cc",
    files=("data/*.parquet",),
    convert=f"{__name__}:searchqa_rows",
    splits=_reference_split("searchqa"),
    layout=(
        "place one *.jsonl or *.json file with id (or key), question, context and answers in each row, and name it with"
        " env.data_path; a manifest of ids next to it is named with env.split_dir and env.split_mode=split_dir"
    ),
)


def searchqa_rows(table: Table) -> Rows:
    """Yield rows of a data file; a missing context is an empty one."""
    for row in table:
        fields = {name: row.get(name) for name in ("question", "answers")}
        yield {"id": row.get("key"), "context": row.fields.get("context") or "", **fields}


DOCVQA = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="lmms-lab/DocVQA",
    other_place="lmms-lab-encoder/DocVQA",
    revision="539088ef8a8ada01ac8e2e6d4e372586748a265e",
    files=("DocVQA/validation-*.parquet",),
    convert=f"{__name__}:docvqa_rows",
    assets=Assets(option="image_dir", folder="pages"),
    licence="Apache-2.0, as its card says; the pages: the terms of the UCSF Industry Documents Library",
    splits=_reference_split("docvqa"),
    layout=(
        "get the annotations and the pages of task 1 from https://rrc.cvc.uab.es/?ch=17, and name the annotations"
        " (*.json) with env.data_path and the folder of pages with env.image_dir"
    ),
)
_DOCVQA_MORE = ("question_types", "ucsf_document_id", "ucsf_document_page_no", "docId")


def docvqa_rows(table: Table) -> Rows:
    """Yield rows of a data file, each with its page as a picture named after question and document."""
    for row in table:
        identity, document = row.get("questionId"), row.get("docId")
        yield {
            "id": str(identity),
            "question": row.get("question"),
            "answers": row.get("answers"),
            "image": picture(f"q{identity}_d{document}", row, row.get("image"), suffix=".png"),
            **{name: row.fields[name] for name in _DOCVQA_MORE if name in row.fields},
        }


LIVEMATHEMATICIAN_CUE = "One of the remaining options is correct, but a stronger result can be proven"
_MEASURED = "measured on the published files"
LIVEMATHEMATICIANBENCH = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="LiveMathematicianBench/LiveMathematicianBench",
    revision="b72450f6ce96c26158d64d945a5d31ef7727be41",
    files=("data/*/qa_*_final.json",),
    convert=f"{__name__}:livemathematicianbench_rows",
    splits=_reference_split("livemathematicianbench"),
    defects=(
        Defect(
            sentence=f'the choice "{LIVEMATHEMATICIAN_CUE}" is in 85 of the 177 items and right in all 85, so that it'
            " scores .480 without the question; env.edition leaves these items out unless it is published",
            source="issue 192 of microsoft/SkillOpt, whose authors left the same items out",
        ),
        Defect(
            sentence="of all 177 items the shortest choice is right in .525, the longest in .040, and always A in .226",
            source=_MEASURED,
        ),
    ),
    layout=(
        "place its folder data, which holds <month>/qa_<month>_final.json for each month, and name it with"
        " env.data_path"
    ),
)
MONTH = re.compile(r"20\d{2}(?:0[1-9]|1[0-2])")


def livemathematicianbench_rows(table: Table) -> Rows:
    """Yield rows of a data file; month and number, which are unique together, are the id."""
    for row in table:
        month = MONTH.search(row.file)
        if month is None:
            raise DataError(f"{row.file} names no month", hint="files are called qa_<month>_final.json")
        yield {**row.fields, "id": f"{month.group()}:{row.get('no')}", "month": month.group()}


SPREADSHEETBENCH = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="KAKA22/SpreadsheetBench",
    revision="ab0b742b0fc95b946f212d80ac7771b5531272e4",
    files=("spreadsheetbench_verified_400.tar.gz",),
    rows=("*dataset.json",),
    convert=f"{__name__}:spreadsheetbench_rows",
    assets=Assets(option="data_root", folder="workbooks", files=("*spreadsheet/*.xlsx",), root="spreadsheet"),
    licence="CC BY-SA 4.0",
    splits=_reference_split("spreadsheetbench"),
    layout=(
        "unpack an archive of KAKA22/SpreadsheetBench, name its dataset.json with env.data_path, and the folder that"
        " holds the folder spreadsheet with env.data_root"
    ),
)


def spreadsheetbench_rows(table: Table) -> Rows:
    """Yield rows of a data file; ids, of which some are numbers, are texts."""
    for row in table:
        yield {**row.fields, "id": str(row.get("id"))}


_OFFICEQA_TEXTS = "treasury_bulletins_parsed/transformed"
OFFICEQA = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="databricks/officeqa",
    revision="8ecbf18d3833daf4750a903d14963e4c4c1d4cd8",
    files=("officeqa_full.csv", f"{_OFFICEQA_TEXTS}/*.txt", f"{_OFFICEQA_TEXTS}/*.zip"),
    rows=("officeqa_full.csv",),
    convert=f"{__name__}:officeqa_rows",
    assets=Assets(option="docs_dir", folder="documents", files=("*.txt",), root="transformed"),
    licence="CC BY-SA 4.0",
    splits=_reference_split("officeqa"),
    layout=(
        "ask for access at https://huggingface.co/datasets/databricks/officeqa; name the CSV file of the questions with"
        " env.data_path and the folder of the documents as text, best the one with page marks, with env.docs_dir; keep"
        " the one out of the other"
    ),
)


def officeqa_rows(table: Table) -> Rows:
    for row in table:
        yield {"id": row.get("uid"), **row.fields}


_ALFWORLD_ARCHIVE = "json_2.1.3_tw-pddl.zip"
_ALFWORLD_GAMES = "*/game.tw-pddl"
_ALFWORLD_UNPLAYABLE = ("movable", "Sliced")
"""In the names of folders whose games ALFWorld leaves out: TextWorld's domain lacks these actions."""
ALFWORLD = PublicSource(
    kind=SourceKind.WEB,
    place="https://github.com/alfworld/alfworld/releases/download/{revision}",
    revision="0.4.2",
    files=(_ALFWORLD_ARCHIVE,),
    digests={_ALFWORLD_ARCHIVE: "sha256:5df77ea759f2211a4106082839ddbbb790f1ba4e7d097ed732cf453f72aa36cf"},
    rows=(_ALFWORLD_GAMES,),
    convert=f"{__name__}:alfworld_rows",
    assets=Assets(option="data_root", folder="games", files=(_ALFWORLD_GAMES,), root="json_2.1.1"),
    licence="MIT",
    splits=_reference_split("alfworld"),
    layout=(
        "run alfworld-download of the package alfworld, and name its json_2.1.1 with env.split_dir and"
        " env.split_mode=split_dir"
    ),
)


def alfworld_plays(name: str) -> bool:
    """Say whether ALFWorld would play the game at the path ``name``, if it is solvable."""
    return not any(part in name for part in _ALFWORLD_UNPLAYABLE)


def alfworld_rows(table: Table) -> Rows:
    """Yield a row for each game that ALFWorld would play; the folder of a game is its id."""
    for row in table:
        if alfworld_plays(row.file) and row.fields.get("solvable"):
            yield {"id": PurePosixPath(row.file).parent.as_posix(), "gamefile": row.file}


_SEAL_HARD = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="vtllms/sealqa",
    revision="99f54adaf38bbc23e65fb218b0192cff3625fa76",
    files=("seal[-_]hard*.parquet", "*/seal[-_]hard*.parquet"),
    convert=f"{__name__}:sealqa_rows",
    licence="Apache-2.0, as others say",
    settings={"revision": "{revision}"},  # answers are updated, so that it is part of what identifies scores
    layout=(
        "write a subset with its columns as JSON lines into seal_0.jsonl, seal_hard.jsonl or longseal.jsonl,"
        " name it with env.data_path, and write its revision into env.revision"
    ),
)
_SEAL_0 = replace(_SEAL_HARD, files=("seal[-_]0*.parquet", "*/seal[-_]0*.parquet"))
_LONGSEAL = replace(_SEAL_HARD, files=("*longseal*.parquet",), settings={**_SEAL_HARD.settings, "mode": "documents"})
SEALQA = replace(_SEAL_HARD, subsets={"seal_0": _SEAL_0, "seal_hard": _SEAL_HARD, "longseal": _LONGSEAL})


def sealqa_rows(table: Table) -> Rows:
    """Yield rows of a data file with all their columns; the data have no ids, so that the question makes one."""
    for row in table:
        yield {**row.fields, "id": short_digest(str(row.get("question")).strip())}


_BABYVISION_ARCHIVE = "data/babyvision_data.zip"
BABYVISION = PublicSource(
    kind=SourceKind.WEB,
    place="https://github.com/UniPat-AI/BabyVision/raw/{revision}",
    revision="7f92fd4b1dc1c68b7b936a9bc09c68b4a944a55a",
    files=(_BABYVISION_ARCHIVE,),
    digests={_BABYVISION_ARCHIVE: "md5:498d4a3dbdc33fa443b1cb2eee41ece1"},
    rows=("*meta_data.jsonl",),
    convert=f"{__name__}:babyvision_rows",
    assets=Assets(option="image_dir", folder="pictures", files=("*images/*",), root="images"),
    licence="MIT, as its card on the hub says; the repository says for research",
    layout="unpack data/babyvision_data.zip, and name its meta_data.jsonl with env.data_path",
)


def babyvision_rows(table: Table) -> Rows:
    for row in table:
        yield {"id": str(row.get("taskId")), **row.fields}


_MATHVERSE_PICTURES = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="AI4Math/MathVerse",
    revision="96641f2457cd16c28be227a47371e41366d9607e",
    files=("*testmini.parquet", "testmini/*.parquet"),
    convert=f"{__name__}:mathverse_rows",
    assets=Assets(option="image_dir", folder="diagrams"),
    licence="MIT",
    defects=(
        Defect(sentence="of the problems with choices, always B is right in .312", source=_MEASURED),
        Defect(
            sentence="of Text Only, four problems are there twice: 443 and 446, 601 and 452, 596 and 451, 619 and 455",
            source=_MEASURED,
        ),
    ),
    settings={"problem_version": "Text Lite"},
    layout=(
        "get testmini.json and images.zip, unpack the pictures next to the file, name it with env.data_path and one of"
        " its five versions with env.problem_version; testmini_text_only.json needs no pictures"
    ),
)
_MATHVERSE_TEXTS = replace(
    _MATHVERSE_PICTURES, files=("testmini_text_only.json",), assets=None, settings={"problem_version": "Text Only"}
)
MATHVERSE = replace(_MATHVERSE_PICTURES, subsets={"text_only": _MATHVERSE_TEXTS})


def mathverse_rows(table: Table) -> Rows:
    """Yield rows of a data file; the diagram of a row, if it has one, is a picture named after it."""
    for row in table:
        identity = str(row.get("sample_index"))
        image = picture(identity, row, row.get("image")) if row.fields.get("image") else ""
        yield {**row.fields, "id": identity, "image": image}


_MMRB_PICTURES = tuple(f"*{suffix}" for suffix in SUFFIXES)
MMRB = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="HarrytheOrange/MMRB",
    files=("*_human.json", "*.parquet", *_MMRB_PICTURES, "*.zip", "*.tar.gz"),
    rows=("*_human.json", "*.parquet"),
    convert=f"{__name__}:mmrb_rows",
    assets=Assets(option="image_dir", folder="pictures", files=_MMRB_PICTURES),
    layout="unpack it, and name MMRB_data.json or the folder of a subtask with env.data_path",
)


def mmrb_identity(*parts: str) -> str:
    """Return the id of an item by its source, subtask and index."""
    return re.sub(r"[\s,]+", "-", ":".join(filter(None, parts)))


def mmrb_rows(table: Table) -> Rows:
    """Yield rows of a data file; the authors' code drops later rows of the same id, and so does this."""
    ids: set[str] = set()
    for row in table:
        source = str(row.fields.get("source") or "")
        name = mmrb_identity(source, str(row.get("subtask")), str(row.get("index")))
        if name not in ids:
            ids.add(name)
            yield {**row.fields, "id": name, "image_paths": list(_pictures(row, name))}


def _pictures(row: PublishedRow, name: str) -> Iterator[str | Attachment]:
    """Yield the pictures of a row: files named from its folder on, or values of a table."""
    images = row.get("image_paths", "images")
    if not isinstance(images, list):
        raise DataError(f"row {row.number} of {row.file} has no list of pictures", hint="take another --revision")
    for number, image in enumerate(images):
        if isinstance(image, str):
            yield (PurePosixPath(row.file).parent / image).as_posix().removeprefix("./")
        else:
            yield picture(f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}_{number}", row, image)


_SWEBENCH_LITE = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="SWE-bench/SWE-bench_Lite",
    other_place="princeton-nlp/SWE-bench_Lite",
    files=("*test*.parquet",),
    convert=f"{__name__}:swebench_rows",
    licence="MIT; issues and patches: the licences of their projects",
    layout="write its rows as JSON lines, and name the file with env.data_path",
)
_SWEBENCH_VERIFIED = replace(
    _SWEBENCH_LITE, place="SWE-bench/SWE-bench_Verified", other_place="princeton-nlp/SWE-bench_Verified"
)
_SWEBENCH_FULL = replace(_SWEBENCH_LITE, place="SWE-bench/SWE-bench", other_place="princeton-nlp/SWE-bench")
_SWEBENCH_MULTILINGUAL = replace(_SWEBENCH_LITE, place="SWE-bench/SWE-bench_Multilingual", other_place="")
SWEBENCH = replace(
    _SWEBENCH_LITE,
    subsets={
        "lite": _SWEBENCH_LITE,
        "lite_dev": replace(_SWEBENCH_LITE, files=("*dev*.parquet",)),
        "verified": _SWEBENCH_VERIFIED,
        "full": _SWEBENCH_FULL,
        "multilingual": _SWEBENCH_MULTILINGUAL,
    },
)
"""No revision is pinned: since August 2026 the rows have columns that the evaluation needs, and no commit is known."""
_SWEBENCH_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")


def swebench_rows(table: Table) -> Rows:
    """Yield rows with all their columns; lists of tests that are texts of JSON become lists."""
    for row in table:
        lists = {name: _tests(row, name) for name in _SWEBENCH_LISTS}
        yield {**row.fields, "id": row.get("instance_id"), **lists}


def _tests(row: PublishedRow, name: str) -> list[str]:
    value = row.fields.get(name)
    try:
        tests = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        tests = None
    if not isinstance(tests, list) or not all(isinstance(test, str) for test in tests):
        raise DataError(f"row {row.number} of {row.file} has no list {name}", hint="take another --revision")
    return tests
