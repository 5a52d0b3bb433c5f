"""``skillgit checkout``: put a version into the work tree."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import normpath, relpath
from typing import TYPE_CHECKING

from skillgit.app.workspace.revision import is_address, resolve_in
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.errors import UsageError
from skillgit.index import queries
from skillgit.store import work_tree

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOut:
    """What the work tree holds now."""

    row: LogRow | None  # the event that was checked out; absent for a commit that is no event
    commit: str
    files: tuple[str, ...]  # the files that were written, relative to the work tree
    branch: str = ""  # the branch that HEAD is on now; empty if it is detached, or stayed where it was
    back: str = ""  # the branch that it was on before, or last if it was detached; empty if there is none to go back to


def checkout(context: Context, revision: str, paths: tuple[str, ...] = ()) -> CheckedOut:
    """Put ``paths`` of the revision into the work tree; or all, with HEAD on the branch that it names or detached."""
    with open_workspace(context) as workspace:
        resolution = resolve_in(workspace, revision)
        if paths:
            inside = [_inside(context, workspace, path) for path in paths]
            files = work_tree.write_paths(workspace.repo, resolution.commit, inside)
            return CheckedOut(row=resolution.row, commit=resolution.commit, files=files)
        # What names a version or a run is no branch, even if there is one of that name.
        is_ours = is_address(revision) or revision in queries.run_names(workspace.index)
        branch = revision if not is_ours and work_tree.is_branch(workspace.repo, revision) else ""
        back = work_tree.last_branch(workspace.repo)
        files = work_tree.checkout(workspace.repo, resolution.commit, branch)
        branch_left = "" if back == branch else back
        return CheckedOut(row=resolution.row, commit=resolution.commit, files=files, branch=branch, back=branch_left)


def _inside(context: Context, workspace: Workspace, path: str) -> str:
    """Return ``path`` as the repository calls it; links are not followed, as in git."""
    top = workspace.repo.workdir
    if top is None:
        return path
    inside = relpath(normpath(context.directory / path), top.resolve())
    if inside == ".." or inside.startswith("../"):
        raise UsageError(f"{path} lies outside of the repository", hint=f"the work tree is {top}")
    return "" if inside == "." else inside
