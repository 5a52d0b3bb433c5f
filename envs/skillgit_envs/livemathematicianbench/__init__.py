"""LiveMathematicianBench: choose the statement that a recent theorem makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, SourceKind
from skillgit.plugin.splits import OPTIONS
from skillgit_envs.asking import AGAIN, until_answered
from skillgit_envs.livemathematicianbench import items, scoring
from skillgit_envs.livemathematicianbench.items import read_items
from skillgit_envs.packaged import PackagedEnvironment, option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillgit.domain.evaluation import Scored
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.environment import Judge, Target
    from skillgit.plugin.splits import Splits


class LiveMathematicianBench(PackagedEnvironment):
    """Multiple choice about theorems of recent papers, scored by accuracy."""

    info = EnvironmentInfo(
        name="livemathematicianbench",
        summary="Choose the right statement about a recent theorem.",
        fields={
            "question": "what is asked",
            "choices": "the wrong choices, or all of them, as texts",
            "correct": "the text of the right choice",
            "theorem": "the theorem behind the question",
            "sketch": "a sketch of its proof",
            "types": "what kinds of statement the theorem makes",
        },
        scorer="hard = soft = whether the right choice's label is given (plain accuracy, as on the benchmark's site)",
        source="items written for skillgit; the public monthly files are read from env.data_path or env.split_dir",
        options=(
            *OPTIONS,
            option("max_turns", 1, "Replies until one holds an answer."),
            option("shuffle_choices", default=True, text="Whether choices are shuffled."),
            option("shuffle_seed", 42, "Seed of the order of choices."),
            option("use_theorem", default=False, text="Show the theorem to the target; the benchmark does not."),
            option("use_sketch", default=False, text="Show the sketch of the proof to the target; likewise."),
            option("explain", default=False, text="Show theorem and sketch to the optimizer as feedback."),
        ),
        task_types=("equivalence", "implication", "condition", "existence", "bound"),
        licence="items that come with it: MIT, as skillgit; the public files state no licence",
        public=PublicSource(
            kind=SourceKind.MANUAL,
            place="https://github.com/LiveMathematicianBench/LiveMathematicianBench.github.io",
            layout=(
                "place its folder data, which holds <month>/qa_<month>_final.json for each month, and name it with"
                " env.data_path"
            ),
        ),
    )

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._turns = self._replies()
        self._shown = items.ShownItem(
            shuffle=bool(self._options["shuffle_choices"]),
            seed=int(self._options["shuffle_seed"]),
            theorem=bool(self._options["use_theorem"]),
            sketch=bool(self._options["use_sketch"]),
        )

    @property
    def digest(self) -> str:
        """Identify prompts, what is shown, and the scorer."""
        prompts = [self._prompt_file("system"), items.question(items.EXAMPLE, self._shown), AGAIN, self._turns]
        return short_digest([self.info.name, scoring.SCORER, *prompts, str(self._shown), self._options["explain"]])

    def _load(self) -> Splits:
        return self._load_with(read_items)

    def secrets(self, item: Item) -> Secrets:
        """Return the right choice, the question, the theorem and the sketch."""
        question, theorem, sketch = (str(item.content[key]) for key in ("question", "theorem", "sketch"))
        return Secrets(answers=(str(item.content["correct"]),), inputs=(question, theorem, sketch))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Ask the target for a label."""
        question = items.question(item, self._shown)
        return await until_answered(target, item.id, self._system(skill), question, max_turns=self._turns)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Score the label, and say which choice is right."""
        del judge
        choices = items.arranged(item, self._shown)
        scores, feedback = scoring.score(trajectory.answer, choices, str(item.content["correct"]))
        explanation = (str(item.content[key]) for key in ("theorem", "sketch")) if self._options["explain"] else ()
        return scores, "\n\n".join(filter(None, (feedback, *explanation)))
