"""The user's browser, which learns of an address without others doing so."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

_PAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<title>skillgit</title>
<meta http-equiv="refresh" content="0; url={}">
"""


@contextmanager
def opened_privately(link: str) -> Iterator[bool]:
    """Open ``link`` in the browser, and yield whether there is one.

    Every user of the machine can read a command line, and the link holds a token. So the browser is given a file that
    only this user can read and that leads to the link; it is there for as long as the block lasts.
    """
    handle, name = tempfile.mkstemp(prefix="skillgit-", suffix=".html")  # only its owner may read it
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_PAGE.format(escape(link)))
        yield webbrowser.open(path.as_uri())
    finally:
        path.unlink(missing_ok=True)
