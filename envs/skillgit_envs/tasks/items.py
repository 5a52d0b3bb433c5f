"""Which items there are: those that come with the environment, or the user's, divided by ratio or by a column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.errors import DataError
from skillgit.plugin.splits import check, data_files, load_splits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.trajectory import Item
    from skillgit.plugin.splits import Splits
    from skillgit_envs.tasks.reading import Reader

SHIPPED = Path(__file__).parent / "data"


def load(options: Mapping[str, str | float | bool], root: Path, reader: Reader) -> Splits:
    """Return the items that ``options`` name; the ones that come with the environment if they name none.

    Rows that have a ``split`` are divided by it, and no ratio counts.

    Raises:
        ConfigError: The options contradict each other.
        DataError: The data cannot be used, or only some rows have a split.
    """
    whole, limit = str(options["data_path"]), int(options["limit"])
    if whole and options["split_mode"] == "ratio" and limit >= 0:
        items = reader.read(data_files(root / whole))
        if reader.splits:
            return {split: part[: limit or None] for split, part in _by_column(items, reader.splits).items()}
    return load_splits(options, root, SHIPPED, reader.read)


def _by_column(items: Sequence[Item], assignment: Mapping[str, Split]) -> Splits:
    without = next((item.id for item in items if item.id not in assignment), "")
    if without:
        raise DataError(f"item {without} has no split, though others have", hint="give every row a split, or none")
    splits: dict[Split, tuple[Item, ...]] = dict.fromkeys(Split, ())
    for item in items:
        splits[assignment[item.id]] += (item,)
    return check(splits)
