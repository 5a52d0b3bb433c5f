"""Items of the benchmark, and what the target reads of one: the question, and its choices in an order of their own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, cast

from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.rows import read_each, text_field

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.plugin.rows import Row


MOST_CHOICES = 26
_MONTH = re.compile(r"20\d{2}(?:0[1-9]|1[0-2])")
_HINT = "skillgit envs livemathematicianbench lists the fields of an item"


def read_items(files: Sequence[Path]) -> list[Item]:
    """Return the items of data files.

    Raises:
        DataError: A row has no question, no choices or no right choice.
    """
    return read_each(files, lambda row, path: [_item(row, path)])


def _item(row: Row, path: Path) -> Item:
    fields = row.fields
    mcq = fields.get("mcq", fields)
    if not isinstance(mcq, Mapping):
        raise DataError(f"{row.where}: 'mcq' is not an object", hint=_HINT)
    question = _text(mcq, "question")
    if not question:
        raise DataError(f"{row.where} has no question", hint=_HINT)
    choices, correct = _choices(row.where, mcq)
    types = fields.get("theorem_type") or []
    names = [types] if isinstance(types, str) else types
    content = {
        "question": question,
        "choices": choices,
        "correct": correct,
        "theorem": _text(fields, "theorem"),
        "sketch": _text(fields, "sketch"),
        "types": [str(kind) for kind in names] if isinstance(names, list) else [],
    }
    return Item(
        id=_identity(row, path), content=content, task_type=content["types"][0] if content["types"] else "default"
    )


def _choices(where: str, mcq: Mapping[str, object]) -> tuple[list[str], str]:
    """Return all choices, in the order of the file, and the right one; it may stand apart from the others."""
    entries = mcq.get("choices")
    if not isinstance(entries, list) or not all(isinstance(choice, Mapping | str) for choice in entries):
        raise DataError(f"{where} has no list of choices", hint=_HINT)
    pairs = [
        (_text(choice, "label"), _text(choice, "text")) if isinstance(choice, Mapping) else ("", choice.strip())
        for choice in entries
    ]
    correct = _correct(mcq.get("correct_choice"), dict(pairs))
    texts = [text for _, text in pairs]
    if correct not in texts:
        texts.insert(0, correct)
    if not correct or not all(texts):
        raise DataError(f"{where} does not say which choice is right, or has an empty one", hint=_HINT)
    if len(set(texts)) != len(texts) or not 2 <= len(texts) <= MOST_CHOICES:  # noqa: PLR2004 - one is no choice
        raise DataError(f"{where} has choices that are equal, fewer than 2 or more than {MOST_CHOICES}", hint=_HINT)
    return texts, correct


def _correct(value: object, by_label: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):
        return _text(value, "text") or by_label.get(_text(value, "label"), "")
    return by_label.get(value.strip(), value.strip()) if isinstance(value, str) else ""


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def _identity(row: Row, path: Path) -> str:
    """Return the id, or month and number, which identify an item of the monthly files."""
    fields = row.fields
    if identity := text_field(row.where, fields, "id"):
        return identity
    number = text_field(row.where, fields, "no")
    match = _MONTH.search(path.name) or _MONTH.search(path.parent.name)
    month = text_field(row.where, fields, "month") or (match.group() if match else "")
    if not number or not month:
        raise DataError(f"{row.where} has neither an id nor a month and a number", hint="give every row an 'id'")
    return f"{month}:{number}"


EXAMPLE = Item(
    id="example", content={"question": "question", "choices": ["one", "two"], "theorem": "theorem", "sketch": "sketch"}
)
"""An item whose prompt identifies how prompts are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownItem:
    """What the target sees of an item.

    Attributes:
        shuffle: Whether the choices are shuffled; in the public files the right one always comes first.
        seed: Seed of their order.
        theorem: Whether the theorem is shown.
        sketch: Whether the sketch of its proof is shown.
    """

    shuffle: bool = True
    seed: int = 42
    theorem: bool = False
    sketch: bool = False


def arranged(item: Item, display: ShownItem) -> dict[str, str]:
    """Return label to choice; the order depends on seed, item and choices alone."""
    texts = cast("Sequence[str]", item.content["choices"])
    if display.shuffle:
        # A sort by digest, for the standard library does not promise that its shuffle stays the same.
        texts = sorted(texts, key=lambda text: hashlib.sha256(f"{display.seed}:{item.id}:{text}".encode()).digest())
    return dict(zip(ascii_uppercase, texts, strict=False))


def question(item: Item, display: ShownItem) -> str:
    """Return the user prompt."""
    listing = "\n".join(f"{label}. {text}" for label, text in arranged(item, display).items())
    extras = {"theorem": display.theorem, "sketch": display.sketch}
    more = "".join(f"\n\n<{key}>\n{item.content[key]}\n</{key}>" for key, use in extras.items() if use)
    return f"<question>\n{item.content['question']}\n</question>\n\n<choices>\n{listing}\n</choices>{more}"
