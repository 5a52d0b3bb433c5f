"""BabyVision: what a child sees before it can read, asked about single pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar

from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, text_field
from skillgit.plugin.environment import Judge
from skillgit_envs.choices import LABEL_SCORER, label_of
from skillgit_envs.quantities import NUMBER_SCORER, same_value
from skillgit_envs.questions import RightOrWrong, VisualQuestions, labelled
from skillgit_envs.shipped_environment import fields_hint

_VERDICTS = {"true": True, "false": False}


def _gold(row: Row, choices: Sequence[str]) -> str:
    """Return the letter of the right choice, whose number counts from 0 even where it is text, or the right words."""
    if row.fields.get("ansType") == "blank":
        answer = text_field(row.where, row.fields, "blankAns")
        if answer and answer != "null":
            return answer
        raise DataError(f"{row.where} has no blankAns", hint=fields_hint("babyvision"))
    number = str(row.fields.get("choiceAns"))
    if not number.isdecimal() or int(number) >= min(len(choices), len(ascii_uppercase)):
        problem = f"{row.where} has {len(choices)} options, and {number} is the number of none of them"
        raise DataError(problem, hint="choiceAns counts from 0")
    return ascii_uppercase[int(number)]


class BabyVision(RightOrWrong, VisualQuestions):
    """Questions about pictures that need sight and little else, scored by rules or by a judge."""

    info = read_card(Path(__file__).parent)

    scorers: ClassVar = {
        "rules": f"babyvision-rules/2 {LABEL_SCORER} {NUMBER_SCORER}",
        "official": "babyvision-judge/1",
    }
    judges = ("official",)

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        content |= {"images": [content["images"]], "answer": _gold(row, content["choices"])}
        return super().item(row, content, folder)

    def _more_names(self, row: Row, name: str) -> Sequence[str]:
        del row
        return (f"images/{name}",)

    def secrets(self, item: Item) -> Secrets:
        """Return the words that are right; a letter is not secret, nor is a question that many pictures share."""
        answer = str(item.content["answer"])
        return Secrets(answers=() if item.content["choices"] else (answer,))

    async def is_right(self, item: Item, answer: str, judge: Judge) -> bool:
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
