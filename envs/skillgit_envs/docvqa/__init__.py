"""DocVQA: answer a question about the picture of a page."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from rapidfuzz.distance import Levenshtein

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.data_rows import read_each, text_field
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, SourceKind
from skillgit.plugin.splits import OPTIONS
from skillgit_envs.answer_tag import quoted
from skillgit_envs.dialogue import AGAIN, until_answered
from skillgit_envs.pictures import Pictures
from skillgit_envs.prompt_files import PromptWording, sections
from skillgit_envs.shipped_environment import PROMPTS, PackagedEnvironment, option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Trajectory
    from skillgit.plugin.backend import Image
    from skillgit.plugin.data_rows import Row
    from skillgit.plugin.environment import Judge, Target
    from skillgit.plugin.splits import Splits


def _other_names(row: Mapping[str, object]) -> list[str]:
    """Return the names that a page has in MP-DocVQA, by its document and number."""
    document, number = str(row.get("ucsf_document_id") or ""), str(row.get("ucsf_document_page_no") or "")
    if not document or not number.isdigit():
        return []
    # MP-DocVQA counts the pages of a document from 0, DocVQA from 1.
    earlier = f"{document}_p{int(number) - 1}"
    return [f"{document}_{number}.png", f"{document}_{number}.jpg", f"{earlier}.jpg", f"{earlier}.png"]


_HINT = "skillgit envs docvqa lists the fields of an item"
_TRAILING_PATH = re.compile(r"\s*document_path:\s*\S+\s*\Z")


def read_items(files: Sequence[Path], *, pages: Pictures) -> list[Item]:
    """Return the items of data files."""
    return read_each(files, lambda row, path: [_item(row, pages, path.parent)])


def _item(row: Row, pages: Pictures, folder: Path) -> Item:
    fields = row.fields
    identity = text_field(row.where, fields, "questionId", "question_id", "id") or row.name
    question = _TRAILING_PATH.sub("", text_field(row.where, fields, "question"))
    image = text_field(row.where, fields, "image", "image_path")
    answers = _accepted_answers(row.where, fields)
    for name, value in (("id", identity), ("question", question), ("image", image), ("answers", answers)):
        if not value:
            raise DataError(f"{row.where} has no {name}", hint=_HINT)
    page = pages.find(row.where, image, folder, more_names=_other_names(fields))
    content = {"question": question, "answers": answers, "image": image, "page": page}
    return Item(id=identity, content=content, task_type=_type(row))


def _accepted_answers(where: str, fields: Mapping[str, object]) -> list[str]:
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


THRESHOLD = 0.5
SOLVED = 0.999
"""From this similarity on an answer counts as right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnlsRule:
    """One way to compute ANLS.

    Attributes:
        name: Changes whenever a score can change.
        keeps_half: Whether a similarity of exactly 0.5 counts.
    """

    name: str
    raw_lengths: bool
    keeps_half: bool


RULES: Mapping[str, AnlsRule] = {
    "official": AnlsRule(name="anls-rrc/1", raw_lengths=True, keeps_half=True),
    "skillopt": AnlsRule(name="anls-paper/1", raw_lengths=False, keeps_half=False),
}


def similarity(answer: str, gold: str, rule: AnlsRule) -> float:
    """Return the similarity of two answers, from 0 to 1, under ``rule``."""
    ours, theirs = _normalised(answer), _normalised(gold)
    length = max(len(answer), len(gold)) if rule.raw_lengths else max(len(ours), len(theirs))
    distance = Levenshtein.distance(ours, theirs)
    # Whole numbers are compared, for 1 - d / n is not exact.
    within = 2 * distance <= length if rule.keeps_half else 2 * distance < length
    if not distance:
        return 1.0
    return 1.0 - distance / length if within else 0.0


def _normalised(text: str) -> str:
    return " ".join(text.lower().split())


def score(answer: str, golds: Sequence[str], rule: AnlsRule) -> Scored:
    """Return the best similarity over the accepted answers as the soft score; the hard one is whether it is full."""
    best = max((similarity(answer, gold, rule) for gold in golds), default=0.0)
    return Scored(hard=float(best >= SOLVED), soft=best)


