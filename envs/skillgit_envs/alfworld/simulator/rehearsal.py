"""Opening games in a game process, and the two that the zygote plays first, so that its forks know the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit_envs.alfworld.generator.build import build
from skillgit_envs.alfworld.generator.recipe import Recipe
from skillgit_envs.alfworld.simulator.gym_env import GameEnv

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEPS = 24
_REHEARSED = (
    Recipe(task="pick_heat_then_place_in_recep", room="kitchen", thing="Potato", target="DiningTable", seed=1),
    Recipe(task="look_at_obj_in_light", room="bedroom", thing="Book", target="DeskLamp", seed=1),
)


def opened(opening: Mapping[str, Any]) -> GameEnv:
    """Return the game that the program asks for: a game file's content, or a recipe's.

    Raises:
        RecipeError: No game can be made of the recipe.
    """
    game = opening["game"] if "game" in opening else build(Recipe.parse(opening["recipe"], "the item"))
    return GameEnv(game, opening["max_steps"])


def warm_up() -> None:
    """Play two games, preferring kinds of commands that were not given yet."""
    for recipe in _REHEARSED:
        game = GameEnv(build(recipe), _STEPS)
        _, info = game.reset()
        counts: dict[str, int] = {}
        for _ in range(_STEPS):
            command = min(info["commands"], key=lambda text: (counts.get(_kind(text), 0), counts.get(text, 0), text))
            for name in (_kind(command), command):
                counts[name] = counts.get(name, 0) + 1
            _, _, is_terminal, is_truncated, info = game.step(command)
            if is_terminal or is_truncated:
                break


def _kind(command: str) -> str:
    return command.partition(" ")[0]
