"""The documents as tests read them: parts between marks that are made from code, and the code that they show.

``UPDATE_DOCS=1 pytest …`` writes the parts.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    """Return the text of a page of ``docs``, or of the README."""
    return (ROOT / name if name == "README.md" else DOCS / name).read_text(encoding="utf-8")


def blocks(name: str, language: str, *, mark: str = "") -> list[str]:
    """Return the blocks of a page in ``language``, of those below the comment ``mark`` if one is given."""
    begin = f"<!-- {mark} -->\n" if mark else ""
    return re.findall(rf"^{begin}```{language}\n(.*?)^```", page(name), flags=re.DOTALL | re.MULTILINE)


def code(name: str, words: str, language: str = "python") -> str:
    """Return the only block of a page that holds ``words``."""
    (block,) = [block for block in blocks(name, language) if words in block]
    return block


def part(name: str, mark: str) -> str:
    """Return what a page has between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    text = page(name).partition(f"<!-- {mark} -->\n\n")[2]
    return text.partition(f"<!-- /{mark} -->")[0].rstrip() + "\n"


def check_part(name: str, mark: str, wanted: str) -> None:
    """Check the part of a page that is made from code, or write it with ``UPDATE_DOCS=1``."""
    if os.environ.get("UPDATE_DOCS"):
        head, begin, rest = page(name).partition(f"<!-- {mark} -->\n")
        _, end, tail = rest.partition(f"<!-- /{mark} -->")
        assert begin, f"{name} has no part called {mark}"
        assert end
        (DOCS / name).write_text(f"{head}{begin}\n{wanted.rstrip()}\n\n{end}{tail}", encoding="utf-8")
    assert part(name, mark) == wanted.rstrip() + "\n", "run UPDATE_DOCS=1 with this test"
