"""How two folders differ, file by file, and the differences of their texts."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING

from skillgit.app.folders.entries import Kind, edited
from skillgit.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.app.folders.entries import Entry

_NO_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file that differs.

    Attributes:
        path: Its path in the folder; empty for the place itself, where that is no folder.
        status: ``added``, ``removed`` or ``changed``.
        diff: The difference of the texts as ``diff -u`` prints it, or a sentence where there is no text.
    """

    path: str
    status: str
    diff: str


class DiffersError(ConflictError):
    """A place holds something else, and nobody has agreed to replace it.

    Args:
        message: What happened.
        hint: What helps.
        changes: What would change.
    """

    def __init__(self, message: str, *, hint: str, changes: tuple[Change, ...]) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


def changes(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> tuple[Change, ...]:
    """Return how ``new`` differs from ``old``, by path."""
    before, after = edited(old), edited(new)
    found = []
    for path in sorted({*before, *after}):
        one, other = before.get(path), after.get(path)
        if not _same(one, other):
            status = "added" if one is None else "removed" if other is None else "changed"
            found.append(Change(path=path, status=status, diff="".join(_diff(path, one, other))))
    return tuple(found)


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.kind, one.content, one.executable) == (other.kind, other.content, other.executable)


def _diff(path: str, one: Entry | None, other: Entry | None) -> Iterator[str]:
    old, new = (f"{side}/{path or '.'}" if entry else "/dev/null" for side, entry in (("a", one), ("b", other)))
    yield f"diff --git a/{path or '.'} b/{path or '.'}\n"
    if one is not None and other is not None and one.executable != other.executable:
        yield f"old mode {'100755' if one.executable else '100644'}\n"
        yield f"new mode {'100755' if other.executable else '100644'}\n"
    texts = _text(one), _text(other)
    if texts[0] is None or texts[1] is None:
        yield _without_texts(path or ".", one, other)
        return
    for line in unified_diff(_lines(texts[0]), _lines(texts[1]), old, new):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}\n"


def _text(entry: Entry | None) -> str | None:
    """Return the text of a file; None for everything that is no text."""
    if entry is None:
        return ""
    if entry.kind is not Kind.FILE or b"\0" in entry.content:
        return None
    try:
        return entry.content.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _without_texts(path: str, one: Entry | None, other: Entry | None) -> str:
    if one is None or other is None:
        entry = one or other
        return f"{'new' if one is None else 'gone'}: the {_what(entry)} {path}\n"
    return f"changed: the {_what(one)} {path}{f' is a {_what(other)} now' if one.kind is not other.kind else ''}\n"


def _what(entry: Entry | None) -> str:
    return "link" if entry is not None and entry.kind is Kind.LINK else "file"
