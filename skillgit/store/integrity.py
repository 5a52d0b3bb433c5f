"""Whether the files that hold git's objects are whole; read without libgit2, which waits for ever on one cut short.

A machine that loses power leaves such files. They keep the same object from being written again, so that a repair sets
them aside.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillgit.store.repo import Repo

_HASH = 20
_PART = 1 << 20
_FANOUT, _NAME = 2, 38


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A file of the object store that is not whole.

    Attributes:
        path: The file.
        sentence: What is wrong with it, without a full stop.
        loose: Whether it holds a single object, which can be set aside.
    """

    path: Path
    sentence: str
    loose: bool


def damaged_files(repo: Repo) -> list[Damage]:
    """Return the files of the object store, those of alternates included, that cannot be read as git wrote them."""
    return [damage for folder in object_folders(repo) for damage in (*_loose(folder), *_packs(folder))]


def set_aside(repo: Repo, damage: Damage) -> Path:
    """Move a damaged loose object out of git's sight, so that it can be written again; return where it is."""
    folder = repo.private_dir / "damaged"
    folder.mkdir(exist_ok=True)
    return damage.path.rename(folder / f"{damage.path.parent.name}{damage.path.name}")


def object_folders(repo: Repo) -> list[Path]:
    """Return the folders that objects are in: the repository's own, and those of its alternates."""
    found: list[Path] = []
    waiting = [repo.common_dir / "objects"]
    while waiting:
        folder = waiting.pop().resolve()
        if folder in found or not folder.is_dir():
            continue
        found.append(folder)
        others = folder / "info" / "alternates"
        lines = others.read_text().splitlines() if others.is_file() else []
        waiting.extend(folder / line for line in lines if line and not line.startswith("#"))
    return found


def _loose(objects: Path) -> Iterator[Damage]:
    for folder in sorted(objects.iterdir()):
        if len(folder.name) != _FANOUT or not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            if len(path.name) == _NAME and (reason := _wrong_with(path)):
                oid = f"{folder.name}{path.name}"
                yield Damage(path=path, sentence=f"the object {oid[:12]} is damaged: {reason}", loose=True)


def _wrong_with(path: Path) -> str:
    """Return what is wrong with a loose object; empty if nothing is."""
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        return "a folder stands in its place"
    if not data:
        return "its file is empty"
    reading = zlib.decompressobj()
    try:
        content = reading.decompress(data)
    except zlib.error:
        return "its file cannot be decompressed"
    if not reading.eof:
        return "its file is cut short"
    if hashlib.sha1(content, usedforsecurity=False).hexdigest() != f"{path.parent.name}{path.name}":
        return "its content is not what its name says"
    return ""


def _packs(objects: Path) -> Iterator[Damage]:
    for pack in sorted((objects / "pack").glob("pack-*.pack")):
        index = pack.with_suffix(".idx")
        if not index.is_file():
            yield Damage(path=pack, sentence=f"the pack {pack.name} has no index; git index-pack {pack}", loose=False)
        elif _tail(pack, _HASH) != _tail(index, 2 * _HASH)[:_HASH]:
            yield Damage(path=pack, sentence=f"the pack {pack.name} is cut short or is not its index's", loose=False)
        else:
            for path in (pack, index):
                if not _is_whole(path):
                    yield Damage(
                        path=path, sentence=f"the content of {path.name} is not what its end says", loose=False
                    )


def _is_whole(path: Path) -> bool:
    """Say whether a pack, or the index of one, has the content whose hash it ends with."""
    left, found = path.stat().st_size - _HASH, hashlib.sha1(usedforsecurity=False)
    with path.open("rb") as file:
        while left > 0 and (part := file.read(min(left, _PART))):
            found.update(part)
            left -= len(part)
        return found.digest() == file.read(_HASH)


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read()
