"""Skills and files in git trees: read at a path, found in a commit, written with everything else carried over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from shlex import quote
from typing import TypeVar

import pygit2
from pygit2.enums import FileMode

from skillgit.domain.skill import DOCUMENT, MOST_DOCUMENT, Skill, excess, too_long
from skillgit.domain.untrusted.file_names import DEPTH, PATH_BYTES, TreePath, entry_name, leads_out, shown, tree_paths
from skillgit.errors import ConflictError, HistoryError, RevisionNotFoundError, SkillError
from skillgit.store.git_binary import write_again
from skillgit.store.repo import Repo

T = TypeVar("T")
_LOOKS = 4  # how often an object that seems to be missing is looked for
LINK = int(FileMode.LINK)
_FILES = {FileMode.BLOB, FileMode.BLOB_EXECUTABLE}
_Node = tuple[pygit2.Oid, FileMode]
SKILL_FILES = 10_000
"""More files than a skill has. A few hundred bytes of trees that name each other can stand for billions of files."""
EVIDENCE_FILES = 1_000_000
"""More files than the evidence of an event has."""
MOST_FILE, MOST_FOLDER = 64 << 20, 256 << 20
"""Bytes of a file and of a folder that are read from history. Git packs 400 MB of one letter into 400 kB."""


def content_of(repo: Repo, blob: pygit2.Object, path: str, most: int = MOST_FILE) -> bytes:
    """Return what a file holds; a HistoryError, before any of it is read, if that is more than ``most`` bytes."""
    check_size(repo, blob.id, path, most)
    return bytes(_looked_up(repo.raw.odb.read, blob.id)[1])


def check_size(repo: Repo, oid: pygit2.Oid, path: str, most: int = MOST_FILE) -> None:
    """Refuse the file ``oid`` with a HistoryError if it is larger than ``most`` bytes, or not here."""
    try:
        size = size_of(repo, oid)
    except (KeyError, pygit2.GitError) as error:
        raise HistoryError(f"git cannot read the file {shown(path)}: {error}", hint="skillgit fsck") from error
    if size > most:
        megabytes = f"{size >> 20:,} MiB" if size >> 20 else f"{size:,} bytes"
        raise HistoryError(
            f"the file {shown(path)} in history has {megabytes}, more than the {most >> 20} MiB that are read",
            hint=f"git cat-file -s {oid} says its size; skillgit fsck names the commits that hold it",
        )


def size_of(repo: Repo, oid: pygit2.Oid | str) -> int:
    """Return the bytes of an object by its header; nothing else of it is read."""
    return int(_looked_up(repo.raw.odb.read_header, oid)[1])


def _looked_up(read: Callable[[pygit2.Oid | str], T], oid: pygit2.Oid | str) -> T:
    """Return what ``read`` finds of an object, or its KeyError.

    libgit2 rereads the list of packs once. If git repacks meanwhile, those may be gone before libgit2 opens them. A git
    that prunes removes what came after it had looked for what is needed, until that is written again.
    """
    for _ in range(_LOOKS - 1):
        with suppress(KeyError):
            return read(oid)
    write_again()
    return read(oid)


def _check_document(repo: Repo, document: pygit2.Object | None) -> None:
    """Refuse a ``SKILL.md`` that is longer than a skill's may be, before it is read."""
    if isinstance(document, pygit2.Blob) and size_of(repo, document.id) > MOST_DOCUMENT:
        raise SkillError(too_long(DOCUMENT, MOST_DOCUMENT), hint="git show <revision>:<path>")


def _contents(repo: Repo, files: Iterable[tuple[str, pygit2.Object]]) -> Iterator[tuple[str, pygit2.Object, bytes]]:
    """Yield path, entry and content of the blobs among ``files``, and refuse more than :data:`MOST_FOLDER` of them."""
    total = 0
    for path, entry in files:
        if not isinstance(entry, pygit2.Blob):
            continue
        content = content_of(repo, entry, path)
        total += len(content)
        if total > MOST_FOLDER:
            sentence = f"a folder in history holds more than the {MOST_FOLDER >> 20} MiB that are read"
            raise HistoryError(sentence, hint="git ls-tree -r -l <revision>")
        yield path, entry, content


