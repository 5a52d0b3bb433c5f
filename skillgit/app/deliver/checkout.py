"""``skillgit checkout``: put a version into the work tree."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import normpath, relpath
from typing import TYPE_CHECKING

from skillgit.app.workspace.revision import is_address, resolve_in
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.errors import UsageError
from skillgit.index import queries
from skillgit.store import checkout as store_checkout

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOut:
    """What the work tree holds now.

    Attributes:
        row: The event that was checked out; absent for a commit that is no event.
        files: The files that were written, relative to the work tree.
        branch: The branch that HEAD is on now; empty if it is detached, or stayed where it was.
        back: The branch that it was on before, or last if it was detached; empty if there is none to go back to.
    """

    row: LogRow | None
    commit: str
    files: tuple[str, ...]
    branch: str = ""
    back: str = ""


def checkout(context: Context, revision: str, paths: tuple[str, ...] = ()) -> CheckedOut:
    """Put the revision into the work tree; with ``paths``, only those files, and nothing else changes.

    Args:
        context: Where to look; relative paths begin there.
        revision: What to check out; without ``paths``, HEAD goes to it: onto a branch that is named, else detached.

    Raises:
        RevisionNotFoundError: The revision names nothing, or has no such path.
    """
    with open_workspace(context) as workspace:
        resolution = resolve_in(workspace, revision)
        if paths:
            inside = [_inside(context, workspace, path) for path in paths]
            files = store_checkout.write_paths(workspace.repo, resolution.commit, inside)
            return CheckedOut(row=resolution.row, commit=resolution.commit, files=files)
        branch = _branch(workspace, revision)
        back = store_checkout.last_branch(workspace.repo)
        files = store_checkout.checkout(workspace.repo, resolution.commit, branch)
        branch_left = "" if back == branch else back
        return CheckedOut(row=resolution.row, commit=resolution.commit, files=files, branch=branch, back=branch_left)


def _branch(workspace: Workspace, revision: str) -> str:
    """Return the branch that ``revision`` names; empty where it is a version or a run, or something else of git's."""
    is_ours = is_address(revision) or revision in queries.run_names(workspace.index)
    return revision if not is_ours and store_checkout.is_branch(workspace.repo, revision) else ""


def _inside(context: Context, workspace: Workspace, path: str) -> str:
    """Return ``path`` as the repository calls it; links are not followed, as in git."""
    top = workspace.repo.workdir
    if top is None:
        return path
    inside = relpath(normpath(context.directory / path), top.resolve())
    if inside == ".." or inside.startswith("../"):
        raise UsageError(f"{path} lies outside of the repository", hint=f"the work tree is {top}")
    return "" if inside == "." else inside
