"""LiveMathematicianBench: choose the statement that a recent theorem makes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import cast

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets, words
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import DataError
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, read_each, text_field
from skillgit.plugin.environment import Judge, PublishedRow, Target
from skillgit.plugin.splits import Splits, first_items, load_splits
from skillgit_envs.answers import AGAIN, until_answered
from skillgit_envs.choices import LABEL_SCORER, label_of
from skillgit_envs.questions import Questions
from skillgit_envs.shipped_environment import PromptWording, fields_hint, sections

MOST_CHOICES = 26
CUE = "One of the remaining options is correct, but a stronger result can be proven"
MONTH = re.compile(r"20\d{2}(?:0[1-9]|1[0-2])")
_HINT = fields_hint("livemathematicianbench")


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
    return Item(id=_identity(row, path), content=content, task_type=(*content["types"], "default")[0])


def _choices(where: str, mcq: Mapping[str, object]) -> tuple[list[str], str]:
    """Return all choices, in the order of the file, and the right one; it may be apart from the others."""
    entries = mcq.get("choices")
    if not isinstance(entries, list) or not all(isinstance(choice, Mapping | str) for choice in entries):
        raise DataError(f"{where} has no list of choices", hint=_HINT)
    pairs = [
        (_text(choice, "label"), _text(choice, "text")) if isinstance(choice, Mapping) else ("", choice.strip())
        for choice in entries
    ]
    right, by_label = mcq.get("correct_choice"), dict(pairs)
    if isinstance(right, Mapping):
        correct = _text(right, "text") or by_label.get(_text(right, "label"), "")
    else:
        correct = by_label.get(right.strip(), right.strip()) if isinstance(right, str) else ""
    texts = [text for _, text in pairs]
    if correct not in texts:
        texts.insert(0, correct)
    if not correct or not all(texts):
        raise DataError(f"{where} does not say which choice is right, or has an empty one", hint=_HINT)
    if len(set(texts)) != len(texts) or not 2 <= len(texts) <= MOST_CHOICES:  # noqa: PLR2004 - one is not a choice
        raise DataError(f"{where} has choices that are equal, fewer than 2 or more than {MOST_CHOICES}", hint=_HINT)
    return texts, correct


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def _identity(row: Row, path: Path) -> str:
    """Return the id, or month and number, which identify an item of the monthly files."""
    fields = row.fields
    if identity := text_field(row.where, fields, "id"):
        return identity
    number = text_field(row.where, fields, "no")
    match = MONTH.search(path.name) or MONTH.search(path.parent.name)
    month = text_field(row.where, fields, "month") or (match.group() if match else "")
    if not number or not month:
        raise DataError(f"{row.where} has neither an id nor a month and a number", hint="give every row an 'id'")
    return f"{month}:{number}"


def _has_cue(item: Item) -> bool:
    """Say whether an item lists the choice that gives itself away, with any signs around its words."""
    return any(words(text) == _CUE for text in cast("Sequence[str]", item.content["choices"]))


_CUE = words(CUE)
EXAMPLE = Item(
    id="example", content={"question": "question", "choices": ["one", "two"], "theorem": "theorem", "sketch": "sketch"}
)
"""An item whose prompt identifies how prompts are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownItem:
    shuffle: bool = True  # whether the choices are shuffled; in the public files the right one always comes first
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


def question(item: Item, display: ShownItem, wording: PromptWording = PromptWording.OWN) -> str:
    listing = "\n".join(f"{label}. {text}" for label, text in arranged(item, display).items())
    extras = {"theorem": display.theorem, "sketch": display.sketch}
    if wording is PromptWording.REFERENCE:
        texts = {key: str(item.content[key]) for key, use in extras.items() if use}
        return sections(question=str(item.content["question"]), choices=listing, **texts)
    more = "".join(f"\n\n<{key}>\n{item.content[key]}\n</{key}>" for key, use in extras.items() if use)
    return f"<question>\n{item.content['question']}\n</question>\n\n<choices>\n{listing}\n</choices>{more}"