def read_skill(repo: Repo, tree: pygit2.Tree, path: str) -> Skill:
    """Return the skill in the folder ``path`` of ``tree``, without links and submodules."""
    folder = _subtree(tree, path)
    if folder is None:
        raise RevisionNotFoundError(
            f"there is no folder {shown(path)} in tree {tree.id}", hint="git ls-tree -r <revision>"
        )
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    entries: list[tuple[str, pygit2.Object]] = []
    for name, entry in walk(folder, SKILL_FILES):
        if isinstance(entry, pygit2.Tree):
            raise SkillError(f"the folder {shown(name)} of a skill is too deep", hint="git ls-tree -r <revision>")
        if not isinstance(entry, pygit2.Blob) or entry.filemode not in _FILES:
            continue
        if name == DOCUMENT:
            _check_document(repo, entry)
        entries.append((name, entry))
    for name, entry, content in _contents(repo, entries):
        if name in files:
            raise SkillError(f"a tree holds {shown(name)} twice", hint="skillgit fsck")
        files[name] = content
        if entry.filemode == FileMode.BLOB_EXECUTABLE:
            executable.add(name)
    return Skill(path.rpartition("/")[2], files, frozenset(executable)).bounded()


def read_file(repo: Repo, tree: pygit2.Tree, path: str) -> bytes | None:
    entry = entry_at(tree, path)
    return content_of(repo, entry, path) if isinstance(entry, pygit2.Blob) else None


def read_texts(repo: Repo, tree: pygit2.Tree, path: str) -> dict[str, str]:
    """Return path (for showing only) and text of UTF-8 files in ``path``; a SkillError beyond the size of skills."""
    texts: dict[str, str] = {}
    _check_document(repo, entry_at(tree, f"{path}/{DOCUMENT}"))
    files = read_folder(repo, tree, path)
    if sentence := excess(files):
        raise SkillError(sentence, hint="git show <revision>:<path>")
    for name, content in files.items():
        with suppress(UnicodeDecodeError):
            texts[name] = content.decode()
    return texts


def read_folder(repo: Repo, tree: pygit2.Tree, path: str) -> dict[str, bytes]:
    """Return path and content of every file in the folder ``path`` of ``tree``, by paths that are for showing."""
    folder = _subtree(tree, path)
    return {} if folder is None else read_files(repo, folder, SKILL_FILES)


def read_files(repo: Repo, tree: pygit2.Tree, most: int | None = None) -> dict[str, bytes]:
    """Return path and content of every file in ``tree``, by paths that are for showing; ``most`` as in :func:`walk`."""
    files = ((name, entry) for name, entry in walk(tree, most) if entry.filemode in _FILES)
    return {name: content for name, _, content in _contents(repo, files)}


def read_entries(repo: Repo, oid: str, path: str = "") -> Iterator[tuple[str, int, bytes]]:
    """Yield path (for showing), git's mode and content of files and links in a folder of the tree or commit ``oid``."""
    root = repo.raw[oid].peel(pygit2.Tree)
    folder = _subtree(root, path) if path else root
    entries = walk(folder, SKILL_FILES if path else EVIDENCE_FILES) if folder is not None else ()
    for name, entry, content in _contents(repo, entries):
        yield name, int(entry.filemode), content


