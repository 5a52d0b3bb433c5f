"""Where an environment's items come from and how they are divided; the same for every environment.

An environment reads files, this module does the rest: it finds the files, divides items by ratio where they are not
divided yet, takes those that a manifest names, and refuses what would spoil a measurement: ids that occur twice,
content that is in two splits, and splits without items. A manifest says by ids which items train, select and test: it
is a folder like one of divided data, but its rows are ids, or objects with an ``id`` and anything else.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.file_names import shortened
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.data_rows import Row, raise_all, read_each
from skillgit.plugin.environment import Option
from skillgit.plugin.groups import Cluster, clusters, cut, related_pairs

Splits = dict[Split, tuple["Item", ...]]
Find = Callable[["Path"], "tuple[Path, ...]"]
Thing = TypeVar("Thing")

STRATIFIED = "stratified"
SUFFIXES = (".json", ".jsonl", ".csv")

_OPTIONS: Mapping[str, tuple[str | int, str]] = {
    "split_mode": (
        "ratio",
        "'ratio' divides data_path, 'stratified' each task type of it, 'split_dir' reads a folder for each split.",
    ),
    "split_ratio": ("2:1:7", "Shares of train, selection and test."),
    "split_seed": (42, "Seed of the division by ratio."),
    "split_dir": ("", "Folder with train, val and test; a manifest of ids if data_path is set too."),
    "data_path": ("", "File, or folder of files, to divide by ratio, or to take the items of a manifest from."),
    "limit": (0, "First items of each split to use; 0 uses all."),
}
OPTIONS = tuple(
    Option(name=name, type=type(default), default=default, help=text) for name, (default, text) in _OPTIONS.items()
)
"""The options that an environment declares to have its items loaded by :func:`load_splits`."""


def load_splits(
    options: Mapping[str, str | float | bool],
    root: Path,
    bundle: Path,
    read: Callable[[Sequence[Path]], Sequence[Item]],
    find: Find | None = None,
) -> Splits:
    """Return the items of all splits, by the values of :data:`OPTIONS`.

    A ConfigError if these contradict each other, a DataError if the data cannot be used. ``bundle`` has the
    environment's own data, divided into splits, for options that name none; ``read`` reads the items of data files, or
    of what ``find`` makes of the place that holds them.
    """
    find = find or data_files
    split_dir, whole = str(options["split_dir"]), str(options["data_path"])
    mode, limit = str(options["split_mode"]), int(options["limit"])
    _check_options(mode, split_dir, whole, limit)
    if whole:
        return split_items(lambda: read(find(root / whole)), options, root, source=str(root / whole))
    splits = _of_divided(root / split_dir, read, find) if split_dir else read_folders(bundle, read, find)
    return first_items(splits, limit)


def split_items(
    read: Callable[[], Sequence[Item]], options: Mapping[str, str | float | bool], root: Path, *, source: str
) -> Splits:
    """Return the splits of what ``read`` returns, which is not divided yet; a folder of splits is a manifest.

    ``options`` are those of :data:`OPTIONS` but ``data_path``. Messages call where the items come from ``source``.
    """
    mode, limit = str(options["split_mode"]), int(options["limit"])
    if mode == "split_dir":
        manifest = read_folders(root / str(options["split_dir"]), read_ids)
        splits = pick(manifest, read(), source)
    else:
        division = divide_each_type if mode == STRATIFIED else divide
        splits = division(read(), str(options["split_ratio"]), int(options["split_seed"]))
    return first_items(splits, limit)


def first_items(splits: Mapping[Split, Sequence[Item]], limit: int) -> Splits:
    """Return ``splits`` without what spoils a measurement, which :func:`check` refuses; 0 means no limit."""
    return {split: items[: limit or None] for split, items in check(splits).items()}


def _check_options(mode: str, split_dir: str, whole: str, limit: int) -> None:
    if mode not in {"ratio", STRATIFIED, "split_dir"}:
        raise ConfigError(
            f"env.split_mode is '{mode}'; it must be ratio, stratified or split_dir", hint="split_dir reads folders"
        )
    if limit < 0:
        raise ConfigError(f"env.limit is {limit}; it must be at least 0", hint="0 uses all items")
    if mode != "split_dir" and split_dir and not whole:
        raise ConfigError(f"env.split_dir is set though env.split_mode is {mode}", hint="set env.split_mode: split_dir")
    if mode == "split_dir" and whole and not split_dir:
        raise ConfigError("env.data_path is set though env.split_mode is split_dir", hint="set env.split_mode to ratio")


def _of_divided(folder: Path, read: Callable[[Sequence[Path]], Sequence[Item]], find: Find) -> Splits:
    try:
        return read_folders(folder, read, find)
    except DataError as error:
        parts = _split_places(folder) if folder.is_dir() else {}
        if parts and find is data_files and all(holds_ids_only(data_files(part)) for part in parts.values()):
            hint = "name the data that the ids are of: env.data_path=FILE or FOLDER"
            raise DataError(f"{folder} is a manifest: it has ids, and no items", hint=hint) from error
        raise


def data_files(source: Path) -> tuple[Path, ...]:
    """Return the data files at ``source`` by name: itself, those in the folder, or else in its subfolders."""
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


def read_folders(
    folder: Path, read: Callable[[Sequence[Path]], Sequence[Thing]], find: Find = data_files
) -> dict[Split, tuple[Thing, ...]]:
    """Return what ``read`` makes of a folder with a folder or file for each split; one DataError names all faults."""
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
            by_split[split] = tuple(read(find(parts[split])))
        except DataError as fault:
            faults.append(fault)
    raise_all(faults)
    return by_split


def _split_places(folder: Path) -> dict[Split, Path]:
    parts: dict[Split, Path] = {}
    for child in sorted(folder.iterdir()):
        split = None
        with suppress(DataError):
            split = Split.parse(child.name if child.is_dir() else child.stem)
        if split is None or not (child.is_dir() or child.suffix in SUFFIXES):
            continue
        if split in parts:
            message = f"{folder} has two folders for the {split} split: {parts[split].name} and {child.name}"
            raise DataError(message, hint="keep one of them")
        parts[split] = child
    return parts


def divide(items: Sequence[Item], ratio: str, seed: int) -> Splits:
    """Divide ``items`` into train, selection and test, and no group; a DataError if a split would be empty."""
    # Which item comes where depends on ids, groups and the seed alone, not on the order in a file. The counts are
    # rounded by largest remainder; of equal remainders the larger share wins.
    weights = parse_ratio(ratio)
    counts = _apportion(len(items), weights)
    for split, count in zip(Split, counts, strict=True):
        if count == 0:
            message = f"{len(items)} items are too few for the ratio {ratio}: the {split} split would be empty"
            raise DataError(message, hint="bring more items, or choose another env.split_ratio")
    parts = clusters(_mixed(items, seed))
    if len(parts) < len(Split):
        groups = "one group" if len(parts) == 1 else "two groups"
        message = f"{len(items)} items of {groups} cannot be divided into three splits"
        raise DataError(message, hint="a group stays on one side: bring items of other groups")
    return _flat(cut(parts, counts), seed)


def divide_each_type(items: Sequence[Item], ratio: str, seed: int) -> Splits:
    """Divide the items of each task type, so that every split has its share of each, by the reference's counts.

    Train and selection get their shares, rounded half to even, and at least one item of three or more; of two, one is
    for train and one for the test; a single one is for the test. A group counts as the type of most of its items.
    """
    weights = parse_ratio(ratio)
    by_type: dict[str, list[Cluster]] = defaultdict(list)
    for cluster in clusters(_mixed(items, seed)):
        by_type[Counter(item.task_type for item in cluster).most_common(1)[0][0]].append(cluster)
    whole: list[list[Cluster]] = [[] for _ in Split]
    for parts in by_type.values():
        size = sum(map(len, parts))
        train, selection = (max(1, round(size * weight / sum(weights))) for weight in weights[:2])
        if len(parts) < len(Split):
            train, selection = sum(map(len, parts[:-1])), 0
        shares = cut(parts, (train, selection, size - train - selection))
        whole = [[*before, *share] for before, share in zip(whole, shares, strict=True)]
    return _flat(whole, seed)


def _mixed(items: Sequence[Item], seed: int) -> list[Item]:
    """Return ``items`` in an order by digest, for the standard library does not promise that its shuffle stays."""
    return sorted(items, key=lambda item: (hashlib.sha256(f"{seed}:{item.id}".encode()).digest(), item.id))


def _flat(shares: Iterable[Iterable[Cluster]], seed: int) -> Splits:
    parts = ([item for cluster in share for item in cluster] for share in shares)
    return {split: tuple(_mixed(part, seed)) for split, part in zip(Split, parts, strict=True)}


def parse_ratio(ratio: str) -> tuple[int, int, int]:
    """Return the three numbers of a ratio like ``2:1:7``; a ConfigError if it is something else."""
    parts = ratio.split(":")
    if len(parts) != len(Split) or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        message = f"env.split_ratio is '{ratio}'; it must be three positive whole numbers for train, selection and test"
        raise ConfigError(message, hint="write it like 2:1:7")
    return int(parts[0]), int(parts[1]), int(parts[2])


def _apportion(total: int, weights: tuple[int, int, int]) -> list[int]:
    whole = sum(weights)
    counts = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(3), key=lambda index: (-(total * weights[index] % whole), -weights[index], index))
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    return counts


def check(splits: Mapping[Split, Sequence[Item]]) -> Splits:
    """Return ``splits``, or raise a DataError that names each empty split, repeated id and content in two splits."""
    faults = [
        DataError(f"the {split} split has no items", hint="bring more items, of each task type: every split needs one")
        for split in Split
        if not splits.get(split)
    ]
    raise_all([*faults, *repetitions(splits)])
    return {split: tuple(splits[split]) for split in Split}


_KEYS = ("id", "key", "uid", "questionId")
_SHOWN = 5


def read_ids(files: Sequence[Path]) -> list[str]:
    """Return the ids in the files of a manifest, in their order; a DataError if a row has none."""
    return read_each(files, _ids)


def holds_ids_only(files: Sequence[Path]) -> bool:
    def bare(row: Row, path: Path) -> Iterator[bool]:
        del path
        yield isinstance(row.value, str | int) or (isinstance(row.value, dict) and set(row.value) <= set(_KEYS))

    try:
        return all(read_each(files, bare))
    except DataError:
        return False


def pick(manifest: Mapping[Split, Sequence[str]], items: Sequence[Item], source: str) -> dict[Split, tuple[Item, ...]]:
    """Return the items that a manifest names, in its order; a DataError if ids are not there, or mean several items."""
    by_id: dict[str, Item] = {}
    double: set[str] = set()
    for item in items:
        if by_id.setdefault(item.id, item).digest != item.digest:
            double.add(item.id)
    faults = []
    for split, ids in manifest.items():
        missing, unclear = [name for name in ids if name not in by_id], [name for name in ids if name in double]
        if missing:
            faults.append(missing_ids(split, missing, len(ids), source))
        if unclear:
            faults.append(
                DataError(
                    f"ids of the {split} split stand for several items in {source}: {named(unclear)}",
                    hint="give every item of the data an id of its own",
                )
            )
    raise_all(faults)
    return {split: tuple(by_id[name] for name in ids) for split, ids in manifest.items()}


def missing_ids(split: Split, missing: Sequence[str], total: int, source: str) -> DataError:
    """Return the error that ids of a manifest, of ``total`` in its split, are not in the data."""
    message = f"{len(missing)} of {total} ids of the {split} split are not in {source}: {named(missing)}"
    return DataError(message, hint="the data and the manifest have to come from the same release of the benchmark")


def _ids(row: Row, path: Path) -> Iterator[str]:
    del path
    value = row.value
    if isinstance(value, dict):
        value = next((value[key] for key in _KEYS if value.get(key) not in (None, "")), None)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{row.where} has no id", hint="a manifest has ids, or objects with an 'id'")
    yield str(value).strip()


def repetitions(splits: Mapping[Split, Sequence[Item]]) -> Iterator[DataError]:
    """Yield a fault for each kind of repetition, inside of splits and between them."""
    for split, items in splits.items():
        counts = Counter(item.id for item in items)
        repeated_ids = [name for name, count in counts.items() if count > 1]
        yield from _fault(f"ids occur more than once in the {split} split", repeated_ids)
    for first, second in combinations([split for split in Split if split in splits], 2):
        common = {item.id for item in splits[first]} & {item.id for item in splits[second]}
        yield from _fault(f"ids occur in both the {first} and the {second} split", common)
        ids = {item.digest: item.id for item in splits[first]}
        pairs = [f"{ids[item.digest]} = {item.id}" for item in splits[second] if item.digest in ids]
        yield from _fault(f"the same content is in both the {first} and the {second} split", pairs)
        groups = {item.group: item.id for item in splits[first] if item.group}
        pairs = [f"{groups[item.group]} and {item.id}" for item in splits[second] if item.group in groups]
        yield from _fault(f"items of one group are in both the {first} and the {second} split", pairs, _APART)


def near_duplicates(splits: Mapping[Split, Sequence[Item]], prompt: Callable[[Item], str]) -> Iterator[DataError]:
    """Yield a fault for every two splits with items that ask nearly the same, of which one has a group."""
    side = {item.id: split for split, items in splits.items() for item in items}
    pairs: dict[frozenset[Split], list[str]] = defaultdict(list)
    for original, retry in related_pairs([item for items in splits.values() for item in items], prompt):
        pairs[frozenset((side[original.id], side[retry.id]))].append(f"{original.id} ~ {retry.id}")
    for first, second in combinations(splits, 2):
        where = f"both the {first} and the {second} split"
        yield from _fault(f"nearly the same is asked in {where}", pairs[frozenset((first, second))], _APART)


def named(names: Collection[str]) -> str:
    """Return the first of ``names`` in their order, and how many more there are."""
    sequence = sorted(names)
    more = f" and {len(sequence) - _SHOWN} more" if len(sequence) > _SHOWN else ""
    return f"{', '.join(map(shortened, sequence[:_SHOWN]))}{more}"


_REPEATED = "remove the repetitions, so that no split leaks into another"
_APART = "put them on one side, or let env.split_ratio divide them, which keeps them together"


def _fault(text: str, names: Collection[str], hint: str = _REPEATED) -> Iterator[DataError]:
    if names:
        yield DataError(f"{text}: {named(names)}", hint=hint)
