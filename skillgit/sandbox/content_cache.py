"""Owns results that are kept on the disk because they take long to compute: of all processes of a user, and bounded."""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.files import read_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentCache:
    """Files by key, in ``$XDG_CACHE_HOME/skillgit/<name>``, else in ``~/.cache``; those unused for longest go first.

    A key is the digest of all that decides the content. A disk that is full or read-only costs time and nothing else.
    """

    name: str
    most_bytes: int

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the contents that are there; one that was damaged is not."""
        contents = {}
        for key in keys:
            path = self._folder / key
            with suppress(OSError):
                data = read_plain(path, most=self.most_bytes)
                if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
                    contents[key] = data[_DIGEST:]
                    os.utime(path)
        return contents

    def write(self, contents: Mapping[str, bytes]) -> None:
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for key, content in contents.items():
                self._put(key, content)
            self._drop_oldest()

    def _put(self, key: str, content: bytes) -> None:
        handle, young = tempfile.mkstemp(dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(content).digest() + content)
            Path(young).replace(self._folder / key)
        except OSError:
            Path(young).unlink(missing_ok=True)
            raise

    def _drop_oldest(self) -> None:
        with os.scandir(self._folder) as entries:
            files = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        total = sum(state.st_size for state, _ in files)
        for state, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
            if total <= self.most_bytes:
                break
            Path(path).unlink(missing_ok=True)
            total -= state.st_size

    @property
    def _folder(self) -> Path:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expandvars("$HOME/.cache")
        if not Path(home).is_absolute():
            raise OSError("the user has no folder for caches")
        return Path(home) / "skillgit" / self.name
