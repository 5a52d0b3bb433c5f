"""Facts learned after a commit, as JSON lines on ``refs/notes/skillgit/evals``: evaluations, and what people said."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pygit2
from pygit2.enums import FileMode

from skillgit.domain.proposal import Feedback
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import ConcurrentWriteError
from skillgit.store import refs
from skillgit.store.lock import notes_lock, unwritable
from skillgit.store.repo import Repo
from skillgit.store.transaction import RefUpdate, write_refs
from skillgit.store.tree import content_of, edited, size_of

_TRIES = 5
_OID_LENGTH = 40
MOST_NOTE = 8 << 20
"""Bytes of a note that are read; one of ours has some hundred in a line."""
_DEEPEST = 2 * _OID_LENGTH
"""How long the path of a folder of notes can be: git spreads them by parts of the commit id."""


def append(repo: Repo, notes: Mapping[str, Sequence[Mapping[str, object]]], *, time: datetime) -> None:
    """Add lines to the notes of commits, all in one commit; lines that exist already are not repeated."""
    for attempt in range(_TRIES):
        try:
            with notes_lock(repo):
                return _append(repo, notes, time)
        except ConcurrentWriteError:
            # git itself may write notes, and knows nothing of the lock: what it added is read again and kept.
            if attempt + 1 == _TRIES:
                raise
        except OSError as error:
            raise unwritable(repo, error.strerror or str(error).rpartition(": ")[2]) from error
    return None


def read_all(repo: Repo) -> dict[str, list[str]]:
    """Return the lines of the note of each commit; those of :func:`oversized` notes are left out."""
    return {oid: _lines(repo, blob) for oid, blob in _blobs(repo) if size_of(repo, blob.id) <= MOST_NOTE}


def oversized(repo: Repo) -> list[str]:
    """Return the commits whose note is larger than what is read."""
    return [oid for oid, blob in _blobs(repo) if size_of(repo, blob.id) > MOST_NOTE]


def _blobs(repo: Repo) -> list[tuple[str, pygit2.Blob]]:
    tip = repo.tip(refs.NOTES)
    return [] if tip is None else [(oid, blob) for oid, (_, blob) in sorted(_entries(repo.commit(tip).tree))]


def read(repo: Repo, commit: str) -> list[dict[str, object]]:
    """Return the JSON objects in the note of ``commit``; other lines, which people may have added, are left out."""
    return [value for line in read_all(repo).get(commit, []) if (value := parsed(line)) is not None]


def _append(repo: Repo, notes: Mapping[str, Sequence[Mapping[str, object]]], time: datetime) -> None:
    tip = repo.tip(refs.NOTES)
    signature = repo.signature(time)
    root = repo.commit(tip).tree if tip else None
    # git may have spread the notes over folders of two characters
    there = dict(_entries(root)) if root is not None else {}
    message = f"Notes of {len(notes)} commit{'s' if len(notes) > 1 else ''}\n"

    def write() -> list[RefUpdate]:
        entries: dict[str, tuple[pygit2.Oid, FileMode] | None] = {}
        for oid, objects in notes.items():
            path, blob = there.get(oid, (oid, None))
            lines = _lines(repo, blob) if blob is not None else []
            lines += [json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for value in objects]
            content = "".join(f"{line}\n" for line in dict.fromkeys(lines))
            entries[path] = repo.write_blob(content.encode()), FileMode.BLOB
        commit = repo.write_commit(signature, message, edited(repo, root, entries).id, [tip])
        return [RefUpdate(name=refs.NOTES, new=commit, old=tip)]

    write_refs(repo, write, reason="skillgit: notes")


def _entries(folder: pygit2.Tree, prefix: str = "") -> Iterator[tuple[str, tuple[str, pygit2.Blob]]]:
    """Yield annotated object, path of its note and note."""
    for entry in folder:
        path = f"{prefix}{entry.name}"
        if isinstance(entry, pygit2.Tree) and len(path) <= _DEEPEST:
            yield from _entries(entry, f"{path}/")
        elif isinstance(entry, pygit2.Blob) and len(oid := path.replace("/", "")) == _OID_LENGTH:
            yield oid, (path, entry)


def _lines(repo: Repo, blob: pygit2.Blob) -> list[str]:
    return [
        line for line in content_of(repo, blob, "of a note", MOST_NOTE).decode(errors="replace").split("\n") if line
    ]


KIND, WITHDRAWN = "feedback", "feedback-withdrawn"


def give(repo: Repo, feedback: Feedback) -> None:
    """Write ``feedback`` on its commit, with its time to the second."""
    line = {"kind": KIND, "text": feedback.text, "author": feedback.author, "time": _stamp(feedback.time)}
    append(repo, {feedback.commit: [line]}, time=feedback.time)


def withdraw(repo: Repo, feedback: Feedback, *, time: datetime) -> None:
    """Record that ``feedback`` does not count any more."""
    line = {"kind": WITHDRAWN, "feedback": feedback.id, "time": _stamp(time)}
    append(repo, {feedback.commit: [line]}, time=time)


def feedback_in(lines: Iterable[tuple[str, str]]) -> tuple[Feedback, ...]:
    """Return the feedback in ``lines``, commits with a line of a note each, that was not withdrawn, oldest first."""
    entries: dict[str, Feedback] = {}
    withdrawn: set[str] = set()
    for commit, line in lines:
        if f'"{KIND}' not in line:
            continue
        value = parsed(line) or {}
        if value.get("kind") == WITHDRAWN:
            withdrawn.add(str(value.get("feedback")))
        elif (entry := _feedback(commit, value)) is not None:
            entries[entry.id] = entry
    counting = (entry for number, entry in entries.items() if number not in withdrawn)
    return tuple(sorted(counting, key=lambda entry: (entry.time, entry.id)))


def feedback_reader(repo: Repo) -> Callable[[Collection[str]], tuple[Feedback, ...]]:
    """Return a reader of the feedback on some commits, which reads the notes again when they have changed."""
    cache: dict[str | None, dict[str, list[str]]] = {}

    def read(commits: Collection[str]) -> tuple[Feedback, ...]:
        tip = repo.tip(refs.NOTES)
        if tip not in cache:
            cache.clear()
            cache[tip] = read_all(repo)
        lines = cache[tip]
        return feedback_in((commit, line) for commit in commits for line in lines.get(commit, ()))

    return read


def _feedback(commit: str, value: dict[str, object]) -> Feedback | None:
    text, author = value.get("text"), value.get("author")
    if value.get("kind") != KIND or not isinstance(text, str) or not isinstance(author, str):
        return None
    try:
        time = datetime.fromisoformat(str(value.get("time")))
    except ValueError:
        return None
    return Feedback(commit=commit, text=text, author=author, time=time) if time.tzinfo else None


def parsed(line: str) -> dict[str, object] | None:
    """Return the JSON object in a line of a note; None if it is none."""
    try:
        value = loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
