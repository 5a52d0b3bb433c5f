"""Games: files, where they are and what is checked before one is played, and recipes that games are made of."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skillgit.errors import ConfigError, DataError
from skillgit.files import read_plain
from skillgit.plugin.plugin_identity import install_command
from skillgit.plugin.splits import named

GAME = "game.tw-pddl"
_FIELDS = ("pddl_domain", "grammar", "pddl_problem")
_ROOT_HINT = "paths in a manifest are relative to env.data_root, else $ALFWORLD_DATA, else ~/.cache/alfworld"
_HINT = "a game is a game.tw-pddl of ALFWorld: JSON with pddl_domain, grammar, pddl_problem and solvable"
UNPLAYABLE = ("movable", "Sliced")
"""In the names of folders whose games ALFWorld leaves out: TextWorld's domain lacks these actions."""


def plays(name: str) -> bool:
    """Say whether ALFWorld would play the game at the path ``name``, if it is solvable."""
    return not any(part in name for part in UNPLAYABLE)


def check_installed() -> None:
    """Refuse to go on without the engine; it is looked for and not loaded."""
    missing = [name for name in ("textworld", "alfworld", "gymnasium") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"alfworld games cannot be played without {', '.join(missing)}",
            hint=f"{install_command('alfworld')}; it compiles two packages, which takes gcc, g++ and make",
        )


def data_root(option: str, root: Path) -> Path:
    """Return the folder that game files of a manifest are relative to; without an option, that of ALFWorld's data."""
    if option:
        return root / Path(option).expanduser()
    return Path(os.environ.get("ALFWORLD_DATA", "~/.cache/alfworld")).expanduser()


def located(gamefile: str, root: Path) -> Path:
    """Return the path of a game file as a manifest names it: relative to ``root``, or absolute."""
    return root / Path(os.path.expandvars(gamefile)).expanduser()


def name_below(root: Path, path: Path) -> str:
    """Return how an item names the game at ``path``: from ``root``, so that a copy of the folder has the same items."""
    whole, base = (Path(os.path.normpath(place.absolute())) for place in (path, root))
    return whole.relative_to(base).as_posix() if whole.is_relative_to(base) else str(path)


def missing_games(names: Sequence[str], root: Path) -> DataError:
    count = f"{len(names)} games" if len(names) > 1 else "a game"
    return DataError(f"{count} that the data name cannot be found from {root}: {named(names)}", hint=_ROOT_HINT)


def task_type(gamefile: str) -> str:
    """Return the task type that the path of a game names; ``default`` if it names none."""
    return next((name for name in TASK_TYPES if name in gamefile), "default")


def in_folder(folder: Path) -> Iterator[Path]:
    """Yield the games in and below ``folder`` that ALFWorld would play, in the order of their paths."""
    for path in sorted(folder.rglob(GAME)):
        if plays(path.relative_to(folder).as_posix()) and parsed(path).get("solvable"):
            yield path


def fingerprint(path: Path) -> str:
    return hashlib.sha256(_bytes(path)).hexdigest()[:16]


def parsed(path: Path) -> dict[str, Any]:
    try:
        game = json.loads(_bytes(path))
    except ValueError as error:
        raise DataError(f"{path} is not JSON", hint=_HINT) from error
    if not isinstance(game, dict) or not all(isinstance(game.get(field), str) for field in _FIELDS):
        raise DataError(f"{path} is not a game of ALFWorld", hint=_HINT)
    return game


def _bytes(path: Path) -> bytes:
    try:
        return read_plain(path, most=None, follow=True)
    except OSError as error:
        raise DataError(f"there is no game at {path}", hint=_ROOT_HINT) from error


GENERATOR = 1  # raised whenever the same recipe makes another game
TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The task types of ALFWorld that TextWorld plays."""
ROOMS = ("kitchen", "bathroom", "bedroom", "livingroom")
_RECIPE_HINT = "a recipe has task, room, thing, target (a lamp where the task is to look at something) and seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    task: str  # one of TASK_TYPES
    room: str  # one of ROOMS
    thing: str  # what the task is about, as ALFRED spells it: ``Mug``
    target: str  # the receptacle where it shall go, or the lamp to look at it with
    seed: int  # what is where depends on this number and nothing else

    @classmethod
    def parse(cls, row: Mapping[str, object], where: str) -> Recipe:
        names = {field.name for field in fields(cls)}
        if set(row) != names:
            raise DataError(f"{where}: a recipe cannot have the fields {', '.join(sorted(row))}", hint=_RECIPE_HINT)
        seed = row["seed"]
        texts = {name: str(row[name]) for name in names - {"seed"}}
        if not isinstance(seed, int) or texts["task"] not in TASK_TYPES or texts["room"] not in ROOMS:
            raise DataError(f"{where}: the recipe's seed, task or room is not one that there is", hint=_RECIPE_HINT)
        return cls(seed=seed, **texts)

    def content(self) -> dict[str, object]:
        return asdict(self)
