"""A disk that loses power: what ``record.c`` recorded is played to a moment, and what was not confirmed may be lost.

A file has the content that was confirmed, and of later writes none, some or all. A folder has the names that were
confirmed, and later changes of them up to some place. Both choose anew at every moment, whatever others chose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of the record."""

    kind: str
    inode: int
    offset: int
    length: int
    path: str
    to: str
    data: bytes


@dataclass(slots=True)
class File:
    """A file: confirmed content, and the writes since; ``None`` as data cuts it at the offset."""

    content: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def confirm(self) -> None:
        self.content = self.after(self.pending)
        self.pending = []

    def after(self, writes: list[tuple[int, bytes | None]]) -> bytes:
        found = bytearray(self.content)
        for offset, data in writes:
            if data is None:
                found = found[:offset].ljust(offset, b"\0")
            else:
                found = found.ljust(offset, b"\0")
                found[offset : offset + len(data)] = data
        return bytes(found)

    def lost(self, random: Random) -> bytes:
        match random.randrange(3):
            case 0:
                return self.content
            case 1:
                return self.after(self.pending[: random.randint(0, len(self.pending))])
            case _:
                return self.after([write for write in self.pending if random.random() < 0.5])


@dataclass(slots=True)
class Folder:
    """A folder: confirmed names, and the changes since; ``None`` takes a name away."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    now: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[dict[str, File | Folder | None]] = field(default_factory=list)

    def change(self, names: dict[str, File | Folder | None]) -> None:
        """Set ``names``, all at once."""
        self.pending.append(names)
        _change(self.now, names)

    def confirm(self) -> None:
        self.names, self.pending = dict(self.now), []

    def write(self, place: Path, random: Random) -> None:
        """Make ``place`` what is left of this folder."""
        place.mkdir()
        names = dict(self.names)
        for change in self.pending[: random.randint(0, len(self.pending))]:
            _change(names, change)
        for name, node in names.items():
            if isinstance(node, Folder):
                node.write(place / name, random)
            elif not name.endswith("-shm"):
                (place / name).write_bytes(node.lost(random))


def _change(names: dict[str, File | Folder], change: dict[str, File | Folder | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """The disk as it was before the record, and from then on as the operations leave it."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._nodes: dict[int, File | Folder] = {}
        self.top = self._read(root)

    def _read(self, place: Path) -> Folder:
        folder = Folder()
        self._nodes[place.stat().st_ino] = folder
        for path in place.iterdir():
            if path.is_dir():
                folder.names[path.name] = self._read(path)
            else:
                folder.names[path.name] = self._nodes[path.stat().st_ino] = File(path.read_bytes())
        folder.now = dict(folder.names)
        return folder

    def do(self, operation: Operation) -> None:
        """Do what was done then."""
        match operation.kind:
            case "C" | "M":
                node = File() if operation.kind == "C" else Folder()
                self._nodes[operation.inode] = node
                self._at(operation.path).change({_name(operation.path): node})
            case "W" | "T":
                file = self._nodes[operation.inode]
                assert isinstance(file, File)
                file.pending.append((operation.offset, operation.data if operation.kind == "W" else None))
            case "S":
                self._nodes[operation.inode].confirm()
            case "L" | "R":
                old, new = self._at(operation.path), self._at(operation.to)
                node = old.now[_name(operation.path)]
                gone = {_name(operation.path): None} if operation.kind == "R" else {}
                if old is new:
                    new.change({**gone, _name(operation.to): node})
                else:
                    new.change({_name(operation.to): node})
                    old.change(gone)
            case "U":
                self._at(operation.path).change({_name(operation.path): None})
            case _:
                raise AssertionError(operation.kind)

    def confirm(self) -> None:
        """Confirm everything."""
        for node in (*self._nodes.values(), *_below(self.top)):
            node.confirm()

    def _at(self, path: str) -> Folder:
        folder = self.top
        for part in path.removeprefix(f"{self._root}/").split("/")[:-1]:
            inner = folder.now[part]
            assert isinstance(inner, Folder)
            folder = inner
        return folder


def _below(folder: Folder) -> Iterator[File | Folder]:
    for node in folder.now.values():
        yield node
        if isinstance(node, Folder):
            yield from _below(node)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def operations(record: Path) -> Iterator[Operation]:
    """Yield what was recorded."""
    with record.open("rb") as stream:
        while head := stream.readline():
            kind, *numbers = head.decode().split()
            inode, offset, length, path, to = map(int, numbers)
            names = stream.read(path).decode(), stream.read(to).decode()
            yield Operation(kind, inode, offset, length, *names, stream.read(length) if kind == "W" else b"")
