"""BabyVision: what a child sees before it can read, asked about single pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import ClassVar

from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, read_each, text_field, text_or_blanks
from skillgit.plugin.environment import Judge
from skillgit_envs.choices import LABEL_SCORER, label_of
from skillgit_envs.quantities import NUMBER_SCORER, same_value
from skillgit_envs.shipped_environment import fields_hint, require
from skillgit_envs.short_answers import RightOrWrong, labelled
from skillgit_envs.visual_questions import Pictures, VisualQuestions

_VERDICTS = {"true": True, "false": False}


def read_items(files: Sequence[Path], *, pictures: Pictures) -> list[Item]:
    """Return the items of data files, such as the benchmark's ``meta_data.jsonl`` with its folder ``images``."""
    return read_each(files, lambda row, path: [_item(row, pictures, path.parent)])


def _item(row: Row, pictures: Pictures, folder: Path) -> Item:
    fields, where = row.fields, row.where
    identity, image = text_field(where, fields, "taskId", "id"), text_field(where, fields, "image")
    question = text_or_blanks(where, fields, "question")
    require(where, "babyvision", {"taskId": identity, "image": image, "question": question})
    options = fields.get("options") or []
    choices = [str(choice) for choice in options] if isinstance(options, list) else []
    content = {
        "question": question,
        "choices": choices,
        "images": [image],
        "pictures": [pictures.find(where, image, folder, more_names=(f"images/{image}",))],
        "answer": _gold(where, fields, choices),
    }
    return Item(id=identity, content=content, task_type=text_field(where, fields, "type") or "other")


def _gold(where: str, fields: Mapping[str, object], choices: Sequence[str]) -> str:
    """Return the letter of the right choice, whose number counts from 0 even where it is text, or the right words."""
    if fields.get("ansType") == "blank":
        answer = text_field(where, fields, "blankAns")
        if answer and answer != "null":
            return answer
        raise DataError(f"{where} has no blankAns", hint=fields_hint("babyvision"))
    number = str(fields.get("choiceAns"))
    if not number.isdecimal() or int(number) >= min(len(choices), len(ascii_uppercase)):
        problem = f"{where} has {len(choices)} options, and {number} is the number of none of them"
        raise DataError(problem, hint="choiceAns counts from 0")
    return ascii_uppercase[int(number)]


class BabyVision(RightOrWrong, VisualQuestions):
    """Questions about pictures that need sight and little else, scored by rules or by a judge."""

    info = read_card(Path(__file__).parent)

    _scorers: ClassVar = {
        "rules": f"babyvision-rules/2 {LABEL_SCORER} {NUMBER_SCORER}",
        "official": "babyvision-judge/1",
    }
    _judges = ("official",)

    def _read(self, files: Sequence[Path]) -> list[Item]:
        return read_items(files, pictures=self._pictures)

    def secrets(self, item: Item) -> Secrets:
        """Return the words that are right; a letter is not secret, nor is a question that many pictures share."""
        answer = str(item.content["answer"])
        return Secrets(answers=() if item.content["choices"] else (answer,))

    async def _is_right(self, item: Item, answer: str, judge: Judge) -> bool:
        gold = str(item.content["answer"])
        if self.asks_judge:
            texts = {"asked": self.question(item), "right-answer": gold, "given-answer": answer}
            return await self._ask(judge, texts, _verdict, "True or False")
        if choices := labelled(item):
            return label_of(answer, choices) == gold
        given, right = _entries(answer), _entries(gold)
        return len(given) == len(right) and all(map(same_value, given, right))


def _entries(text: str) -> list[str]:
    """Return words, or the numbers of pairs, as the data write them loosely: without brackets."""
    return [entry.strip(" ()[]{}.") for entry in re.split("[,;\uff0c]", text)]


def _verdict(reply: str) -> bool:
    """Read the judge's word, and nothing that merely contains it: ``not true`` is not a verdict."""
    word = reply.strip().strip(".*`").casefold()
    if word not in _VERDICTS:
        raise ValueError("it is neither True nor False")
    return _VERDICTS[word]
