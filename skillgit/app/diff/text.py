"""How the texts of two versions differ: as git prints it, and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.diff.sides import Sides, sides
from skillgit.app.workspace import open_workspace
from skillgit.errors import UsageError
from skillgit.store import diff as store_diff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.context import Context
    from skillgit.app.workspace import Workspace
    from skillgit.domain.text_diff import FileDiff
    from skillgit.index.rows import LogRow

_SETTING = "diff.context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffed:
    """The difference of two texts.

    Attributes:
        a: The older side's event; absent for a commit that is no event.
        b: The newer side's event; absent for a commit that is no event.
        text: The bytes that ``git diff A B`` prints for the skill folder.
        files: The same as data; empty where only the text was asked for.
    """

    a: LogRow | None
    b: LogRow | None
    text: bytes
    files: tuple[FileDiff, ...] = ()


def diff(
    context: Context,
    a: str,
    b: str | None = None,
    paths: Sequence[str] = (),
    *,
    lines: int | None = None,
    words: bool = False,
    colour: bool = False,
    as_data: bool = False,
) -> Diffed:
    """Return how the skill's text differs between the revisions ``a`` and ``b``.

    Args:
        context: Where to look.
        a: A revision.
        b: Another one; without it ``a`` is compared with what it was made from.
        paths: Files or folders to compare; none for the skill folder.
        lines: Unchanged lines around a change; None for what the user has set for git.
        words: Whether to mark changed words instead of lines, as ``git diff --word-diff`` does.
        colour: Whether git is to paint the text.
        as_data: Whether to return the files as data, too.

    Raises:
        RevisionNotFoundError: One of them names nothing, or there is nothing to compare with.
        NotFoundError: Neither side has a file of that name.
    """
    options = (
        *([] if lines is None else [f"-U{lines}"]),
        *(["--word-diff=plain"] if words else []),
        *(["--color=always"] if colour else []),
    )
    with open_workspace(context) as workspace:
        both = sides(workspace, a, b, paths)
        return Diffed(
            a=both.a.row,
            b=both.b.row,
            text=store_diff.diff(workspace.repo, both.a.commit, both.b.commit, *both.paths, options=options),
            files=_files(workspace, both, lines) if as_data else (),
        )


def _files(workspace: Workspace, both: Sides, lines: int | None) -> tuple[FileDiff, ...]:
    from skillgit.domain.text_diff import CONTEXT, detailed  # noqa: PLC0415 - a pipe does not need it
    from skillgit.domain.unified import read  # noqa: PLC0415 - as above

    text = store_diff.whole(workspace.repo, both.a.commit, both.b.commit, *both.paths)
    return detailed(read(text), _context(workspace, CONTEXT) if lines is None else lines)


def _context(workspace: Workspace, usual: int) -> int:
    """Return how many unchanged lines the user wants git to show around a change."""
    wanted = workspace.repo.config(_SETTING)
    if not wanted:
        return usual
    if not wanted.isdecimal():
        raise UsageError(f"{_SETTING} is '{wanted}', and no number of lines", hint=f"git config {_SETTING} {usual}")
    return int(wanted)
