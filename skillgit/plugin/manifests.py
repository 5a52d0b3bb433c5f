"""Owns splits that are lists of ids: a manifest says which items of a data set train, select and test.

A manifest is a folder like one of divided data, but its rows are ids, or objects with an ``id`` and whatever else.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.untrusted.file_names import shortened
from skillgit.errors import DataError
from skillgit.plugin.data_rows import raise_all, read_each

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.trajectory import Item
    from skillgit.plugin.data_rows import Row


_KEYS = ("id", "key", "uid", "questionId")


def read_ids(files: Sequence[Path]) -> list[str]:
    """Return the ids in the files of a manifest, in their order.

    Raises:
        DataError: A row has no id.
    """
    return read_each(files, _ids)


def holds_ids_only(files: Sequence[Path]) -> bool:
    """Say whether rows of ``files`` have an id and nothing else."""

    def bare(row: Row, path: Path) -> Iterator[bool]:
        del path
        yield isinstance(row.value, str | int) or (isinstance(row.value, dict) and set(row.value) <= set(_KEYS))

    try:
        return all(read_each(files, bare))
    except DataError:
        return False


def pick(manifest: Mapping[Split, Sequence[str]], items: Sequence[Item], source: Path) -> dict[Split, tuple[Item, ...]]:
    """Return the items that a manifest names, in its order.

    Args:
        source: Where they come from, for messages.

    Raises:
        DataError: Ids are not there, or stand for several items.
    """
    by_id: dict[str, Item] = {}
    double: set[str] = set()
    for item in items:
        if by_id.setdefault(item.id, item).digest != item.digest:
            double.add(item.id)
    faults = []
    for split, ids in manifest.items():
        missing, unclear = [name for name in ids if name not in by_id], [name for name in ids if name in double]
        if missing:
            faults.append(missing_ids(split, missing, len(ids), str(source)))
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
    """Return the error that ids of a manifest are not in the data.

    Args:
        total: How many ids the split has.
    """
    return DataError(
        f"{len(missing)} of {total} ids of the {split} split are not in {source}: {named(missing)}",
        hint="the data and the manifest have to come from the same release of the benchmark",
    )


def _ids(row: Row, path: Path) -> Iterator[str]:
    del path
    value = row.value
    if isinstance(value, dict):
        value = next((value[key] for key in _KEYS if value.get(key) not in (None, "")), None)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{row.where} has no id", hint="a manifest has ids, or objects with an 'id'")
    yield str(value).strip()


_SHOWN = 5


def repetitions(splits: Mapping[Split, Sequence[Item]]) -> Iterator[DataError]:
    """Yield a fault for each kind of repetition, inside of splits and between them."""
    for split, items in splits.items():
        yield from _fault(f"ids occur more than once in the {split} split", _repeated(items))
    for first, second in combinations([split for split in Split if split in splits], 2):
        common = {item.id for item in splits[first]} & {item.id for item in splits[second]}
        yield from _fault(f"ids occur in both the {first} and the {second} split", common)
        ids = {item.digest: item.id for item in splits[first]}
        pairs = [f"{ids[item.digest]} = {item.id}" for item in splits[second] if item.digest in ids]
        yield from _fault(f"the same content is in both the {first} and the {second} split", pairs)


def named(names: Collection[str]) -> str:
    """Return the first of ``names`` in their order, and how many more there are."""
    sequence = sorted(names)
    more = f" and {len(sequence) - _SHOWN} more" if len(sequence) > _SHOWN else ""
    return f"{', '.join(map(shortened, sequence[:_SHOWN]))}{more}"


def _repeated(items: Sequence[Item]) -> set[str]:
    ids: set[str] = set()
    return {item.id for item in items if item.id in ids or ids.add(item.id)}  # type: ignore[func-returns-value]


def _fault(text: str, names: Collection[str]) -> Iterator[DataError]:
    if names:
        yield DataError(f"{text}: {named(names)}", hint="remove the repetitions, so that no split leaks into another")
