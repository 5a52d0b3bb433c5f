"""Paths as people type them."""

from __future__ import annotations

from contextlib import suppress
from os.path import normpath
from pathlib import Path


def typed_path(directory: Path, text: str) -> Path:
    """Return the path that ``text`` means in ``directory``, without ``..``; links on it are not followed.

    A leading ``~`` is the user's home also where the shell leaves it alone, as in ``--to=~/skills``.
    """
    path = Path(text)
    with suppress(RuntimeError):  # nobody is called so: it is a name like any other
        path = path.expanduser()
    return Path(normpath(directory / path))
