"""The items of DocVQA: the official annotations, and the CSV files of the reference."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.rows import read_each, text_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.plugin.rows import Row
    from skillgit_envs.docvqa.pages import Pages

_HINT = "skillgit envs docvqa lists the fields of an item"
_TRAILING_PATH = re.compile(r"\s*document_path:\s*\S+\s*\Z")


def read_items(files: Sequence[Path], *, pages: Pages) -> list[Item]:
    """Return the items of data files.

    Raises:
        DataError: A row has no id, question or answer, or its page is not there.
    """
    return read_each(files, lambda row, path: [_item(row, pages, path.parent)])


def _item(row: Row, pages: Pages, folder: Path) -> Item:
    fields = row.fields
    identity = text_field(row.where, fields, "questionId", "question_id", "id") or row.name
    question = _TRAILING_PATH.sub("", text_field(row.where, fields, "question"))
    image = text_field(row.where, fields, "image", "image_path")
    answers = _answers(row.where, fields)
    for name, value in (("id", identity), ("question", question), ("image", image), ("answers", answers)):
        if not value:
            raise DataError(f"{row.where} has no {name}", hint=_HINT)
    page = pages.find(row.where, image, fields, folder)
    content = {"question": question, "answers": answers, "image": image, "page": page}
    return Item(id=identity, content=content, task_type=_type(row))


def _answers(where: str, fields: Mapping[str, object]) -> list[str]:
    value = next((fields[name] for name in ("answers", "answer", "ground_truth") if fields.get(name)), None)
    if isinstance(value, str):
        value = _list_literal(where, value) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, list):
        return []
    return [str(answer) for answer in value if str(answer).strip()]


def _list_literal(where: str, text: str) -> list[object]:
    """Read a list as Python writes it; any other cell is an answer as it stands, ``1,234`` and ``0.50`` too."""
    try:
        value = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError) as error:
        raise DataError(f"{where} has answers that are no list: {text[:60]}", hint="write ['one', 'two']") from error
    return value if isinstance(value, list) else [text]


def _type(row: Row) -> str:
    fields = row.fields
    types = fields.get("question_types")
    if isinstance(types, list) and types:
        return str(types[0])
    return text_field(row.where, fields, "topic", "category") or "default"
