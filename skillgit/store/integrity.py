"""Whether git has what an event needs, and sees it as skillgit does: objects, their files, grafts, damaged refs."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from pygit2 import Blob, Commit, GitError, Object, Oid, Tree

from skillgit.domain.finding import Finding
from skillgit.domain.untrusted.file_names import DEPTH
from skillgit.store.commit_message import Recorded
from skillgit.store.git_binary import git
from skillgit.store.repo import Repo, object_folders

__all__ = ["Blob", "Commit", "GitError", "Object", "Oid", "Tree"]
"""What git calls the things that checks look at; only the store imports pygit2."""


def missing_objects(repo: Repo, record: Recorded, present: set[str]) -> Iterator[str]:
    """Yield what ``record``'s commit lacks of its skill; ``present`` collects what was looked up already."""
    root = _tree(repo, record.tree)
    if root is None:
        yield f"its tree {record.tree[:12]} is missing"
        return
    folder: Tree | None = root
    for part in record.event.skill.split("/"):
        if folder is None or part not in folder:
            return
        entry = folder[part] if folder[part].id in repo.raw else None
        if entry is None:
            yield f"the folder '{record.event.skill}' of its tree is missing"
        folder = entry if isinstance(entry, Tree) else None
    if folder is not None:
        for path in missing_files(repo, str(folder.id), present):
            yield f"the file '{path}' of its skill is missing"


def missing_files(repo: Repo, tree: str, present: set[str], prefix: str = "") -> Iterator[str]:
    """Yield the path of every file and folder in ``tree`` that is not here."""
    folder = _tree(repo, tree)
    if folder is None:
        yield prefix.rstrip("/") or "."
        return
    for entry in folder:
        oid, path = str(entry.id), f"{prefix}{entry.name}"
        if oid in present or path.count("/") > DEPTH:  # which is a fault of its own
            continue
        if entry.type_str == "tree":
            missing = list(missing_files(repo, oid, present, f"{path}/"))
        else:
            missing = [path] if entry.type_str == "blob" and oid not in repo.raw else []
        if not missing:
            present.add(oid)
        yield from missing


def _tree(repo: Repo, oid: str) -> Tree | None:
    folder = repo.raw.get(oid)
    return folder if isinstance(folder, Tree) else None


_HASH = 20
_PART = 1 << 20
_FANOUT, _NAME = 2, 38


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A file of the object store that is not whole."""

    path: Path
    sentence: str  # what is wrong with it, without a full stop
    loose: bool  # whether it holds a single object, which can be set aside


def damaged_files(repo: Repo) -> list[Damage]:
    """Return the files of the object store, those of alternates included, that cannot be read as git wrote them."""
    folders = [folder for folder in object_folders(repo.common_dir) if folder.is_dir()]
    return [damage for folder in folders for damage in (*_loose(folder), *_packs(folder))]


def set_aside(repo: Repo, damage: Damage) -> Path:
    """Move a damaged loose object out of git's sight, so that it can be written again; return its new path."""
    folder = repo.private_dir / "damaged"
    folder.mkdir(exist_ok=True)
    return damage.path.rename(folder / f"{damage.path.parent.name}{damage.path.name}")


def _loose(objects: Path) -> Iterator[Damage]:
    for folder in sorted(objects.iterdir()):
        if len(folder.name) != _FANOUT or not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            if len(path.name) == _NAME and (reason := _wrong_with(path)):
                oid = f"{folder.name}{path.name}"
                yield Damage(path=path, sentence=f"the object {oid[:12]} is damaged: {reason}", loose=True)


def _wrong_with(path: Path) -> str:
    """Return what is wrong with a loose object; empty if nothing is."""
    reading, checksum, is_empty = zlib.decompressobj(), hashlib.sha1(usedforsecurity=False), True
    try:
        with path.open("rb") as file:
            # part by part: 400 kB may stand for 400 MB
            while data := file.read(_PART):
                is_empty = False
                while data:
                    checksum.update(reading.decompress(data, _PART))
                    data = reading.unconsumed_tail
    except IsADirectoryError:
        return "a folder is in its place"
    except zlib.error:
        return "its file cannot be decompressed"
    if is_empty:
        return "its file is empty"
    if not reading.eof:
        return "its file is cut short"
    if checksum.hexdigest() != f"{path.parent.name}{path.name}":
        return "its content is not what its name says"
    return ""


def _packs(objects: Path) -> Iterator[Damage]:
    for pack in sorted((objects / "pack").glob("pack-*.pack")):
        index = pack.with_suffix(".idx")
        if not index.is_file():
            yield Damage(
                path=pack, sentence=f"the pack {pack.name} has no index; git index-pack {quote(str(pack))}", loose=False
            )
        elif _tail(pack, _HASH) != _tail(index, 2 * _HASH)[:_HASH]:
            yield Damage(path=pack, sentence=f"the pack {pack.name} is cut short or is not its index's", loose=False)
        else:
            for path in (pack, index):
                if not _is_whole(path):
                    yield Damage(
                        path=path, sentence=f"the content of {path.name} is not what its end says", loose=False
                    )


def _is_whole(path: Path) -> bool:
    """Say whether a pack, or the index of one, has the content whose hash it ends with."""
    rest, checksum = path.stat().st_size - _HASH, hashlib.sha1(usedforsecurity=False)
    with path.open("rb") as file:
        while rest > 0 and (part := file.read(min(rest, _PART))):
            checksum.update(part)
            rest -= len(part)
        return checksum.digest() == file.read(_HASH)


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read()


_GRAFTS = "info/grafts"


def sight_problems(repo: Repo) -> Iterator[Finding]:
    """Yield what makes git and skillgit disagree about this repository."""
    answer = git(repo, "for-each-ref", "--count=1", "--format=%(refname)", "refs/replace/")
    if answer.code != 0:
        yield Finding(sentence=f"git cannot read this repository: {answer.error.partition(chr(10))[0]}")
    elif name := answer.out.decode().strip():
        oid = name.rpartition("/")[2]
        yield Finding(sentence=f"{name} shows git another object than the history has; git replace -d {oid}")
    grafts = repo.common_dir / _GRAFTS
    if grafts.is_file() and any(line.strip() and not line.startswith("#") for line in grafts.read_text().splitlines()):
        yield Finding(sentence=f"{_GRAFTS} gives commits other parents than they have; remove {grafts}")
