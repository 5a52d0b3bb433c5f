"""Opening games in a game process, and the two that the fork server plays first, so that its forks know the grammar."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import spaces

from skillgit_envs.alfworld.generator.build import build
from skillgit_envs.alfworld.generator.recipe import Recipe
from skillgit_envs.alfworld.simulator import engine

if TYPE_CHECKING:
    from collections.abc import Mapping

OBSERVATION_CHARACTERS = 4000
COMMANDS = 400
_LETTERS = string.ascii_letters + string.digits + string.punctuation + " \n"
_GREETING = re.compile(r"\A-= Welcome to TextWorld, ALFRED! =-\s*")
_FOREIGN = re.compile(f"[^{re.escape(_LETTERS)}]")


class GameEnv(gymnasium.Env[str, str]):
    """A household game of ALFWorld.

    An action is one of the admissible commands; any other text changes nothing and takes a step all the same. The
    reward is 1 in the step that wins the game and 0 otherwise. ``info`` holds ``commands``, the admissible commands in
    alphabetical order without ``help``, and ``won``.

    Args:
        game: The content of a ``game.tw-pddl`` file.
        max_steps: Steps after which an episode is cut off.
        planner: Let ``info["plan"]`` of a start say how the planner would win; for tests.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - declared so by gymnasium

    def __init__(self, game: Mapping[str, Any], max_steps: int = 50, *, planner: bool = False) -> None:
        self.observation_space = spaces.Text(OBSERVATION_CHARACTERS, charset=_LETTERS)
        self.action_space = spaces.Text(200, charset=_LETTERS)
        self._game = engine.open_game(game, planner=planner)
        self._max_steps = max_steps
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start over; a game has no chance in it, so that ``seed`` changes nothing."""
        super().reset(seed=seed, options=options)
        self._steps = 0
        state = self._game.reset()
        return observed(_GREETING.sub("", state.feedback)), _info(state)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        state, _, _ = self._game.step(str(action))
        won = bool(state["won"])
        return observed(state.feedback), float(won), won, not won and self._steps >= self._max_steps, _info(state)


def observed(text: str) -> str:
    """Return ``text`` in the letters that the observation space has, shortened if it is very long."""
    clean = _FOREIGN.sub("?", text.strip())
    if len(clean) <= OBSERVATION_CHARACTERS:
        return clean
    tail = f"\n[... {len(clean) - OBSERVATION_CHARACTERS} characters or more left out ...]"
    return clean[: OBSERVATION_CHARACTERS - len(tail)] + tail


def _info(state: Any) -> dict[str, Any]:  # noqa: ANN401 - TextWorld has no types
    commands = [command.strip() for command in state["admissible_commands"] if command.strip() != "help"]
    info = {"commands": commands[:COMMANDS], "won": bool(state["won"])}
    plan = state.get("policy_commands")
    return info | ({"plan": list(plan)} if plan is not None else {})


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
