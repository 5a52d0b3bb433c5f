"""What export and adopt put where."""

from __future__ import annotations

import re
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.cli.render import text_diff, words
from skillgit.cli.render.inert import inert, one_line
from skillgit.cli.render.items import name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.adopt import Adopted, Standing
    from skillgit.app.adopted import Installed, Undone
    from skillgit.app.export.folder import ExportedSkill
    from skillgit.app.folders.changes import Change
    from skillgit.cli.screen import Screen

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SIGNS = {"added": "A", "removed": "D", "changed": "M"}


def exported(result: ExportedSkill) -> Iterator[str]:
    """Yield what was written."""
    what = f"{name(result.row)} of {result.row.run}" if result.row else words.short(result.commit)
    place = one_line(result.place)
    if result.held:
        yield f"{place} holds {what} already"
    else:
        yield f"{place} holds {what}, {words.plural(len(result.files), 'file')}"


def would_change(changes: Sequence[Change]) -> Iterator[str]:
    """Yield a line for each file that is not what it would be."""
    for change in changes:
        yield f"{_SIGNS[change.status]}  {one_line(change.path or '.')}"


def differences(changes: Sequence[Change], screen: Screen) -> Iterator[str]:
    """Yield the differences of the texts, with nothing in them that a terminal obeys."""
    for change in changes:
        text = inert(change.diff)
        yield from text_diff.coloured(text, screen) if screen.colour else text_diff.plain(text)


def adopted(result: Adopted) -> Iterator[str]:
    """Yield what was put where."""
    place = one_line(result.place)
    if result.held:
        yield f"{place} holds {_called(result.name)} already"
    elif not result.written:
        instead = f" instead of {_standing(result.before)}" if result.before is not None else ""
        yield f"would put {_called(result.name)} at {place}{instead}"
    else:
        instead = f" instead of {_standing(result.before)}" if result.before is not None else ""
        yield f"{place} holds {_called(result.name)}{instead}; back: skillgit adopt --undo --to {quote(result.place)}"


def undone(result: Undone) -> Iterator[str]:
    """Yield what is there again."""
    again = "nothing" if result.restored is None else _standing(result.restored)
    place = one_line(result.place)
    if result.written:
        yield f"{place} holds {again} again"
    else:
        yield f"would leave nothing at {place}" if result.restored is None else f"would bring back {again} to {place}"


def listed(rows: Sequence[Installed]) -> Iterator[str]:
    """Yield a line for each place."""
    if not rows:
        yield "nothing was adopted from here"
        return
    names = [_called(row.name) for row in rows]
    widths = [max(map(len, column)) for column in (names, [row.state for row in rows])]
    for name_, row in zip(names, rows, strict=True):
        newer = f"   newer: {row.newer}" if row.newer else ""
        yield f"{name_.ljust(widths[0])}  {row.state.ljust(widths[1])}  {one_line(row.place)}{newer}"


def _standing(found: Standing) -> str:
    if not found.name:
        return "what did not come from here"
    return f"an edited {_called(found.name)}" if found.by_hand else _called(found.name)


def _called(what: str) -> str:
    """Return the name of a version; a commit's shortened, as people read it."""
    return words.short(what) if _COMMIT.fullmatch(what) else what
