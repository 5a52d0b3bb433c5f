"""The items of OfficeQA: rows of CSV or JSON, with the documents that each of them names."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.rows import check_storable, read_each, text_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.plugin.rows import Row
    from skillgit_envs.officeqa.corpus import Corpus

_HINT = "skillgit envs officeqa lists the fields of an item"
_BETWEEN_FILES = re.compile(r"[\r\n,;]+")
_BETWEEN_ADDRESSES = re.compile(r"\s+|[,;](?=\s*https?:)")


def read_items(files: Sequence[Path], *, corpus: Corpus) -> list[Item]:
    """Return the items of data files.

    Raises:
        ConfigError: A data file lies among the documents.
        DataError: A row has no id, question or answer, or names a document that is not there.
    """
    corpus.refuse_keys(files)
    return read_each(files, lambda row, _: [_item(row, corpus)])


def _item(row: Row, corpus: Corpus) -> Item:
    fields = row.fields
    identity = text_field(row.where, fields, "uid", "id") or row.name
    question, answer = text_field(row.where, fields, "question"), _first(fields, "answer", "ground_truth")
    for label, value in (("uid", identity), ("question", question), ("answer", answer)):
        if not value:
            raise DataError(f"{row.where} has no {label}", hint=_HINT)
    names = _several(row.where, fields, "source_files", _BETWEEN_FILES)
    sources = list(dict.fromkeys(corpus.find(row.where, name) for name in names))
    content = {
        "question": question,
        "answer": answer,
        "source_files": sources,
        "source_docs": _several(row.where, fields, "source_docs", _BETWEEN_ADDRESSES),
        "documents": corpus.digest(sources),
    }
    return Item(
        id=identity, content=content, task_type=text_field(row.where, fields, "difficulty", "category") or "default"
    )


def _first(fields: Mapping[str, object], *names: str) -> str:
    """Return the first of the fields ``names`` that is not empty; a list as it is written."""
    values = (fields.get(name) for name in names)
    cells = (value for value in values if value is not None)
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in cells)
    return next((text.strip() for text in texts if text.strip()), "")


def _several(where: str, fields: Mapping[str, object], name: str, between: re.Pattern[str]) -> list[str]:
    """Return the texts of a field that is a list, a list written as JSON, or a cell of several texts."""
    value = fields.get(name) or []
    if isinstance(value, str):
        value = _json_list(where, name, value) if value.lstrip().startswith("[") else between.split(value)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f"{where} has {name} that are no texts", hint=_HINT)
    return [text.strip() for text in value if text.strip()]


def _json_list(where: str, name: str, text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DataError(f"{where} has {name} that are no list: {text[:60]}", hint='write ["one", "two"]') from error
    check_storable(where, value)
    return value