def reference_label(answer: str, choices: Mapping[str, str]) -> str:
    """Return the label that the reference reads: alone, by the text of its choice, or as the first word."""
    # Brackets and boxes hide a label from it, and a sentence that begins with the word "A" gives the label A.
    text = answer.strip().upper()
    words = (text.rstrip(".):"), *text.split()[:1])
    texts = (label for label, choice in choices.items() if choice.strip().upper() == text)
    return next((word for word in (words[0], *texts, *words[1:]) if word in choices), "")


SCORERS: Mapping[str, tuple[str, Callable[[str, Mapping[str, str]], str]]] = {
    "official": (LABEL_SCORER, label_of),
    "skillopt": ("livemath-skillopt/1", reference_label),
}
"""Name of a scorer to what changes whenever one of its scores can change, and to how it reads a label."""


def score(answer: str, choices: Mapping[str, str], correct: str, scorer: str = "official") -> tuple[Scored, str]:
    guess = SCORERS[scorer][1](answer, choices)
    right = next(label for label, text in choices.items() if text == correct)
    hit = float(guess == right)
    description = f"{guess}. {choices[guess]}" if guess else "no label"
    miss = f"expected {right}. {correct}\nthe answer gives {description}"
    return Scored(hard=hit, soft=hit), f"correct: {right}" if hit else miss


def published(table: Iterable[PublishedRow]) -> Iterator[dict[str, object]]:
    """Yield rows of a data file; month and number, which are unique together, are the id."""
    for row in table:
        month = MONTH.search(row.file)
        if month is None:
            raise DataError(f"{row.file} names no month", hint="files are called qa_<month>_final.json")
        yield {**row.fields, "id": f"{month.group()}:{row.get('no')}", "month": month.group()}


class LiveMathematicianBench(Questions):
    """Multiple choice about theorems of recent papers, scored by accuracy."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._shown = ShownItem(
            shuffle=bool(self._options["shuffle_choices"]),
            seed=int(self._options["shuffle_seed"]),
            theorem=bool(self._options["use_theorem"]),
            sketch=bool(self._options["use_sketch"]),
        )

    @property
    def digest(self) -> str:
        again = self._review or AGAIN
        prompts = [self.target_prompt(), question(EXAMPLE, self._shown, self._wording), again, self._turns]
        return short_digest(
            [self.info.name, SCORERS[self._scorer][0], *prompts, str(self._shown), self._options["explain"]]
        )

    def _read(self, files: Sequence[Path]) -> list[Item]:
        return read_each(files, lambda row, path: [_item(row, path)])

    def _load(self) -> Splits:
        """Return the items of all splits; those that are left out change no other item's split."""
        if self._options["edition"] == "published":
            return super()._load()
        whole = load_splits({**self._options, "limit": 0}, self._root, self._folder / "data", self._read)
        splits = {split: [item for item in items if not _has_cue(item)] for split, items in whole.items()}
        if emptied := next((split for split, items in splits.items() if not items), ""):
            sentence = f"every item of the {emptied} split lists the choice that is right wherever it is listed"
            raise DataError(sentence, hint="bring more items, or keep these with env.edition=published")
        return first_items(splits, int(self._options["limit"]))

    def answer_choices(self, item: Item) -> Mapping[str, str]:
        return arranged(item, self._shown)

    def secrets(self, item: Item) -> Secrets:
        question, theorem, sketch = (str(item.content[key]) for key in ("question", "theorem", "sketch"))
        return Secrets(answers=(str(item.content["correct"]),), inputs=(question, theorem, sketch))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        task = self._turn(question(item, self._shown, self._wording))
        return await until_answered(
            target, item.id, self._system(skill), task, max_turns=self._turns, review=self._review
        )

    @property
    def _review(self) -> str:
        """What a reply without an answer is followed by, where it is not the request to check it."""
        return "" if self._wording is PromptWording.OWN else self._prompt_file("review", self._wording)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        choices = arranged(item, self._shown)
        scores, feedback = score(trajectory.answer, choices, str(item.content["correct"]), self._scorer)
        explanation = (str(item.content[key]) for key in ("theorem", "sketch")) if self._options["explain"] else ()
        return scores, "\n\n".join(filter(None, (feedback, *explanation)))
