"""MMRB: questions that take several pictures together."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never, cast

from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import DataError
from skillgit.plugin.data_rows import Row, read_each, text_field, text_or_blanks
from skillgit.plugin.environment import EnvironmentInfo, Judge, PublicSource, SourceKind
from skillgit_envs.answers import chosen, folded, graded, same_value
from skillgit_envs.shipped_environment import fields_hint, option, require
from skillgit_envs.visual_questions import DETAILS, VISUAL_OPTIONS, Pictures, VisualQuestions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.evaluation import Scored

_TOKEN = re.compile(r"\{image#(\d+)\}")
_OPTION = re.compile(r"\s*\(?([A-Z])\s*[).:]\s*(.*)", re.DOTALL)
_WRAPPED = (
    re.compile(r"answer\s*\[\s*([A-Z])\s*\]", re.IGNORECASE),
    re.compile(r"answer\s*\[(.*?)\]", re.IGNORECASE | re.DOTALL),
    re.compile(r"\\boxed\{(.*?)\}", re.DOTALL),
    re.compile(r"\(?([A-Z])[).:]?(?:\s.*)?", re.DOTALL),
)
"""The forms in which the authors' extractor looks for an answer, with the brackets that its published text lost."""


class Matching(StrEnum):
    """How an answer is compared with the right one."""

    STRICT = "strict"  # a choice by its letters or text, anything else by its value
    OFFICIAL = "official"
    """As the authors do: equal, or one in the other, whatever the case; "a" is right where "cat" is."""
    SKILLOPT = "skillopt"
    """As the reference does: the letter alone or the option's text, and for free answers one in the other."""


SCORERS = {scorer: f"mmrb-{scorer}/1" for scorer in Matching}
"""What identifies each of them; it changes whenever a score can change."""


def read_items(files: Sequence[Path], *, pictures: Pictures) -> list[Item]:
    """Return the items of data files, merged or one for each subtask."""
    return read_each(files, lambda row, path: [_item(row, pictures, path.parent)])


def _item(row: Row, pictures: Pictures, folder: Path) -> Item:
    fields, where = row.fields, row.where
    source, subtask, index = (text_field(where, fields, key) for key in ("source", "subtask", "index"))
    question, answer = text_or_blanks(where, fields, "question"), text_field(where, fields, "answer")
    require(where, "mmrb", {"subtask": subtask, "index": index, "question": question, "answer": answer})
    images = _texts(fields.get("image_paths"))
    missing = [number for number in map(int, _TOKEN.findall(question)) if not 1 <= number <= len(images)]
    if missing or not images:
        sentence = f"{where} names picture {(missing or [1])[0]} and has {len(images)}"
        raise DataError(sentence, hint=fields_hint("mmrb"))
    content = {
        "question": question,
        "options": _texts(fields.get("options")),
        "images": images,
        "pictures": [pictures.find(where, name, folder) for name in images],
        "answer": answer,
    }
    identity = ":".join(filter(None, (source, subtask, index)))
    return Item(id=re.sub(r"[\s,]+", "-", identity), content=content, task_type=subtask)


def _texts(value: object) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


class MMRB(VisualQuestions):
    """Questions about several pictures, scored by the right choice or value."""

    info = EnvironmentInfo(
        name="mmrb",
        summary="Answer a question that takes several pictures together.",
        fields={
            "question": "what is asked, with the options and with {image#1} where a picture is meant",
            "options": "the options once more, each with its letter; none for a free answer",
            "images": "the files of the pictures in their order, as the data name them",
            "pictures": "digests of the pictures' bytes",
            "answer": "the right letter, several of them, or the right words",
        },
        scorer="hard = soft = whether the answer is right: strict, or one text in the other (official, skillopt)",
        source="pictures drawn for skillgit; MMRB_data.json and the files of subtasks are read from env.data_path",
        options=(
            *VISUAL_OPTIONS,
            option("scorer", "strict", "How answers are compared: strict, official or skillopt."),
        ),
        task_types=("Counting Across Pictures", "What Has Changed", "Visual Ordering"),
        licence="pictures that come with it: MIT, as skillgit; the public data state no licence",
        public=PublicSource(
            kind=SourceKind.MANUAL,
            place="https://huggingface.co/datasets/HarrytheOrange/MMRB",
            layout="unpack it, and name MMRB_data.json or the folder of a subtask with env.data_path",
        ),
    )

    _choices = DETAILS | {"scorer": tuple(Matching)}

    @property
    def _scorer(self) -> Sequence[str]:
        return [SCORERS[Matching(str(self._options["scorer"]))]]

    def _read(self, files: Sequence[Path]) -> list[Item]:
        return read_items(files, pictures=self._pictures)

    def secrets(self, item: Item) -> Secrets:
        """Return the right words and the question; a letter is no secret."""
        answer, question = str(item.content["answer"]), str(item.content["question"])
        return Secrets(answers=() if item.content["options"] else (answer,), inputs=(question,))

    def question(self, item: Item) -> str:
        """Return the question as it stands: the options are part of it, and the pictures follow in their order."""
        return f"<question>\n{item.content['question']}\n</question>"

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        answer, gold = trajectory.answer.strip(), str(item.content["answer"]).strip()
        listing = map(_OPTION.fullmatch, cast("Sequence[str]", item.content["options"]))
        options = {match[1]: match[2] for match in listing if match}
        is_right = bool(answer) and _is_right(answer, gold, options, Matching(str(self._options["scorer"])))
        return graded(gold, answer, right=is_right)


def _is_right(answer: str, gold: str, options: Mapping[str, str], scorer: Matching) -> bool:
    match scorer:
        case Matching.STRICT:
            # Letters that are written together, as AC, are several.
            letters = "\n".join(gold) if re.fullmatch(r"[A-Z]{2,}", gold) else gold
            return chosen(answer, letters, options) if options else same_value(answer, gold)
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
    """Return what the authors' extractor, its brackets restored, takes out of an answer; empty if it finds nothing.

    Source: LesterGong/MMRB c3ef2396, the first five of its patterns; the loose ones behind them are for whole replies.
    """
    matches = (pattern.search(answer) for pattern in _WRAPPED[:-1])
    match = next(filter(None, matches), None) or _WRAPPED[-1].fullmatch(answer)
    return (match[1] if match else answer).strip()
