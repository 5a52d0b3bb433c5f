"""Questions about pictures: what the environments share that show an item's pictures and ask for one answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from skillgit.domain.ids import short_digest
from skillgit.plugin.splits import OPTIONS
from skillgit_envs.dialogue import AGAIN, until_answered
from skillgit_envs.pictures import Pictures
from skillgit_envs.shipped_environment import PackagedEnvironment, option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.backend import Image
    from skillgit.plugin.environment import Target

VISUAL_OPTIONS = (
    *OPTIONS,
    option("image_dir", "", "Folder of the pictures; empty: beside the data.", path=True),
    option("image_detail", "auto", "How closely to look: auto, low or high."),
    option("max_image_mb", 5.0, "Largest picture in megabytes that is accepted."),
    option("max_turns", 1, "Replies until one holds an answer."),
)
_DETAILS = ("auto", "low", "high")


class VisualQuestions(PackagedEnvironment):
    """An environment whose items name their pictures in ``images``, and may be without one.

    A subclass reads its items with ``self._pictures``, says what is asked (:meth:`question`) and scores.
    """

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._refuse_unknown(image_detail=_DETAILS)
        self._turns = self._replies()
        own = None if self._brings_data else self._folder / "data"
        folder = self._root / str(self._options["image_dir"]) if self._options["image_dir"] else own
        self._pictures = Pictures(folder=folder, limit_mb=float(self._options["max_image_mb"]))

    @abstractmethod
    def question(self, item: Item) -> str:
        """Return what is asked beside the pictures."""

    @property
    @abstractmethod
    def _scorer(self) -> Sequence[str]:
        """What identifies the scorer: its name, which changes whenever a score can change, and a judge's prompt."""

    @property
    def digest(self) -> str:
        """Identify prompts, what is shown, and the scorer."""
        prompts = [self.target_prompt(), str(self._options["image_detail"]), AGAIN, self._turns]
        return short_digest([self.info.name, *self._scorer, *prompts])

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Show the pictures in their order, and ask."""
        prompt, images = self._system(skill), self.pictures(item)
        return await until_answered(target, item.id, prompt, self.question(item), max_turns=self._turns, images=images)

    def pictures(self, item: Item) -> tuple[Image, ...]:
        """Return the pictures of ``item`` in their order."""
        detail = str(self._options["image_detail"]).replace("auto", "")
        names = cast("Sequence[str]", item.content["images"])
        return tuple(self._pictures.image(name, detail=detail) for name in names)
