"""Whether every object that an event needs is here: its commit, its tree, the files of its skill, its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo


def missing_objects(repo: Repo, record: Recorded, seen: set[str]) -> Iterator[str]:
    """Yield what ``record``'s commit lacks of its skill; ``seen`` are trees and files that were found already."""
    root = _tree(repo, record.tree)
    if root is None:
        yield f"its tree {record.tree[:12]} is missing"
        return
    folder: pygit2.Tree | None = root
    for part in record.event.skill.split("/"):
        if folder is None or part not in folder:
            return
        entry = folder[part] if folder[part].id in repo.raw else None
        if entry is None:
            yield f"the folder '{record.event.skill}' of its tree is missing"
        folder = entry if isinstance(entry, pygit2.Tree) else None
    if folder is not None:
        for path in missing_files(repo, str(folder.id), seen):
            yield f"the file '{path}' of its skill is missing"


def missing_files(repo: Repo, tree: str, seen: set[str], prefix: str = "") -> Iterator[str]:
    """Yield the path of every file and folder in ``tree`` that is not here."""
    folder = _tree(repo, tree)
    if folder is None:
        yield prefix.rstrip("/") or "."
        return
    for entry in folder:
        oid, path = str(entry.id), f"{prefix}{entry.name}"
        if oid in seen:
            continue
        if entry.type_str == "tree":
            found = list(missing_files(repo, oid, seen, f"{path}/"))
        else:
            found = [path] if entry.type_str == "blob" and oid not in repo.raw else []
        if not found:
            seen.add(oid)
        yield from found


def _tree(repo: Repo, oid: str) -> pygit2.Tree | None:
    found = repo.raw.get(oid)
    return found if isinstance(found, pygit2.Tree) else None
