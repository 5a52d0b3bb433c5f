"""SearchQA: answer a trivia question from search results."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.plugin.environment import EnvironmentInfo
from skillgit.plugin.splits import OPTIONS
from skillgit_envs.packaged import PackagedEnvironment, option
from skillgit_envs.searchqa import items, rollout, scoring

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.evaluation import Scored
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.environment import Judge, Target
    from skillgit.plugin.splits import Splits


class SearchQA(PackagedEnvironment):
    """Question answering over search results, scored by exact match and token F1."""

    info = EnvironmentInfo(
        name="searchqa",
        summary="Answer a trivia question from search results.",
        fields={
            "question": "what is asked",
            "context": "search results, each as '[DOC] [TLE] title [PAR] snippet'; may be empty",
            "answers": "the accepted answers",
        },
        scorer="hard = exact match, soft = token F1, both the best over the accepted answers (MRQA 2019, SQuAD v1.1)",
        source="items written for skillgit; the public SearchQA data is read from env.split_dir or env.data_path",
        options=(
            *OPTIONS,
            option("max_turns", 1, "Replies at most; from the second on, the target reviews its answer."),
        ),
        task_types=("person", "place", "date", "number", "work", "thing", "default"),
        licence=items.LICENCE,
        public=items.SOURCE,
    )

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._turns = self._replies()

    @property
    def digest(self) -> str:
        """Identify prompts, their limits and the scorer."""
        prompts = [self._prompt_file("system"), rollout.user_prompt("question", "context")]
        reviews = [self._turns, rollout.review_prompt("task", "answer")] if self._turns > 1 else []
        return short_digest(["searchqa", scoring.SCORER, rollout.CONTEXT_CHARACTERS, *prompts, *reviews])

    def _load(self) -> Splits:
        return self._load_with(items.read_items)

    def secrets(self, item: Item) -> Secrets:
        """Return the accepted answers, the question and the search results."""
        golds = cast("Sequence[str]", item.content["answers"])
        return Secrets(answers=tuple(golds), inputs=(str(item.content["question"]), str(item.content["context"])))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Ask the target, and let it review its answer if there are turns for that."""
        return await rollout.ask(item, skill, target, self._turns)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Score the answer and say what was expected."""
        del judge
        golds = cast("Sequence[str]", item.content["answers"])
        return scoring.score(trajectory.answer, golds), scoring.feedback(trajectory.answer, golds)
