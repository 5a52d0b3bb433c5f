"""ALFWorld: household tasks in a text game, played by the real TextWorld engine."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from skillgit.domain.ids import short_digest
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.plugin.environment import EnvironmentInfo
from skillgit.plugin.splits import OPTIONS
from skillgit_envs.alfworld import games, items, prompt, rollout
from skillgit_envs.alfworld.generator.recipe import GENERATOR, TASK_TYPES
from skillgit_envs.alfworld.simulator.client import Simulator
from skillgit_envs.packaged import PackagedEnvironment, option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillgit.domain.evaluation import Scored
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.environment import Judge, Target
    from skillgit.plugin.splits import Splits


class ALFWorld(PackagedEnvironment):
    """Household games, each in a process of its own, scored by whether the goal is reached."""

    info = EnvironmentInfo(
        name="alfworld",
        summary="Do household tasks in a text game, one command at a time.",
        fields={
            "gamefile": "path of a game.tw-pddl, relative to env.data_root or absolute",
            "sha256": "first 16 digits of the game file's digest",
            "recipe": "instead of a file: task, room, thing, target and seed of a game that is made when needed",
        },
        scorer="hard = soft = 1 if the goal of the game's PDDL problem is reached within max_steps, else 0 (TextWorld)",
        source="recipes written for skillgit; ALFWorld's games (alfworld-download) by env.split_dir or env.data_path",
        options=(
            *OPTIONS,
            option("max_steps", 50, "Commands after which a game is lost."),
            option("history_length", 0, "Last turns that the target sees; 0 shows all."),
            option("admissible_commands", default=True, text="List the commands that are possible."),
            option(
                "data_root",
                "",
                "Folder that game files are relative to; '' takes $ALFWORLD_DATA, else ~/.cache/alfworld.",
                path=True,
            ),
        ),
        task_types=TASK_TYPES,
    )

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._simulator = Simulator()
        for name, least in (("max_steps", 1), ("history_length", 0)):
            if int(self._options[name]) < least:
                raise ConfigError(f"env.{name} is {self._options[name]}; it must be at least {least}", hint="raise it")

    @property
    def digest(self) -> str:
        """Identify prompts, limits, scorer, generator and the version of the engine."""
        shaping = [self._options[name] for name in ("max_steps", "history_length", "admissible_commands")]
        words = [self._prompt_file("system"), prompt.seen("observation", ["command"]), rollout.NO_COMMAND]
        engine = [_version(name) for name in ("textworld", "alfworld")]
        numbers = [rollout.SCORER, GENERATOR, prompt.REPLY_CHARACTERS]
        return short_digest(["alfworld", *numbers, *shaping, *words, *engine])

    def _load(self) -> Splits:
        return items.load(self._options, self._root)

    @property
    def _most_replies(self) -> int:
        """How often the target replies at most: once for each step."""
        return int(self._options["max_steps"])

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Play the game of ``item``."""
        try:
            opening = items.opening(item, games.data_root(str(self._options["data_root"]), self._root))
        except DataError as error:
            raise EnvironmentFaultError(error.message, hint=error.hint) from error
        async with self._simulator.game() as game:
            return await rollout.play(
                item,
                skill,
                target,
                game,
                opening,
                max_steps=int(self._options["max_steps"]),
                history=int(self._options["history_length"]),
                show_commands=bool(self._options["admissible_commands"]),
            )

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Score the game and say how it ended."""
        del item, judge
        return rollout.score(trajectory)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
