"""DocVQA: answer a question about the picture of a page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.errors import ConfigError
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, SourceKind
from skillgit.plugin.splits import OPTIONS
from skillgit_envs.asking import AGAIN, until_answered
from skillgit_envs.docvqa.items import read_items
from skillgit_envs.docvqa.pages import Pages
from skillgit_envs.docvqa.scoring import RULES, feedback, score
from skillgit_envs.packaged import PackagedEnvironment, option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.evaluation import Scored
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.environment import Judge, Target
    from skillgit.plugin.splits import Splits

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
        self._pages = Pages(folder=folder or own, limit_mb=float(self._options["max_image_mb"]))

    @property
    def digest(self) -> str:
        """Identify prompts, what is shown, and the scorer."""
        parts = [self._prompt_file("system"), self._detail, AGAIN, self._turns]
        return short_digest([self.info.name, RULES[self._rule].name, *parts])

    def _load(self) -> Splits:
        return self._load_with(partial(read_items, pages=self._pages))

    def secrets(self, item: Item) -> Secrets:
        """Return the accepted answers and the question."""
        return Secrets(answers=_answers(item), inputs=(str(item.content["question"]),))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Show the page to the target and ask."""
        image = self._pages.image(str(item.content["image"]), detail="" if self._detail == "auto" else self._detail)
        question = f"<question>\n{item.content['question']}\n</question>"
        return await until_answered(
            target, item.id, self._system(skill), question, max_turns=self._turns, images=(image,)
        )

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Score the answer, and say what was expected."""
        del judge
        scores = score(trajectory.answer, _answers(item), RULES[self._rule])
        return scores, feedback(trajectory.answer, _answers(item), scores.soft)


def _answers(item: Item) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", item.content["answers"]))
