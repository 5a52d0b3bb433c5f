"""Owns how rows become files of items: each id once, in one file or in one for each split."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.ids import digest
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path
    from typing import IO

ITEMS = "items.jsonl"
FOLDERS = {Split.TRAIN: "train", Split.SELECTION: "val", Split.TEST: "test"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of items.

    Attributes:
        path: Where it stands in the folder.
        items: How many rows it has.
        sha256: The digest of its bytes.
    """

    path: str
    items: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """What became of the rows.

    Attributes:
        files: The files of items.
        ids: The ids of all items in them.
        repeated: How many rows were left out because they stood there already.
    """

    files: tuple[Written, ...]
    ids: Collection[str]
    repeated: int


class _File:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._sha = stream, hashlib.sha256()
        self._items = 0

    def add(self, row: Mapping[str, object]) -> None:
        line = f"{json.dumps(row, ensure_ascii=False)}\n".encode()
        self._stream.write(line)
        self._sha.update(line)
        self._items += 1

    def written(self, path: str) -> Written:
        return Written(path=path, items=self._items, sha256=self._sha.hexdigest())


def write_items(folder: Path, rows: Iterable[Mapping[str, object]], splits: Mapping[str, Split] | None) -> Sorted:
    """Write ``rows`` below ``folder``, which is made.

    Args:
        folder: Where to.
        rows: Rows with an ``id``; they are read once, as they come.
        splits: Id to the split that it belongs to; rows with other ids are left out. None writes all rows to one file.

    Raises:
        DataError: Two rows with one id have different content.
    """
    names = {None: ITEMS} if splits is None else {split: f"{FOLDERS[split]}/{ITEMS}" for split in Split}
    seen: dict[str, str] = {}
    repeated = 0
    with ExitStack() as stack:
        files = {key: _File(stack.enter_context(_opened(folder / name))) for key, name in names.items()}
        for row in rows:
            identity = str(row["id"])
            split = splits.get(identity) if splits is not None else None
            if splits is not None and split is None:
                continue
            if identity not in seen:
                seen[identity] = digest(row)
                files[split].add(row)
                continue
            if seen[identity] != digest(row):
                raise DataError(f"two different rows have the id {identity}", hint="try another --revision")
            repeated += 1
    return Sorted(files=tuple(files[key].written(name) for key, name in names.items()), ids=seen, repeated=repeated)


def _opened(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb")
