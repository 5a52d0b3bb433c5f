"""MMRB: questions that take several pictures together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, assert_never, cast

from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row
from skillgit.plugin.environment import Attachment, Judge, PublishedRow
from skillgit_envs.answers import folded
from skillgit_envs.choices import LABEL_SCORER, chosen
from skillgit_envs.quantities import NUMBER_SCORER, same_value
from skillgit_envs.questions import RightOrWrong, VisualQuestions, picture
from skillgit_envs.shipped_environment import fields_hint

_TOKEN = re.compile(r"\{image#(\d+)\}")
_OPTION = re.compile(r"\s*\(?([A-Z])\s*[).:]\s*(.*)", re.DOTALL)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"answer\s*\[\s*([a-z])\s*\]",
        r"answer\s*\[(.*?)\]",
        r"\\boxed\{(.*?)\}",
        r"\A(?-i:([A-Z]))\Z",
        r"final\s+answer\s*(?:is)?\s*[:\uff1a]?\s*\**\s*(\w+)",
        r"\*\*final answer\*\*\s*[:\uff1a]?\s*(\w+)",
        r"(?:answer|the correct choice) is\s+\**(\w+)",
        r"answer\s*[:\uff1a]?\s*[<(]([a-z])[>)]",
        r"answer\s*[:\uff1a]?\s*(.+?)(?:\s|$)",
        r"<\s*([\w.]+)\s*>",
        r"point\s+([a-h])\b",
        r"option\s+([a-d])\b",
        r"\A(?-i:([A-H]))[.):\uff1a\[]",
    )
)
"""What the authors' extractor looks for, in its order and with the brackets that its published text lost."""


class Matching(StrEnum):
    """How an answer is compared with the right one."""

    STRICT = "strict"  # a choice by its letters or text, anything else by its value
    OFFICIAL = "official"
    """As the authors do: equal, or one in the other, ignoring case; "a" is right where "cat" is."""
    SKILLOPT = "skillopt"
    """As the reference does: the letter alone or the option's text, and for free answers one in the other."""


SCORERS = {
    Matching.STRICT: f"mmrb-strict/1 {LABEL_SCORER} {NUMBER_SCORER}",
    Matching.OFFICIAL: "mmrb-official/2",
    Matching.SKILLOPT: "mmrb-skillopt/1",
}
"""What identifies each of them; it changes whenever a score can change."""


def identity_of(*parts: str) -> str:
    """Return the id of an item by its source, subtask and index."""
    return re.sub(r"[\s,]+", "-", ":".join(filter(None, parts)))


def published(table: Iterable[PublishedRow]) -> Iterator[dict[str, object]]:
    """Yield rows of a data file; the authors' code drops later rows of the same id, and so does this."""
    ids: set[str] = set()
    for row in table:
        source = str(row.fields.get("source") or "")
        name = identity_of(source, str(row.get("subtask")), str(row.get("index")))
        if name not in ids:
            ids.add(name)
            yield {**row.fields, "id": name, "image_paths": list(_picture_files(row, name))}


def _picture_files(row: PublishedRow, name: str) -> Iterator[str | Attachment]:
    """Yield the pictures of a row: files named from its folder on, or values of a table."""
    images = row.get("image_paths", "images")
    if not isinstance(images, list):
        raise DataError(f"row {row.number} of {row.file} has no list of pictures", hint="take another --revision")
    for number, image in enumerate(images):
        if isinstance(image, str):
            yield (PurePosixPath(row.file).parent / image).as_posix().removeprefix("./")
        else:
            yield picture(f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}_{number}", row, image)


class MMRB(RightOrWrong, VisualQuestions):
    """Questions about several pictures, scored by the right choice or value."""

    info = read_card(Path(__file__).parent)

    scorers = SCORERS

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        images, subtask = content["images"], content.pop("subtask")
        missing = [n for n in map(int, _TOKEN.findall(content["question"])) if not 1 <= n <= len(images)]
        if missing or not images:
            sentence = f"{row.where} names picture {(missing or [1])[0]} and has {len(images)}"
            raise DataError(sentence, hint=fields_hint("mmrb"))
        identity = identity_of(content.pop("source"), subtask, content.pop("index"))
        return super().item(row, {**content, "id": identity, "task_type": subtask}, folder)

    def answer_choices(self, item: Item) -> Mapping[str, str]:
        listing = map(_OPTION.fullmatch, cast("Sequence[str]", item.content["options"]))
        return {match[1]: match[2] for match in listing if match}

    async def is_right(self, item: Item, answer: str, judge: Judge) -> bool:
        del judge
        return _is_right(answer, str(item.content["answer"]).strip(), self.answer_choices(item), Matching(self._scorer))


def _is_right(answer: str, gold: str, options: Mapping[str, str], scorer: Matching) -> bool:
    match scorer:
        case Matching.STRICT:
            return chosen(answer, gold, options) if options else same_value(answer, gold)
        case Matching.OFFICIAL:
            text, right = extracted(answer).upper(), gold.upper()
            return bool(text) and (text in right or right in text)
        case Matching.SKILLOPT if options:
            return answer.rstrip(".").upper() == gold.upper() or folded(answer) == folded(options.get(gold, "\0"))
        case Matching.SKILLOPT:
            return folded(answer) in folded(gold) or folded(gold) in folded(answer)
        case _:
            assert_never(scorer)


def extracted(answer: str) -> str:
    """Return what the extractor of LesterGong/MMRB c3ef2396 takes out of an answer; all of it if that is nothing."""
    # It was written for replies that say ``Answer[...]``; here the answer is what would be in those brackets.
    match = next(filter(None, (form.search(answer) for form in _FORMS)), None)
    return (match[1].strip().strip("*") if match else answer).strip()