def outward_links(repo: Repo, oid: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and target, for showing, of the links in a folder of the commit ``oid`` that lead out of it."""
    folder = _subtree(repo.commit(oid).tree, path)
    for name, entry in walk(folder, SKILL_FILES) if folder is not None else ():
        if isinstance(entry, pygit2.Blob) and entry.filemode == LINK:
            target = content_of(repo, entry, name).decode(errors="replace")
            if leads_out(name, target):
                yield name, target


def with_skill(
    repo: Repo, tree: pygit2.Tree | None, path: str, skill: Skill, beside: Mapping[str, bytes | None] | None = None
) -> pygit2.Tree:
    """Return ``tree``, or a new one, with the folder ``path`` holding exactly the files of ``skill``.

    Links and submodules in the folder stay, since a skill cannot say anything about them. Everything is written
    at once, so that no unused tree is left over. ``beside`` holds other files to set, or to remove with ``None``.
    """
    old = _subtree(tree, path)
    nodes: dict[str, _Node | None] = {}
    if old is not None:
        rest = ((TreePath(name), item) for name, item in walk(old, SKILL_FILES) if item.filemode not in _FILES)
        nodes = {name: (item.id, item.filemode) for name, item in rest}
    for name, content in skill.bounded().files.items():
        mode = FileMode.BLOB_EXECUTABLE if name in skill.executable else FileMode.BLOB
        nodes[name] = (repo.write_blob(content), mode)
    entries: dict[str, _Node | None] = {path: (edited(repo, None, nodes).id, FileMode.TREE)}
    for name, text in (beside or {}).items():
        entries[name] = None if text is None else (repo.write_blob(text), FileMode.BLOB)
    return edited(repo, tree, entries)


def write_files(repo: Repo, files: Mapping[str, bytes]) -> pygit2.Tree:
    """Return a tree that holds exactly ``files``."""
    contents = zip(tree_paths(files), files.values(), strict=True)
    return edited(repo, None, {name: (repo.write_blob(content), FileMode.BLOB) for name, content in contents})


def _insert(builder: pygit2.TreeBuilder, name: str, oid: pygit2.Oid, mode: FileMode) -> None:
    try:
        builder.insert(name, oid, mode)
    except (pygit2.GitError, ValueError) as error:
        raise SkillError(f"git refuses a file named '{name}'", hint="rename it") from error


def edited(repo: Repo, tree: pygit2.Tree | None, entries: Mapping[str, _Node | None]) -> pygit2.Tree:
    """Return ``tree``, or a new one, with ``entries`` set by path, those without a node left out."""
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
        folder = edited(repo, _subtree(tree, name), inside)
        if len(folder):
            _insert(builder, name, folder.id, FileMode.TREE)
        elif tree is not None and name in tree:  # git keeps no empty folder
            builder.remove(name)
    return _tree(repo.raw[builder.write()])


def check_way(tree: pygit2.Tree, path: str) -> None:
    """Raise a ConflictError if a folder ``path`` in ``tree`` would take the prefix of a file, a link or a submodule."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        prefix = "/".join(parts[:end])
        entry = entry_at(tree, prefix)
        if entry is None:
            return
        if isinstance(entry, pygit2.Tree):
            continue
        if entry.filemode == FileMode.COMMIT:
            raise ConflictError(
                f"'{prefix}' is a submodule, and a run changes folders of its own repository only",
                hint=f"skillgit -C {quote(prefix)} init makes the skills in it trainable there",
            )
        kind = "link" if entry.filemode == FileMode.LINK else "file"
        raise ConflictError(f"'{prefix}' is a {kind}, not a folder", hint=f"git mv {quote(prefix)} NAME")


def entry_at(tree: pygit2.Tree, path: str) -> pygit2.Object | None:
    try:
        return tree[path]
    except (KeyError, ValueError):  # a path that no tree can hold, with a NUL or half a surrogate pair
        return None


def entry_id(commit: pygit2.Commit, path: str) -> pygit2.Oid | None:
    entry = entry_at(commit.tree, path)
    return None if entry is None else entry.id


def walk(tree: pygit2.Tree, most: int | None = None) -> Iterator[tuple[str, pygit2.Object]]:
    """Yield files, links and submodules in tree order, paths for showing; a too long path stands for its folder."""
    waiting: list[tuple[str, pygit2.Object]] = [("", tree)]
    count = 0
    while waiting:
        path, entry = waiting.pop()
        count += 1
        if most is not None and count > most:
            raise HistoryError(f"a folder of a skill holds more than {most} files", hint="git ls-tree -r <revision>")
        if isinstance(entry, pygit2.Tree) and len(path) <= PATH_BYTES and path.count("/") < DEPTH:
            prefix = f"{path}/" if path else ""
            children = [(f"{prefix}{entry_name(child.raw_name or b'')}", child) for child in entry]
            waiting.extend(reversed(children))
        else:
            yield path, entry


def _subtree(tree: pygit2.Tree | None, path: str) -> pygit2.Tree | None:
    entry = None if tree is None else entry_at(tree, path)
    return entry if isinstance(entry, pygit2.Tree) else None


def _tree(obj: object) -> pygit2.Tree:
    if not isinstance(obj, pygit2.Tree):
        raise TypeError(f"{obj!r} is not a tree")
    return obj


DOCUMENTS = frozenset({DOCUMENT, "skill.md"})
_PASSED_OVER = frozenset({"node_modules", "__pycache__"})
_DEEPEST = 12
"""Folders inside of each other in which skills are looked for."""
_MOST_SKILLS = 5_000
_MEMORY = 200_000
_known: dict[tuple[pygit2.Oid, int], tuple[str, ...]] = {}
"""The skills in trees that were looked through: a tree never changes, and commits share most of theirs."""


def skill_paths(repo: Repo, commit: str) -> tuple[str, ...]:
    """Return the paths of the skill folders of a commit, wherever they are, those in ``skills/`` first.

    A skill is a folder with a ``SKILL.md``; what is inside of it is a part of it. The top of the repository is none.
    """
    try:
        paths = _skill_paths(repo.commit(commit).tree, 0)
    except (pygit2.GitError, KeyError) as error:
        raise HistoryError(f"git cannot read commit {commit[:12]}: {error}", hint="skillgit fsck") from error
    return tuple(sorted(paths, key=lambda path: (not path.startswith("skills/"), path)))


def _skill_paths(folder: pygit2.Tree, depth: int) -> tuple[str, ...]:
    key = (folder.id, depth)
    if key not in _known:
        if len(_known) > _MEMORY:
            _known.clear()
        _known[key] = tuple(_skills_in(folder, depth))
    return _known[key]


def _skills_in(folder: pygit2.Tree, depth: int) -> Iterator[str]:
    names = {entry_name(entry.raw_name or b""): entry for entry in folder if entry.filemode in {*_FILES, FileMode.TREE}}
    if depth and any(isinstance(names.get(name), pygit2.Blob) for name in DOCUMENTS):
        yield ""
        return
    count = 0
    for name, entry in names.items():
        if isinstance(entry, pygit2.Tree) and name not in _PASSED_OVER and depth < _DEEPEST:
            for path in _skill_paths(entry, depth + 1):
                count += 1
                if count > _MOST_SKILLS:
                    problem = f"a folder holds more than {_MOST_SKILLS} skills"
                    raise HistoryError(problem, hint="git ls-tree -r <revision>")
                yield f"{name}/{path}" if path else name


def skill_folders(repo: Repo, commit: str, only: str = "") -> dict[str, dict[str, bytes]]:
    """Return the skill folders of a commit by path, or ``only`` one, with the content of their files; no links."""
    paths = skill_paths(repo, commit)
    root = repo.commit(commit).tree
    try:
        return {path: read_folder(repo, root, path) for path in paths if path == only or not only}
    except (pygit2.GitError, KeyError) as error:
        raise HistoryError(f"git cannot read commit {commit[:12]}: {error}", hint="skillgit fsck") from error
