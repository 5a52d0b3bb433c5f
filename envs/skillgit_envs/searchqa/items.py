"""The items of SearchQA: which files they are read from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import DataError
from skillgit.plugin.splits import load_splits
from skillgit_envs.searchqa.formats import is_single_crawl, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.trajectory import Item
    from skillgit.plugin.splits import Splits

SHIPPED = Path(__file__).parent / "data"


def load(options: Mapping[str, str | float | bool], root: Path) -> Splits:
    """Return the items that ``options`` name; the ones that come with the environment if they name none.

    Raises:
        ConfigError: The options contradict each other.
        DataError: The data cannot be used.
    """
    return load_splits(options, root, SHIPPED, _read)


def _read(files: Sequence[Path]) -> list[Item]:
    """Read one file of many items, or many files of one item."""
    if len(files) > 1:
        others = [path for path in files if not is_single_crawl(path)]
        if others:
            raise DataError(
                f"{files[0].parent} has {len(files)} data files and {others[0].name} is not a single crawled item",
                hint="keep one *.json or *.jsonl file in the folder",
            )
    return [item for path in files for item in read_file(path)]
