"""Where an environment's items come from and how they are divided; the same for every environment.

An environment reads files, this module does the rest: it finds the files, divides items by ratio where they are not
divided yet, takes those that a manifest names, and refuses what would spoil a measurement: ids that occur twice,
content that is in two splits, and splits without items.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, DataError
from skillgit.plugin import manifests
from skillgit.plugin.data_rows import raise_all
from skillgit.plugin.environment import Option
from skillgit.plugin.manifests import repetitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.trajectory import Item

Splits = dict[Split, tuple["Item", ...]]
Thing = TypeVar("Thing")

SUFFIXES = (".json", ".jsonl", ".csv")

OPTIONS = (
    Option(
        name="split_mode",
        type=str,
        default="ratio",
        help="How items are divided: 'ratio' divides data_path, 'split_dir' reads a folder for each split.",
    ),
    Option(name="split_ratio", type=str, default="2:1:7", help="Shares of train, selection and test."),
    Option(name="split_seed", type=int, default=42, help="Seed of the division by ratio."),
    Option(
        name="split_dir",
        type=str,
        default="",
        help="Folder with train, val and test; a manifest of ids if data_path is set too.",
    ),
    Option(
        name="data_path",
        type=str,
        default="",
        help="File, or folder of files, to divide by ratio, or to take the items of a manifest from.",
    ),
    Option(name="limit", type=int, default=0, help="First items of each split to use; 0 uses all."),
)
"""The options that an environment declares to have its items loaded by :func:`load_splits`."""


def load_splits(
    options: Mapping[str, str | float | bool],
    root: Path,
    bundle: Path,
    read: Callable[[Sequence[Path]], Sequence[Item]],
) -> Splits:
    """Return the items of all splits.

    Args:
        options: Values of :data:`OPTIONS`.
        root: The folder that relative paths refer to.
        bundle: The folder of the data that comes with the environment, divided into splits; used if the options name
            no data.
        read: Reads the items from the data files of one place.

    Raises:
        ConfigError: The options contradict each other.
        DataError: The data cannot be used.
    """
    split_dir, whole = str(options["split_dir"]), str(options["data_path"])
    mode, limit = str(options["split_mode"]), int(options["limit"])
    _check_options(mode, split_dir, whole, limit)
    if not split_dir and not whole:
        splits = read_folders(bundle, read)
    elif mode == "split_dir" and whole:
        manifest = read_folders(root / split_dir, manifests.read_ids)
        splits = manifests.pick(manifest, read(data_files(root / whole)), root / whole)
    elif mode == "split_dir":
        splits = _of_divided(root / split_dir, read)
    else:
        items = read(data_files(root / whole))
        splits = divide(items, str(options["split_ratio"]), int(options["split_seed"]))
    result = check(splits)
    return {split: items[: limit or None] for split, items in result.items()}


def _check_options(mode: str, split_dir: str, whole: str, limit: int) -> None:
    if mode not in {"ratio", "split_dir"}:
        raise ConfigError(f"env.split_mode is '{mode}'; it must be ratio or split_dir", hint="split_dir reads folders")
    if limit < 0:
        raise ConfigError(f"env.limit is {limit}; it must be at least 0", hint="0 uses all items")
    if mode == "ratio" and split_dir and not whole:
        raise ConfigError("env.split_dir is set though env.split_mode is ratio", hint="set env.split_mode to split_dir")
    if mode == "split_dir" and whole and not split_dir:
        raise ConfigError("env.data_path is set though env.split_mode is split_dir", hint="set env.split_mode to ratio")


def _of_divided(folder: Path, read: Callable[[Sequence[Path]], Sequence[Item]]) -> Splits:
    try:
        return read_folders(folder, read)
    except DataError as error:
        parts = _split_places(folder) if folder.is_dir() else {}
        if parts and all(manifests.holds_ids_only(data_files(part)) for part in parts.values()):
            raise DataError(
                f"{folder} is a manifest: it has ids, and no items",
                hint="name the data that the ids are of: env.data_path=FILE or FOLDER",
            ) from error
        raise


def data_files(source: Path) -> tuple[Path, ...]:
    """Return the data files at ``source``, by name: itself, those in the folder, or else those in its subfolders.

    Raises:
        DataError: There is none.
    """
    if source.is_file():
        return (source,)
    if source.exists() and not source.is_dir():
        raise DataError(f"{source} is a pipe, a socket or a device", hint="name a file or a folder")
    if not source.is_dir():
        raise DataError(f"there is no data at {source}", hint="check the path; -o paths refer to the working directory")
    paths = _data_files_among(source.iterdir()) or _data_files_among(source.rglob("*"))
    paths = tuple(path for path in paths if not any(part.startswith(".") for part in path.relative_to(source).parts))
    if not paths:
        raise DataError(f"there is no *.json, *.jsonl or *.csv file in {source}", hint="name the file or its folder")
    return paths


def _data_files_among(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(path for path in paths if path.suffix in SUFFIXES and path.is_file()))


def read_folders(folder: Path, read: Callable[[Sequence[Path]], Sequence[Thing]]) -> dict[Split, tuple[Thing, ...]]:
    """Return what ``read`` makes of a folder that holds a folder, or a file, for each split.

    Raises:
        DataError: A split has none, or two, or files in them cannot be used; it names all of these.
    """
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}", hint="env.split_dir names a folder with train, val and test")
    parts = _split_places(folder)
    missing = [split for split in Split if split not in parts]
    if missing:
        raise DataError(f"{folder} has no folder for: {', '.join(missing)}", hint="it needs train, val and test")
    by_split: dict[Split, tuple[Thing, ...]] = {}
    faults = []
    for split in Split:
        try:
            by_split[split] = tuple(read(data_files(parts[split])))
        except DataError as fault:
            faults.append(fault)
    raise_all(faults)
    return by_split


def _split_places(folder: Path) -> dict[Split, Path]:
    parts: dict[Split, Path] = {}
    for child in sorted(folder.iterdir()):
        split = _split_of(child.name if child.is_dir() else child.stem)
        if split is None or not (child.is_dir() or child.suffix in SUFFIXES):
            continue
        if split in parts:
            raise DataError(
                f"{folder} has two folders for the {split} split: {parts[split].name} and {child.name}",
                hint="keep one of them",
            )
        parts[split] = child
    return parts


def _split_of(name: str) -> Split | None:
    try:
        return Split.parse(name)
    except DataError:
        return None


def divide(items: Sequence[Item], ratio: str, seed: int) -> Splits:
    """Divide ``items`` into train, selection and test.

    Which item comes where depends on its id and the seed alone, not on the order in a file. The counts are rounded by
    largest remainder; of equal remainders the larger share wins.

    Raises:
        ConfigError: ``ratio`` is not three positive numbers.
        DataError: A split would be empty.
    """
    weights = parse_ratio(ratio)
    counts = _apportion(len(items), weights)
    for split, count in zip(Split, counts, strict=True):
        if count == 0:
            raise DataError(
                f"{len(items)} items are too few for the ratio {ratio}: the {split} split would be empty",
                hint="bring more items, or choose another env.split_ratio",
            )
    # A sort by digest, for the standard library does not promise that its shuffle stays the same.
    order = sorted(items, key=lambda item: (hashlib.sha256(f"{seed}:{item.id}".encode()).digest(), item.id))
    first, second = counts[0], counts[0] + counts[1]
    return {
        Split.TRAIN: tuple(order[:first]),
        Split.SELECTION: tuple(order[first:second]),
        Split.TEST: tuple(order[second:]),
    }


def parse_ratio(ratio: str) -> tuple[int, int, int]:
    """Return the three numbers of a ratio like ``2:1:7``.

    Raises:
        ConfigError: It is something else.
    """
    parts = ratio.split(":")
    if len(parts) != len(Split) or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise ConfigError(
            f"env.split_ratio is '{ratio}'; it must be three positive whole numbers for train, selection and test",
            hint="write it like 2:1:7",
        )
    return int(parts[0]), int(parts[1]), int(parts[2])


def _apportion(total: int, weights: tuple[int, int, int]) -> list[int]:
    whole = sum(weights)
    counts = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(3), key=lambda index: (-(total * weights[index] % whole), -weights[index], index))
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    return counts


def check(splits: Mapping[Split, Sequence[Item]]) -> Splits:
    """Return ``splits`` if a measurement on them can be trusted.

    Raises:
        DataError: A split is empty, an id occurs twice, or content is in two splits; it names all of these.
    """
    faults = [
        DataError(f"the {split} split has no items", hint="every split needs at least one item")
        for split in Split
        if not splits.get(split)
    ]
    raise_all([*faults, *repetitions(splits)])
    return {split: tuple(splits[split]) for split in Split}
