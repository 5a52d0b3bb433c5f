"""Reading a great many objects once each, as ``git log`` reads them.

libgit2 hashes every object that it reads and keeps many of them in memory. Both take a third of the time that reading
takes, and neither is of use to a walk through whole histories: git does not hash what it reads either, and ``fsck``
does it for those who ask.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pygit2

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def bulk_reading() -> Iterator[None]:
    """Let a block, and processes that it forks, read objects without hashing or keeping them."""
    _hash_and_keep(is_enabled=False)
    try:
        yield
    finally:
        _hash_and_keep(is_enabled=True)


def _hash_and_keep(*, is_enabled: bool) -> None:
    pygit2.settings.enable_strict_hash_verification(is_enabled)
    pygit2.settings.enable_caching(is_enabled)
