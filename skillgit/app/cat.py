"""``skillgit cat``: a file of a version, as it is."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from skillgit.app.revision import resolve_in
from skillgit.app.workspace import open_workspace
from skillgit.errors import NotFoundError
from skillgit.store import tree
from skillgit.store.binary import git

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.workspace import Workspace

_DOCUMENT = "SKILL.md"
_SHOWN = 8


def cat(context: Context, name: str) -> bytes:
    """Return the file that ``name``, ``REV`` or ``REV:PATH``, names.

    PATH lies in the skill folder of the revision's run and is its ``SKILL.md`` if it is left out. In a commit that is
    no event, and if the skill folder does not have it, it is a path of the repository.

    Raises:
        NotFoundError: There is no such file.
        RevisionNotFoundError: The revision names nothing.
    """
    revision, _, path = name.partition(":")
    wanted = str(PurePosixPath(path or _DOCUMENT))
    with open_workspace(context) as workspace:
        found = resolve_in(workspace, revision)
        folder = workspace.index.skill_path(found.run) if found.run else ""
        root = workspace.repo.commit(found.commit).tree
        for place in (f"{folder}/{wanted}", wanted) if folder else (wanted,):
            content = tree.read_file(root, place)
            if content is not None:
                return content
        known = _file_names(workspace, found.commit, folder)
    near = get_close_matches(wanted, known, n=1)
    listed = f"it has {', '.join(known[:_SHOWN])}{', …' if len(known) > _SHOWN else ''}"
    raise NotFoundError(
        f"{revision} has no file '{wanted}'", hint=f"did you mean {revision}:{near[0]}?" if near else listed
    )


def _file_names(workspace: Workspace, commit: str, folder: str) -> list[str]:
    inside = f"{folder}/" if folder else ""
    answer = git(
        workspace.repo, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, *([inside] if inside else [])
    )
    names = answer.out.decode(errors="replace").split("\0")
    return [name.removeprefix(inside) for name in names if name]
