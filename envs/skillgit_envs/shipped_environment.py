"""What the environments of this package share; a plug-in of someone else needs the contract alone, not this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import ConfigError
from skillgit.plugin.environment import CallBounds, Option
from skillgit.plugin.seed_folder import read_skill
from skillgit.plugin.splits import load_splits
from skillgit_envs.prompt_files import PromptWording, prompt_file, with_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from skillgit.domain.evaluation import Split
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import EnvironmentInfo
    from skillgit.plugin.splits import Splits
    from skillgit.sandbox import Sandbox


def option(name: str, default: str | float | bool, text: str, *, path: bool = False) -> Option:  # noqa: FBT001
    """Return an option that is of the type of its default, with ``text`` as its help."""
    return Option(name=name, type=type(default), default=default, help=text, path=path)


PROMPTS = option("prompts", "own", "Words of the target's prompts: own, or reference, which asks as SkillOpt does.")


class PackagedEnvironment(ABC):
    """An environment whose data, prompts and seed skill are in the folder of its name in this package.

    A subclass has ``info``, ``digest``, ``rollout`` and ``score`` (:class:`skillgit.plugin.environment.Environment`),
    and says in ``_load`` where its items come from.
    """

    info: EnvironmentInfo

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        self._options = {option.name: option.default for option in self.info.options} | dict(options)
        self._root = root
        if PROMPTS.name in self._options:
            self._refuse_unknown(prompts=tuple(PromptWording))
        self._wording = PromptWording(str(self._options.get(PROMPTS.name, PROMPTS.default)))

    def items(self, split: Split) -> Sequence[Item]:
        """Return the items of a split; the first call reads those of all splits."""
        return self._splits[split]

    def seed_skill(self) -> Skill:
        """Return a skill that says little more than what the task is."""
        return read_skill(self._folder / "skills" / self.info.name)

    def taxonomy(self) -> str:
        """Return the kinds of failure that matter here."""
        return self._prompt_file("taxonomy")

    def call_bounds(self, item: Item) -> CallBounds:
        """Return how many calls a rollout takes: one for each reply of the target, and no judge."""
        del item
        return CallBounds(target=(1, self._most_replies))

    @property
    def _most_replies(self) -> int:
        """How often the target replies at most."""
        return self._replies()

    @abstractmethod
    def _load(self) -> Splits:
        """Return the items of all splits."""

    @cached_property
    def _splits(self) -> Splits:
        return self._load()

    @cached_property
    def _sandbox(self) -> Sandbox:
        """Where programs of this environment run, as ``env.sandbox`` says."""
        from skillgit.sandbox import Mode, Sandbox  # noqa: PLC0415 - slow to import, and most environments need none

        return Sandbox(Mode(str(self._options["sandbox"])))

    @property
    def _folder(self) -> Path:
        return Path(__file__).parent / self.info.name

    @property
    def _brings_data(self) -> bool:
        """Whether the options name data, in place of those that come with the environment."""
        return bool(self._options["data_path"] or self._options["split_dir"])

    def _load_with(self, read: Callable[[Sequence[Path]], Sequence[Item]]) -> Splits:
        """Return the items that the options name, or those that come with the environment, as ``read`` reads them."""
        return load_splits(self._options, self._root, self._folder / "data", read)

    def _prompt_file(self, name: str, wording: PromptWording = PromptWording.OWN) -> str:
        return prompt_file(f"{__package__}.{self.info.name}", name, wording)

    def target_prompt(self) -> str:
        """Return the system prompt, with ``{skill}`` in the place of the skill."""
        return self._prompt_file("system", self._wording)

    def _system(self, skill: Skill) -> str:
        """Return the system prompt with ``skill`` in its place."""
        return with_skill(self.target_prompt(), skill, self._wording)

    def _refuse_unknown(self, **choices: Collection[str]) -> None:
        """Refuse options whose value is none of those that are known."""
        for name, values in choices.items():
            if self._options[name] not in values:
                raise ConfigError(f"env.{name} is '{self._options[name]}'", hint=f"it is one of {', '.join(values)}")

    def _replies(self) -> int:
        turns = int(self._options["max_turns"])
        if turns < 1:
            raise ConfigError(f"env.max_turns is {turns}; it must be at least 1", hint="1 asks once")
        return turns
