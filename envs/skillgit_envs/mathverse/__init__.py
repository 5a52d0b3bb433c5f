"""MathVerse: problems with diagrams, in five versions that move information from the text into the picture.

Three rules say whether an answer is right. ``official``: a model compares what was extracted with the right answer,
for free answers and choices alike, as the benchmark's authors do (ZrrSkywalker/MathVerse,
``evaluation/score_answer_s2.py``); a reply that is neither 0 nor 1 is asked for once more and is then a fault, where
theirs asks without end. ``skillopt``: a choice is right if it is the letter alone, a free answer if it is the same
after LaTeX and blanks are gone, else a model compares; rows whose right answer is not a letter can never be solved.
``rules``: no model is asked; letters are read in any usual form, rows whose right answer is a text or several letters
can be solved, and values are compared as numbers and units.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never, cast

from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row
from skillgit.plugin.environment import Judge, PublishedRow
from skillgit_envs.choices import LABEL_SCORER, chosen
from skillgit_envs.quantities import NUMBER_SCORER, same_value
from skillgit_envs.questions import RightOrWrong, VisualQuestions, picture
from skillgit_envs.shipped_environment import require

_KINDS = ("multi-choice", "free-form")


class AnswerRule(StrEnum):
    """Who compares an answer with the right one."""

    RULES = "rules"
    OFFICIAL = "official"
    SKILLOPT = "skillopt"


SCORERS = {
    AnswerRule.RULES: f"mathverse-rules/1 {LABEL_SCORER} {NUMBER_SCORER}",
    AnswerRule.OFFICIAL: "mathverse-judge/1",
    AnswerRule.SKILLOPT: "mathverse-skillopt/1",
}
"""What identifies each rule; it changes whenever a score can change."""
_HEAD = re.compile(r"^\s*Choices?:\s*$", re.MULTILINE)
_CHOICE = re.compile(r"^\s*([A-G])\s*[:.)]\s*(.*?)\s*(?=^\s*[A-G]\s*[:.)]|\Z)", re.MULTILINE | re.DOTALL)
_VERDICT = re.compile(r"(?:judg(?:e)?ment\s*:\s*)?([01])\s*\.?", re.IGNORECASE)
_UNSEEN = "The problem is in the picture."


def choices(question: str) -> dict[str, str]:
    r"""Return the choices that a problem lists, by letter; none where it lists none.

    >>> choices("Find x.\nChoices:\nA:30°\nB:45°")
    {'A': '30°', 'B': '45°'}
    """
    heads = list(_HEAD.finditer(question))
    return dict(_CHOICE.findall(question[heads[-1].end() :])) if heads else {}


def published(table: Iterable[PublishedRow]) -> Iterator[dict[str, object]]:
    """Yield rows of a data file; the diagram of a row, if it has one, is a picture named after it."""
    for row in table:
        identity = str(row.get("sample_index"))
        image = picture(identity, row, row.get("image")) if row.fields.get("image") else ""
        yield {**row.fields, "id": identity, "image": image}


class MathVerse(RightOrWrong, VisualQuestions):
    """Mathematical problems about diagrams, scored by rules or by a judge."""

    info = read_card(Path(__file__).parent)

    scorers = SCORERS
    judges = (AnswerRule.OFFICIAL, AnswerRule.SKILLOPT)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._version = self._text("problem_version") if self._brings_data else ""

    @property
    def _grading(self) -> Sequence[str]:
        scorer, *judge = super()._grading
        return [scorer, _UNSEEN, *judge]

    def _verdicts(self, item: Item) -> int:
        return int(self.asks_judge and (self._scorer == AnswerRule.OFFICIAL or item.content["kind"] == "free-form"))

    def _read(self, files: Sequence[Path]) -> Sequence[Item]:
        """Return the items of one version: two versions of a problem could end up in different splits."""
        items = super()._read(files)
        versions = sorted({str(item.content["version"]) for item in items})
        if len(versions) > 1:
            problem = f"the data hold {len(versions)} versions of each problem: {', '.join(versions)}"
            raise DataError(problem, hint="choose one with env.problem_version")
        if not items:
            problem = f"the data hold no problem of the version '{self._version}'"
            raise DataError(problem, hint="check env.problem_version")
        return items

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        if self._version not in {"", content["version"]}:
            return None
        image, metadata = content["images"], row.fields.get("metadata")
        require(row.where, "mathverse", {"question or image": content["question"] or image})
        if content["kind"] not in _KINDS:
            problem = f"{row.where} has the question_type '{content['kind']}'"
            raise DataError(problem, hint=f"it is {' or '.join(_KINDS)}")
        topic = cast("Mapping[str, object]", metadata) if isinstance(metadata, dict) else {}
        # The authors report subject and subfield.
        group = "/".join(str(topic[key]) for key in ("subject", "subfield") if topic.get(key)) or "other"
        return super().item(row, {**content, "images": [image] if image else [], "task_type": group}, folder)

    def answer_choices(self, item: Item) -> Mapping[str, str] | None:
        if self._verdicts(item):
            return None
        return choices(str(item.content["for_eval"])) if item.content["kind"] == "multi-choice" else {}

    def secrets(self, item: Item) -> Secrets:
        """Return the answer and the problem; a letter alone is not secret."""
        answer, question = str(item.content["answer"]), str(item.content["for_eval"])
        return Secrets(answers=(answer,) if item.content["kind"] == "free-form" else (), inputs=(question,))

    def question(self, item: Item) -> str:
        return f"<problem>\n{str(item.content['question']).strip() or _UNSEEN}\n</problem>"

    async def is_right(self, item: Item, answer: str, judge: Judge) -> bool:
        gold, is_choice = str(item.content["answer"]), item.content["kind"] == "multi-choice"
        match rule := AnswerRule(self._scorer):
            case AnswerRule.RULES if is_choice:
                return chosen(answer, gold, choices(str(item.content["for_eval"])))
            case AnswerRule.RULES:
                return same_value(answer, gold)
            case AnswerRule.OFFICIAL:
                return await self._judged(item, answer, judge)
            case AnswerRule.SKILLOPT if is_choice:
                return answer.strip().upper().rstrip(".):") == gold.strip()
            case AnswerRule.SKILLOPT:
                return _bare(answer) == _bare(gold) or await self._judged(item, answer, judge)
            case _:
                assert_never(rule)

    async def _judged(self, item: Item, answer: str, judge: Judge) -> bool:
        texts = {"problem": item.content["for_eval"], "right-answer": item.content["answer"], "given-answer": answer}
        return await self._ask(judge, texts, _verdict, "0 or 1")


def _verdict(reply: str) -> bool:
    match = _VERDICT.fullmatch(reply.strip())
    if match is None:
        raise ValueError("it is neither 0 nor 1")
    return match[1] == "1"


def _bare(text: str) -> str:
    """Return ``text`` as the reference compares it: without LaTeX's signs and blanks, in lower case."""
    return re.sub(r"\\mathrm|[${}~\s]", "", text).lower()
