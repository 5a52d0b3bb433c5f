"""Items of every form in which SearchQA is published: the crawl, the splits of others, and skillgit's own rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.files import read_plain
from skillgit.plugin.environment import PublicSource, SourceKind
from skillgit.plugin.rows import read_each, text_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


Row = Mapping[str, object]
HINT = "skillgit envs searchqa lists the fields of an item"


def read_items(files: Sequence[Path]) -> list[Item]:
    """Return the items of one file of many items, or of many files of one item.

    Raises:
        DataError: The files are no data, or none of the known shapes.
    """
    if len(files) > 1:
        strays = [path for path in files if not is_single_crawl(path)]
        if strays:
            raise DataError(
                f"{files[0].parent} has {len(files)} data files and {strays[0].name} is not a single crawled item",
                hint="keep one *.json or *.jsonl file in the folder",
            )
    return [item for path in files for item in read_file(path)]


def read_file(path: Path) -> list[Item]:
    """Return the items of one file.

    Raises:
        DataError: It is not a data file, or a row in it is none of the known shapes.
    """
    return read_each((path,), lambda row, _: _items(row.where, row.value, row.name))


def is_single_crawl(path: Path) -> bool:
    """Say whether a file is one item as the crawler left it."""
    try:
        value = json.loads(read_plain(path, most=None, follow=True))
    except (OSError, ValueError):
        return False
    return isinstance(value, dict) and "search_results" in value


def _items(where: str, row: object, name: str) -> Iterator[Item]:
    if not isinstance(row, dict):
        raise DataError(f"{where} is not an object with question and answers", hint=HINT)
    if "header" in row and "qas" not in row:
        return
    if "qas" in row:
        context = _context(where, row)
        for question in _list(where, row, "qas"):
            yield _item(where, question, name=str(question.get("qid", "")), context=context)
    elif "search_results" in row:
        results = _list(where, row, "search_results")
        yield _item(where, row, name=name, context=" ".join(_documents(results)))
    else:
        yield _item(where, row, name=name, context=_context(where, row))


def _item(where: str, row: Row, *, name: str, context: str) -> Item:
    identity = name if "search_results" in row and name else text_field(where, row, "qid", "id", "key") or name
    if not identity:
        raise DataError(f"{where} has no id", hint="give every row an 'id' or a 'key'")
    if "question" not in row:
        raise DataError(f"{where} has no question; it has {', '.join(sorted(row)) or 'nothing'}", hint=_without(row))
    question = row["question"]
    if not isinstance(question, str) or not question.strip():
        raise DataError(f"{where} has an empty question, or one that is not text", hint=HINT)
    content = {"question": question.strip(), "context": context, "answers": _answers(where, row)}
    try:
        return Item(id=identity, content=content, task_type=text_field(where, row, "task_type") or "default")
    except DataError as error:
        raise DataError(f"{where}: {error.message}", hint=error.hint) from error


def _without(row: Row) -> str:
    if set(row) <= {"id", "key"}:
        return "this is a list of ids; the questions themselves have to be joined to it first"
    return "known are rows with question, context and answers; MRQA; and the crawl with search_results"


def _answers(where: str, row: Row) -> list[str]:
    """Return the accepted answers, in whichever of the known ways they are written.

    They are ``answers``, else ``answer``, else what MRQA detected in the context: a text, a list of texts, or
    ``{"text": [...]}``.
    """
    value = row.get("answers", row.get("answer"))
    if not value:
        value = _detected(where, row) or value
    if isinstance(value, Mapping):
        value = value.get("text")
    answers = [value] if isinstance(value, str | int) else value
    if not isinstance(answers, list) or not all(_is_answer(answer) for answer in answers):
        raise DataError(f"{where} has no answers", hint="'answers' is a list of texts, or one text")
    texts = [str(answer) for answer in answers if str(answer).strip()]
    if not texts:
        raise DataError(f"{where} has no answer that is not empty", hint=HINT)
    return texts


def _is_answer(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _detected(where: str, row: Row) -> list[object]:
    """Return the answers that MRQA found in the context, each once."""
    answers = _list(where, row, "detected_answers") if row.get("detected_answers") else []
    return list(dict.fromkeys(answer.get("text") for answer in answers))


def _context(where: str, row: Row) -> str:
    context = row.get("context")
    if context is None:
        return ""
    if not isinstance(context, str):
        raise DataError(f"{where} has a context that is not text", hint=HINT)
    return context.strip()


def _list(where: str, row: Row, key: str) -> list[Row]:
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise DataError(f"{where} has a '{key}' that is not a list of objects", hint=HINT)
    return value


def _documents(results: list[Row]) -> Iterator[str]:
    """Write search results as the published contexts do; results without a snippet are left out, as there."""
    for result in results:
        title, snippet = result.get("title"), result.get("snippet")
        if isinstance(snippet, str) and snippet.strip():
            yield f"[DOC] [TLE] {title if isinstance(title, str) else ''} [PAR] {snippet.strip()}"


LICENCE = "items that come with it: MIT, as skillgit; the public data states no licence"

SOURCE = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="lucadiliello/searchqa",
    revision="c1a979068ba118d85467179b704031d113d689cc",
    files=("data/*.parquet",),
    convert=f"{__name__}:convert",
    layout=(
        "place one *.jsonl or *.json file with id (or key), question, context and answers in each row, and name it with"
        " env.data_path; a manifest of ids beside it is named with env.split_dir and env.split_mode=split_dir"
    ),
)


def convert(rows: Iterable[Mapping[str, object]]) -> Iterator[dict[str, object]]:
    """Return rows of a data file; a missing context is an empty one.

    Args:
        rows: Rows of the dataset, with ``key``, ``question``, ``context`` and ``answers``.

    Raises:
        DataError: A row has not these fields.
    """
    for number, row in enumerate(rows, start=1):
        lacking = [name for name in ("key", "question", "answers") if not row.get(name)]
        if lacking:
            raise DataError(
                f"row {number} of the public data has no {lacking[0]}; it has {', '.join(row) or 'nothing'}",
                hint="the dataset has changed its form: take the revision that skillgit envs searchqa names",
            )
        yield {
            "id": row["key"],
            "question": row["question"],
            "context": row.get("context") or "",
            "answers": row["answers"],
        }
