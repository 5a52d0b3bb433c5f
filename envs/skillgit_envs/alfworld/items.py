"""The items of ALFWorld: manifests of game files, folders of games, and recipes of games that are made when needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.rows import read_each, text_field
from skillgit.plugin.splits import check, divide, load_splits
from skillgit_envs.alfworld import games
from skillgit_envs.alfworld.generator.recipe import TASK_TYPES, Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.plugin.rows import Row
    from skillgit.plugin.splits import Splits

SHIPPED = Path(__file__).parent / "data"
_HINT = "a row has an id and either a gamefile or a recipe; `skillgit envs alfworld` lists the fields"


def load(options: Mapping[str, str | float | bool], root: Path) -> Splits:
    """Return the items that ``options`` name; the games that come with the environment if they name none.

    Raises:
        ConfigError: The options contradict each other, or the engine is not installed.
        DataError: The data cannot be used.
    """
    games.check_installed()
    data_root = games.data_root(str(options["data_root"]), root)
    split_dir, whole = root / str(options["split_dir"]), root / str(options["data_path"])
    limit = int(options["limit"]) or None
    if options["split_mode"] == "split_dir" and options["split_dir"] and _holds_games(split_dir):
        splits = check({split: _of_folder(folder, split_dir) for split, folder in _split_folders(split_dir)})
    elif options["split_mode"] == "ratio" and options["data_path"] and _holds_games(whole):
        ratio, seed = str(options["split_ratio"]), int(options["split_seed"])
        splits = check(divide(_of_folder(whole, whole), ratio, seed))
    else:
        return load_splits(options, root, SHIPPED, partial(read_each, things_of=lambda row, _: [_item(row, data_root)]))
    return {split: items[:limit] for split, items in splits.items()}


def _holds_games(folder: Path) -> bool:
    return next(folder.rglob(games.GAME), None) is not None


def _split_folders(folder: Path) -> Iterator[tuple[Split, Path]]:
    """Yield the folders that are named like splits; ALFWorld's valid_train and the like are passed over."""
    for child in sorted(path for path in folder.iterdir() if path.is_dir()):
        try:
            yield Split.parse(child.name), child
        except DataError:
            continue


def _of_folder(folder: Path, base: Path) -> tuple[Item, ...]:
    """Return the games in ``folder`` as items named by their paths below ``base``."""
    return tuple(
        _game_item(path.parent.relative_to(base).as_posix(), str(path), path) for path in games.in_folder(folder)
    )


def _game_item(identity: str, gamefile: str, path: Path, kind: str = "") -> Item:
    content = {"gamefile": gamefile, "sha256": games.fingerprint(path)}
    return Item(id=identity, content=content, task_type=kind or games.task_type(gamefile))


def _item(entry: Row, root: Path) -> Item:
    row, identity = entry.fields, text_field(entry.where, entry.fields, "id")
    if not identity:
        raise DataError(f"{entry.where} has no id", hint=_HINT)
    if isinstance(fields := row.get("recipe"), dict):
        recipe = Recipe.parse(fields, entry.where)
        return Item(id=identity, content={"recipe": recipe.content()}, task_type=recipe.task)
    gamefile = row.get("gamefile")
    if not isinstance(gamefile, str) or not gamefile.strip():
        raise DataError("neither a gamefile nor a recipe is named", hint=_HINT)
    path = games.located(gamefile, root)
    if games.parsed(path).get("solvable") is False:
        raise DataError(f"the game {gamefile} cannot be won", hint="leave it out, as ALFWorld does")
    task_type = str(row.get("task_type", ""))
    return _game_item(identity, gamefile, path, task_type if task_type in TASK_TYPES else "")


def opening(item: Item, root: Path) -> dict[str, Any]:
    """Return what a game process needs to start the game of ``item``.

    Raises:
        DataError: The game file is gone, or is another one than it was.
    """
    if "recipe" in item.content:
        return {"recipe": item.content["recipe"]}
    gamefile = str(item.content["gamefile"])
    path = games.located(gamefile, root)
    if games.fingerprint(path) != item.content["sha256"]:
        raise DataError(f"the game {gamefile} has changed since the run began", hint="start a new run")
    return {"game": games.parsed(path)}
