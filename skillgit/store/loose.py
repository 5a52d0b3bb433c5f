"""Loose objects as libgit2 gets them: read here, for libgit2 waits for ever for the rest of one that is cut short."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import ObjectType

if TYPE_CHECKING:
    from pathlib import Path

BEFORE_ALL = 3
"""A priority that libgit2's own backends, of packs and of loose objects, do not have."""
_KINDS = {
    b"commit": ObjectType.COMMIT,
    b"tree": ObjectType.TREE,
    b"blob": ObjectType.BLOB,
    b"tag": ObjectType.TAG,
}
_NO_OID = pygit2.Oid(raw=b"")


class LooseObjects(pygit2.OdbBackend):
    """The loose objects in the folder ``objects``; what is not there is looked for elsewhere (``KeyError``)."""

    def __init__(self, objects: Path) -> None:
        super().__init__()
        self._objects = objects
        self._plain = pygit2.Odb(str(objects))

    def read_cb(self, oid: pygit2.Oid) -> tuple[int, bytes]:
        """Return the type and the content of an object.

        Raises:
            GitError: Its file is damaged.
        """
        name = str(oid)
        try:
            data = (self._objects / name[:2] / name[2:]).read_bytes()
        except OSError:
            raise KeyError(name) from None
        reading = zlib.decompressobj()
        try:
            head, _, content = reading.decompress(data).partition(b"\0")
        except zlib.error:
            raise pygit2.GitError(f"the file of {name} cannot be decompressed") from None
        if not reading.eof:
            raise pygit2.GitError(f"the file of {name} is cut short")
        kind = _KINDS.get(head.partition(b" ")[0])
        if kind is None:
            raise pygit2.GitError(f"the file of {name} is no object")
        return kind, content

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        """Return the type and the length of an object; errors are those of :meth:`read_cb`."""
        kind, content = self.read_cb(oid)
        return kind, len(content)

    def read_prefix_cb(self, prefix: pygit2.Oid | str) -> tuple[int, bytes, pygit2.Oid]:
        """Return the type, the content and the name of the object whose name begins with ``prefix``.

        Raises:
            GitError: Its file is damaged.
            ValueError: There are several.
        """
        start = str(prefix)
        names = [f"{start[:2]}{path.name}" for path in (self._objects / start[:2]).glob(f"{start[2:]}*")]
        if len(names) > 1:
            raise ValueError(start)
        if not names or len(names[0]) != len(str(_NO_OID)):
            raise KeyError(start)
        oid = pygit2.Oid(hex=names[0])
        return *self.read_cb(oid), oid

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        """Leave it to libgit2, which looks for the file."""
        del oid
        return False

    def exists_prefix_cb(self, oid: pygit2.Oid) -> pygit2.Oid:
        """Leave abbreviated names to libgit2."""
        raise KeyError(str(oid))

    def write_cb(self, oid: pygit2.Oid, data: bytes, kind: int) -> None:
        """Write an object, as libgit2 does it without this backend."""
        del oid
        self._plain.write(kind, data)

    def refresh_cb(self) -> None:
        """Do nothing, for nothing is remembered."""
