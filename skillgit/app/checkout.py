"""``skillgit checkout``: put a version into the work tree."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import normpath, relpath
from typing import TYPE_CHECKING

from skillgit.app.revision import resolve_in
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.errors import UsageError
from skillgit.store import checkout as store_checkout

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOut:
    """What the work tree holds now.

    Attributes:
        row: The event that was checked out; absent for a commit that is no event.
        commit: The commit.
        files: The files that were written, relative to the work tree.
    """

    row: LogRow | None
    commit: str
    files: tuple[str, ...]


def checkout(context: Context, revision: str, paths: tuple[str, ...] = ()) -> CheckedOut:
    """Put the revision into the work tree; with ``paths``, only those files, and nothing else changes.

    Args:
        context: Where to look; relative paths begin there.
        revision: What to check out; without ``paths``, HEAD is detached at it.
        paths: Files or folders.

    Raises:
        RevisionNotFoundError: The revision names nothing, or has no such path.
        ConflictError: A file has changes that would be lost; nothing was written.
        UsageError: There is no work tree, or a path lies outside of it.
    """
    with open_workspace(context) as workspace:
        found = resolve_in(workspace, revision)
        if paths:
            inside = [_inside(context, workspace, path) for path in paths]
            files = store_checkout.write_paths(workspace.repo, found.commit, inside)
        else:
            files = store_checkout.checkout(workspace.repo, found.commit)
        return CheckedOut(row=found.row, commit=found.commit, files=files)


def _inside(context: Context, workspace: Workspace, path: str) -> str:
    """Return ``path`` as the repository calls it; links are not followed, as in git."""
    top = workspace.repo.workdir
    if top is None:
        return path
    inside = relpath(normpath(context.directory / path), top.resolve())
    if inside == ".." or inside.startswith("../"):
        raise UsageError(f"{path} lies outside of the repository", hint=f"the work tree is {top}")
    return "" if inside == "." else inside
