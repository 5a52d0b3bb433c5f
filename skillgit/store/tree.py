"""Skills and files in git trees: read at a path, written into a tree with everything else carried unchanged.

Nothing here touches the work tree or the index; new objects are unreferenced until a ref is moved.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import FileMode

from skillgit.domain.skill import Skill
from skillgit.errors import RevisionNotFoundError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.store.repo import Repo

_FILES = {FileMode.BLOB, FileMode.BLOB_EXECUTABLE}
_Node = tuple[pygit2.Oid, FileMode]


def read_skill(tree: pygit2.Tree, path: str) -> Skill:
    """Return the skill in the folder ``path`` of ``tree``; links and submodules in it are no part of it.

    Raises:
        RevisionNotFoundError: ``tree`` has no such folder.
        SkillError: The folder is not a skill.
    """
    folder = _subtree(tree, path)
    if folder is None:
        raise RevisionNotFoundError(f"there is no folder '{path}' in tree {tree.id}", hint="git ls-tree -r <revision>")
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    for name, entry in _walk(folder):
        if not isinstance(entry, pygit2.Blob) or entry.filemode not in _FILES:
            continue
        files[name] = entry.data
        if entry.filemode == FileMode.BLOB_EXECUTABLE:
            executable.add(name)
    return Skill(path.rpartition("/")[2], files, frozenset(executable))


def read_file(tree: pygit2.Tree, path: str) -> bytes | None:
    """Return the content of the file ``path`` of ``tree``; ``None`` if there is none."""
    entry = _entry(tree, path)
    return entry.data if isinstance(entry, pygit2.Blob) else None


def read_texts(tree: pygit2.Tree, path: str) -> dict[str, str]:
    """Return path and text of every UTF-8 file in the folder ``path`` of ``tree``, be it a skill or not."""
    folder = _subtree(tree, path)
    found: dict[str, str] = {}
    for name, content in ({} if folder is None else read_files(folder)).items():
        with suppress(UnicodeDecodeError):
            found[name] = content.decode()
    return found


def read_files(tree: pygit2.Tree) -> dict[str, bytes]:
    """Return path and content of every file in ``tree``."""
    return {name: entry.data for name, entry in _walk(tree) if isinstance(entry, pygit2.Blob)}


def with_skill(
    repo: Repo,
    tree: pygit2.Tree | None,
    path: str,
    skill: Skill,
    beside: Mapping[str, bytes | None] | None = None,
) -> pygit2.Tree:
    """Return ``tree`` with the folder ``path`` holding exactly the files of ``skill``.

    Links and submodules in the folder stay, since a skill cannot say anything about them. Everything is written at
    once, so that no tree is left over that nothing refers to.

    Args:
        repo: Where to write.
        tree: What it is based on; ``None`` for nothing.
        path: The skill folder.
        skill: Its content.
        beside: Other files to set, or to leave out where the content is ``None``.
    """
    old = _subtree(tree, path)
    nodes: dict[str, _Node] = {}
    if old is not None:
        nodes = {name: (item.id, item.filemode) for name, item in _walk(old) if item.filemode not in _FILES}
    for name, content in skill.files.items():
        mode = FileMode.BLOB_EXECUTABLE if name in skill.executable else FileMode.BLOB
        nodes[name] = (repo.write_blob(content), mode)
    entries: dict[str, _Node | None] = {path: (_build(repo, nodes), FileMode.TREE)}
    for name, text in (beside or {}).items():
        entries[name] = None if text is None else (repo.write_blob(text), FileMode.BLOB)
    return _with_entries(repo, tree, entries)


def with_folder(repo: Repo, tree: pygit2.Tree, path: str, folder: pygit2.Oid) -> pygit2.Tree:
    """Return ``tree`` with the tree ``folder`` at ``path``, whatever stood there, and everything else as it was."""
    return _with_entries(repo, tree, {path: (folder, FileMode.TREE)})


def write_files(repo: Repo, files: Mapping[str, bytes]) -> pygit2.Tree:
    """Return a tree that holds exactly ``files``."""
    nodes = {name: (repo.write_blob(content), FileMode.BLOB) for name, content in files.items()}
    found = repo.raw[_build(repo, nodes)]
    return _tree(found)


def _build(repo: Repo, nodes: Mapping[str, _Node]) -> pygit2.Oid:
    """Write the tree with the files ``nodes``, folders from the inside out."""
    builder = repo.raw.TreeBuilder()
    folders: dict[str, dict[str, _Node]] = {}
    for path, node in nodes.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = node
        else:
            _insert(builder, head, *node)
    for name, inside in folders.items():
        _insert(builder, name, _build(repo, inside), FileMode.TREE)
    return builder.write()


def _insert(builder: pygit2.TreeBuilder, name: str, oid: pygit2.Oid, mode: FileMode) -> None:
    try:
        builder.insert(name, oid, mode)
    except (pygit2.GitError, ValueError) as error:
        raise SkillError(f"git refuses a file named '{name}'", hint="rename it") from error


def _with_entries(repo: Repo, tree: pygit2.Tree | None, entries: Mapping[str, _Node | None]) -> pygit2.Tree:
    """Return ``tree`` with ``entries`` set by path, those without a node left out; folders from the inside out."""
    builder = repo.raw.TreeBuilder() if tree is None else repo.raw.TreeBuilder(tree)
    folders: dict[str, dict[str, _Node | None]] = {}
    for path, node in entries.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = node
        elif node is not None:
            _insert(builder, head, *node)
        elif tree is not None and head in tree:
            builder.remove(head)
    for name, inside in folders.items():
        _insert(builder, name, _with_entries(repo, _subtree(tree, name), inside).id, FileMode.TREE)
    return _tree(repo.raw[builder.write()])


def _entry(tree: pygit2.Tree, path: str) -> pygit2.Object | None:
    try:
        return tree[path]
    except KeyError:
        return None


def _walk(tree: pygit2.Tree, prefix: str = "") -> Iterator[tuple[str, pygit2.Object]]:
    for entry in tree:
        name = f"{prefix}{entry.name}"
        if isinstance(entry, pygit2.Tree):
            yield from _walk(entry, f"{name}/")
        else:
            yield name, entry


def _subtree(tree: pygit2.Tree | None, path: str) -> pygit2.Tree | None:
    entry = None if tree is None else _entry(tree, path)
    return entry if isinstance(entry, pygit2.Tree) else None


def _tree(found: object) -> pygit2.Tree:
    if not isinstance(found, pygit2.Tree):
        raise TypeError(f"{found!r} is not a tree")
    return found
