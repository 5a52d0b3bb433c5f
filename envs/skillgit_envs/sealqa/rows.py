"""Rows of SealQA as they are published, and the items that they become.

What would give the answer away stays behind in the row: the gold pages, the labels of evidence and freshness, and the
canary, which is in every row and therefore names none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.domain.ids import short_digest
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.data_rows import Row, check_storable, read_each, text_field
from skillgit_envs.shipped_environment import fields_hint, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SUBSETS = ("seal_0", "seal_hard", "longseal")
HAYSTACKS = (12, 20, 30)


def read_items(files: Sequence[Path], *, subset: str = "", documents: int = 0) -> list[Item]:
    """Return the items of data files, or of those named after ``subset``, each with its haystack of ``documents``."""
    own = [path for path in files if not subset or subset in _names(path)]
    if not own:
        raise DataError(
            f"none of the data files in {files[0].parent} is named after {subset}",
            hint=f"call one {subset}.jsonl, or leave env.subset empty",
        )
    return read_each(own, lambda row, _: [_item(row, documents)])


def _names(path: Path) -> tuple[str, str]:
    stem, folder = (name.lower().replace("-", "_") for name in (path.stem, path.parent.name))
    return stem, folder


def _item(row: Row, documents: int) -> Item:
    fields, where = row.fields, row.where
    question, answer = text_field(where, fields, "question"), text_field(where, fields, "answer", "ground_truth")
    require(where, "sealqa", {"question": question, "answer": answer})
    content: dict[str, object] = {"question": question, "answer": answer}
    if documents:
        content["documents"] = _documents(where, fields, f"{documents}_docs")
    return Item(id=short_digest(question), content=content, task_type=text_field(where, fields, "topic") or "Others")


def _documents(where: str, fields: Mapping[str, object], column: str) -> list[dict[str, str]]:
    """Return title, date and text of the documents in ``column``; in CSV its cell is JSON."""
    value = fields.get(column) or []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} has {column} that are no JSON", hint="make JSON lines of the table") from error
        check_storable(where, value)
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        raise DataError(f"{where} has no {column}", hint="only longseal has documents: env.subset=longseal")
    documents = [{name: text_field(where, entry, name) for name in ("title", "date", "text")} for entry in value]
    if not all(document["text"] for document in documents):
        raise DataError(f"{where} has a document without text in {column}", hint=fields_hint("sealqa"))
    return documents
