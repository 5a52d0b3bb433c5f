"""``skillgit trailers``: the trailers of a commit as they stand there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillgit.app.revision import resolve_in
from skillgit.app.workspace import open_workspace
from skillgit.errors import RevisionNotFoundError
from skillgit.store.binary import git

if TYPE_CHECKING:
    from skillgit.app.context import Context


class Trailer(NamedTuple):
    """One trailer."""

    key: str
    value: str


def trailers(context: Context, revision: str) -> tuple[str, tuple[Trailer, ...]]:
    """Return the commit that ``revision`` names, and its trailers in their order; none where it has none.

    They are read by git and are those that ``git interpret-trailers --parse`` prints for its message.

    Raises:
        RevisionNotFoundError: It names nothing.
    """
    with open_workspace(context) as workspace:
        commit = resolve_in(workspace, revision).commit
        answer = git(workspace.repo, "log", "-1", "--no-show-signature", "--format=%(trailers:only,unfold)", commit)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show {commit[:12]}: {answer.error}", hint="git fsck")
    lines = answer.out.decode(errors="replace").splitlines()
    found = (line.partition(": ") for line in lines if line)
    return commit, tuple(Trailer(key, value) for key, _, value in found)
