"""The items of ALFWorld: manifests of game files, folders of games, and recipes of games that are made when needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.files import read_plain
from skillgit.plugin.rows import check_storable, text_field
from skillgit.plugin.splits import check, divide, load_splits
from skillgit_envs.alfworld import games
from skillgit_envs.alfworld.generator.recipe import TASK_TYPES, Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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
        return load_splits(options, root, SHIPPED, _manifest_reader(data_root))
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


def _manifest_reader(root: Path) -> Callable[[Sequence[Path]], list[Item]]:
    def read(files: Sequence[Path]) -> list[Item]:
        return [item for path in files for item in _manifest(path, root)]

    return read


def _manifest(path: Path, root: Path) -> Iterator[Item]:
    for number, row in enumerate(_rows(path), start=1):
        where = f"{path}, item {number}"
        identity = text_field(where, row, "id") if isinstance(row, dict) else ""
        if not isinstance(row, dict) or not identity:
            raise DataError(f"{where} has no id", hint=_HINT)
        try:
            yield _item(identity, row, where, root)
        except DataError as error:
            raise DataError(f"{where}: {error.message}", hint=error.hint) from error


def _item(identity: str, row: Mapping[str, Any], where: str, root: Path) -> Item:
    if isinstance(row.get("recipe"), dict):
        recipe = Recipe.parse(row["recipe"], where)
        return Item(id=identity, content={"recipe": recipe.content()}, task_type=recipe.task)
    gamefile = row.get("gamefile")
    if not isinstance(gamefile, str) or not gamefile.strip():
        raise DataError("neither a gamefile nor a recipe is named", hint=_HINT)
    path = games.located(gamefile, root)
    if games.parsed(path).get("solvable") is False:
        raise DataError(f"the game {gamefile} cannot be won", hint="leave it out, as ALFWorld does")
    task_type = str(row.get("task_type", ""))
    return _game_item(identity, gamefile, path, task_type if task_type in TASK_TYPES else "")


def _rows(path: Path) -> Sequence[object]:
    try:
        text = read_plain(path, most=None, follow=True).decode("utf-8-sig")
        if path.suffix == ".jsonl":
            value = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno} is not JSON: {error.msg}", hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8", hint="save it as UTF-8") from error
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}", hint="check the path and its permissions"
        ) from error
    if isinstance(value, dict):
        value = value.get("data", [value])
    if not isinstance(value, list):
        raise DataError(f"{path} is not a list of items", hint=_HINT)
    check_storable(str(path), value)
    return value


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
