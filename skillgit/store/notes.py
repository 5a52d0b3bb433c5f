"""Facts learned after a commit, as JSON lines on ``refs/notes/skillgit/evals``, readable by ``git notes``.

One note per commit, one JSON object a line, so that ``git notes merge -s cat_sort_uniq`` joins two histories of notes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import FileMode

from skillgit.domain.untrusted.documents import loads
from skillgit.errors import ConcurrentWriteError, ConflictError
from skillgit.store import refs
from skillgit.store.at_work import until_kept
from skillgit.store.lock import notes_lock
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from skillgit.store.repo import Repo

_TRIES = 5
_OID_LENGTH = 40
_DEEPEST = 2 * _OID_LENGTH
"""How long the path of a folder of notes can be: git spreads them by parts of the commit id."""


def append(repo: Repo, notes: Mapping[str, Sequence[Mapping[str, object]]], *, time: datetime) -> None:
    """Add lines to the notes of commits, all in one commit; lines that stand there already are not repeated.

    Args:
        repo: The repository.
        notes: Commit to JSON objects.
        time: When they were learned.

    Raises:
        ConcurrentWriteError: Others kept writing notes at the same time.
        ConflictError: The repository cannot be written.
    """
    for attempt in range(_TRIES):
        try:
            with notes_lock(repo):
                return _append(repo, notes, time)
        except ConcurrentWriteError:
            # git itself may write notes, and knows nothing of the lock: what it added is read again and kept.
            if attempt + 1 == _TRIES:
                raise
        except OSError as error:
            reason = error.strerror or str(error).rpartition(": ")[2]
            raise ConflictError(
                f"the repository at '{repo.common_dir}' cannot be written: {reason}",
                hint=f"look who owns it, and whether its disk is read-only: ls -ld {repo.common_dir}",
            ) from error
    return None


def read_all(repo: Repo) -> dict[str, list[str]]:
    """Return commit to the lines of its note."""
    tip = repo.tip(refs.NOTES)
    if tip is None:
        return {}
    return {oid: _lines(blob) for oid, (_, blob) in sorted(_entries(repo.commit(tip).tree))}


def read(repo: Repo, commit: str) -> list[dict[str, object]]:
    """Return the JSON objects in the note of ``commit``; other lines, which people may have added, are left out."""
    found: list[dict[str, object]] = []
    for line in read_all(repo).get(commit, []):
        try:
            value = loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _append(repo: Repo, notes: Mapping[str, Sequence[Mapping[str, object]]], time: datetime) -> None:
    tip = repo.tip(refs.NOTES)
    identity = repo.identity()
    signature = pygit2.Signature(identity.name, identity.email, int(time.timestamp()), 0)

    def write() -> str:
        return _written(repo, notes, tip, signature)

    update = RefUpdate(name=refs.NOTES, new=until_kept(repo, write), expected=tip)
    update_refs(repo, [update], identity=identity, reason="skillgit: notes", write=write)


def _written(
    repo: Repo, notes: Mapping[str, Sequence[Mapping[str, object]]], tip: str | None, signature: pygit2.Signature
) -> str:
    root = repo.commit(tip).tree if tip else None
    there = dict(_entries(root)) if root is not None else {}
    builder = repo.raw.TreeBuilder(root) if root is not None else repo.raw.TreeBuilder()
    for oid, objects in notes.items():
        path, blob = there.get(oid, (oid, None))
        lines = _lines(blob) if blob is not None else []
        lines += [json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for value in objects]
        content = "".join(f"{line}\n" for line in dict.fromkeys(lines))
        _put(repo, builder, path, repo.write_blob(content.encode()))
    message = f"Notes of {len(notes)} commit{'s' if len(notes) > 1 else ''}\n"
    return str(repo.raw.create_commit(None, signature, signature, message, builder.write(), [tip] if tip else []))


def _put(repo: Repo, builder: pygit2.TreeBuilder, path: str, blob: pygit2.Oid) -> None:
    """Set ``path``, which git may have spread over folders of two characters, to ``blob``."""
    head, slash, rest = path.partition("/")
    if not slash:
        builder.insert(head, blob, FileMode.BLOB)
        return
    entry = builder.get(head)
    below = repo.raw[entry.id] if entry is not None else None
    inner = repo.raw.TreeBuilder(below) if isinstance(below, pygit2.Tree) else repo.raw.TreeBuilder()
    _put(repo, inner, rest, blob)
    builder.insert(head, inner.write(), FileMode.TREE)


def _entries(folder: pygit2.Tree, prefix: str = "") -> Iterator[tuple[str, tuple[str, pygit2.Blob]]]:
    """Yield annotated object, path of its note and note."""
    for entry in folder:
        path = f"{prefix}{entry.name}"
        if isinstance(entry, pygit2.Tree) and len(path) <= _DEEPEST:
            yield from _entries(entry, f"{path}/")
        elif isinstance(entry, pygit2.Blob) and len(oid := path.replace("/", "")) == _OID_LENGTH:
            yield oid, (path, entry)


def _lines(blob: pygit2.Blob) -> list[str]:
    return [line for line in blob.data.decode(errors="replace").split("\n") if line]