def feedback(answer: str, golds: Sequence[str], best: float) -> str:
    """Say in one line what was expected and how near the answer came."""
    if best >= SOLVED:
        return f"correct: {quoted(answer)}"
    quotes = ", ".join(quoted(gold) for gold in golds)
    return f"expected one of: {quotes}; the answer {quoted(answer)} has a similarity of {best:.2f}"


def question(text: str, wording: PromptWording) -> str:
    """Return what is asked beside the page."""
    if wording is PromptWording.REFERENCE:
        return f"{sections(question=text)}\n\nGive your final answer between <answer> and </answer>."
    return f"<question>\n{text}\n</question>"


_DETAILS = ("auto", "low", "high")


class DocVQA(PackagedEnvironment):
    """Questions about scanned pages, scored by ANLS."""

    info = EnvironmentInfo(
        name="docvqa",
        summary="Answer a question about the picture of a page.",
        fields={
            "question": "what is asked",
            "answers": "the accepted answers",
            "image": "the file of the page, as the data name it",
            "page": "digest of the page's bytes",
        },
        scorer="soft = ANLS (rule of env.scorer), hard = whether it is at least 0.999",
        source="pages drawn for skillgit; the public annotations are read from env.data_path, pages from env.image_dir",
        options=(
            *OPTIONS,
            PROMPTS,
            option("image_dir", "", "Folder of the pages; empty: beside the data.", path=True),
            option("image_detail", "auto", "How closely to look: auto, low or high."),
            option("max_image_mb", 5.0, "Largest page in megabytes that is accepted."),
            option(
                "scorer",
                "official",
                "Boundary of ANLS: official keeps 0.5 and divides by raw lengths, skillopt does neither.",
            ),
            option("max_turns", 1, "Replies until one holds an answer."),
        ),
        task_types=("form", "table/list", "free_text", "layout"),
        licence="pages and questions that come with it: MIT, as skillgit; the public data: the terms of its authors",
        public=PublicSource(
            kind=SourceKind.MANUAL,
            place="https://rrc.cvc.uab.es/?ch=17",
            layout=(
                "get the annotations and the pages of task 1 from their authors, and name the annotations (*.json) with"
                " env.data_path and the folder of pages with env.image_dir"
            ),
        ),
    )

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._rule, self._detail = str(self._options["scorer"]), str(self._options["image_detail"])
        if self._rule not in RULES:
            raise ConfigError(f"env.scorer is '{self._rule}'", hint=f"docvqa knows {' and '.join(RULES)}")
        self._refuse_unknown(image_detail=_DETAILS)
        self._turns = self._replies()
        folder = self._root / str(self._options["image_dir"]) if self._options["image_dir"] else None
        own = None if self._brings_data else self._folder / "data"
        self._pages = Pictures(folder=folder or own, limit_mb=float(self._options["max_image_mb"]))

    @property
    def digest(self) -> str:
        """Identify prompts, what is shown, and the scorer."""
        parts = [self.target_prompt(), self._detail, AGAIN, self._turns]
        parts += [] if self._wording is PromptWording.OWN else [question("question", self._wording)]
        return short_digest([self.info.name, RULES[self._rule].name, *parts])

    def _load(self) -> Splits:
        return self._load_with(partial(read_items, pages=self._pages))

    def secrets(self, item: Item) -> Secrets:
        """Return the accepted answers and the question."""
        return Secrets(answers=_answers(item), inputs=(str(item.content["question"]),))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Show the page to the target and ask."""
        text, images = question(str(item.content["question"]), self._wording), self.pictures(item)
        return await until_answered(target, item.id, self._system(skill), text, max_turns=self._turns, images=images)

    def pictures(self, item: Item) -> tuple[Image, ...]:
        """Return the page."""
        detail = "" if self._detail == "auto" else self._detail
        return (self._pages.image(str(item.content["image"]), detail=detail),)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Score the answer, and say what was expected."""
        del judge
        scores = score(trajectory.answer, _answers(item), RULES[self._rule])
        return scores, feedback(trajectory.answer, _answers(item), scores.soft)


def _answers(item: Item) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", item.content["answers"]))
