"""``skillgit install --list``: which version an installed skill is, by its files and by what its installer left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

from skillgit.app.deliver.install_record import known_places
from skillgit.app.recorded.evidence_json import members
from skillgit.app.skill_format.atomic_write import typed_path
from skillgit.app.skill_format.folder_contents import Entries, edited, entries_of, fingerprint, read_entries, tree_id
from skillgit.app.skill_format.frontmatter import is_installers, metadata_of, read_head
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import NotFoundError, SkillgitError
from skillgit.files import read_plain
from skillgit.index import queries, version_queries
from skillgit.store.history_reader import skill_at
from skillgit.store.promotion import changes_on_trunk, releases
from skillgit.store.work_tree import skill_tree

UNCHANGED, CHANGED, GONE = "unchanged", "changed by hand", "gone"
BY_RECORD: Final = "the record of skillgit install"
_MOST_LOCK: Final = 1 << 20
_TREE = "metadata.github-tree-sha"
_LOCK, _PROJECT_LOCK = ".skill-lock.json", "skills-lock.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A skill's folder, and which version of this repository it is.

    Attributes:
        name: The version, ``<run>/v<N>``, a release or a commit; empty if it is not from this repository.
        release: The tag of the release that it is, such as ``skill/v1.2.0``.
        state: ``unchanged``, ``changed by hand`` or ``gone``.
        source: What says so: the record of skillgit install, the folder itself, or what another installer left.
        newer: The best version of its run, if that came later.
        time: When skillgit put it there; None if it did not.
    """

    place: str
    skill: str
    name: str = ""
    release: str = ""
    state: str = ""
    source: str = ""
    newer: str = ""
    time: datetime | None = None
    commit: str = ""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of a skill in history: at a version of a run, where it has one, or a release."""

    row: Installed  # what it is, at no place
    run: str
    version: int | None
    path: str
    tree: str


class _Texts:
    """Texts that are read only as far as a search needs them, and once."""

    def __init__(self, source: Iterator[_Text]) -> None:
        self._source, self._read = source, list[_Text]()

    def __iter__(self) -> Iterator[_Text]:
        yield from self._read
        for text in self._source:
            self._read.append(text)
            yield text


def list_installed(workspace: Workspace, paths: Sequence[str] = ()) -> tuple[Installed, ...]:
    """Return what the skills at ``paths`` are, folders of skills or of one; without any, those of the record."""
    record = {location.path: location for location in known_places(workspace.repo)}
    texts_of = cache(lambda name: _Texts(_texts(workspace, name)))

    def look(folder: Path) -> Installed:
        entries, location = read_entries(folder.resolve()), record.get(str(folder))
        skill = _fields(_document(entries)).get("name") or (location.skill if location is not None else folder.name)
        texts, own = texts_of(skill), tree_id(entries)
        same = next((text for text in texts if text.tree == own), None) if entries else None
        is_kept = location is not None and fingerprint(entries) == location.top.installed
        if location is not None and (is_kept or same is None):
            top = location.top
            return Installed(
                place=str(folder),
                skill=location.skill,
                name=top.name,
                release=same.row.release if same is not None else "",
                state=UNCHANGED if is_kept else CHANGED if entries else GONE,
                source=BY_RECORD,
                newer=_newer(workspace, top.run, top.version),
                time=top.time,
                commit=top.commit,
            )
        as_installed = (
            (text, "its files, but for metadata of an installer", UNCHANGED)
            for text in (texts if entries else ())
            if _is_installed(entries, _entries(workspace, text))
        )
        by_trace = (
            (text, source, CHANGED if entries else GONE)
            for source, value in _left(workspace.context, folder, skill, entries)
            for text in (texts if isinstance(value, str) and value else ())
            if value in {text.tree, _project_hash(workspace, text) if source == _PROJECT_LOCK else ""}
        )
        match = (same, "its tree", UNCHANGED) if same is not None else next(chain(as_installed, by_trace), None)
        if match is None:
            return Installed(place=str(folder), skill=skill)
        text, source, state = match
        newer = _newer(workspace, text.run, text.version)
        return replace(text.row, place=str(folder), state=state, source=source, newer=newer)

    folders = [folder for path in paths for folder in _skills(typed_path(workspace.context.directory, path))]
    return tuple(map(look, folders if paths else sorted(map(Path, record))))


def _skills(folder: Path) -> list[Path]:
    if (folder / DOCUMENT).is_file():
        return [folder]
    inside = sorted(path.parent for path in folder.glob(f"*/{DOCUMENT}")) if folder.is_dir() else []
    if not inside:
        raise NotFoundError(f"there is no skill in {folder}", hint=f"a skill is a folder with a {DOCUMENT}")
    return inside


def _texts(workspace: Workspace, name: str) -> Iterator[_Text]:
    """Yield the texts that a skill had: releases and promotions first, then versions of runs, the newest first."""
    repo, index = workspace.repo, workspace.index
    runs = [(run, path) for run in queries.run_names(index) if (path := index.skill_path(run)).endswith(f"/{name}")]
    tags = releases(repo, name)
    for path in dict.fromkeys(path for _, path in runs):
        for change in changes_on_trunk(repo, path):
            tag = tags.get(change.commit, "")
            if change.version or tag:
                row = Installed(place="", skill=name, name=change.version or tag, release=tag, commit=change.commit)
                yield _Text(row, "", None, path, skill_tree(repo, change.commit, path))
    for run, path in runs:
        for score in reversed(version_queries.selection_scores(index, run)):
            event = queries.row_of_version(index, run, score.version)
            row = Installed(place="", skill=name, name="" if event is None else str(event.address), commit=score.commit)
            yield _Text(row, run, score.version, path, skill_tree(repo, score.commit, path))


def _newer(workspace: Workspace, run: str, version: int | None) -> str:
    """Return the best version of ``run``, if it was made after ``version``."""
    if version is None or run not in queries.run_names(workspace.index):
        return ""
    best = queries.best_row(workspace.index, run)
    is_later = best is not None and best.version is not None and best.version > version
    return f"{run}/{version_label(best.version)}" if is_later and best is not None else ""


def _left(context: Context, folder: Path, name: str, entries: Entries) -> Iterator[tuple[str, object]]:
    """Yield what installers left that says which text they copied: a tree, or a hash of their own."""
    yield _TREE, _fields(_document(entries)).get(_TREE)
    home, state = context.environ.get("HOME"), context.environ.get("XDG_STATE_HOME")
    locks = [Path(state, "skills", _LOCK)] if state else [Path(home, ".agents", _LOCK)] if home else []
    for file in locks:
        yield _LOCK, _lock_entry(file, name).get("skillFolderHash")
    for parent in folder.parents:
        yield _PROJECT_LOCK, _lock_entry(parent / _PROJECT_LOCK, name).get("computedHash")


def _is_installed(entries: Entries, original: Entries) -> bool:
    """Say whether ``entries`` are ``original`` but for what ``gh skill install`` adds to its metadata."""
    have = edited(entries)
    if original.keys() != have.keys() or any(
        path != DOCUMENT and entry.content != have[path].content for path, entry in original.items()
    ):
        return False
    old, new = _document(original), _document(have)
    bare = {key: value for key, value in _fields(new).items() if not is_installers(key.removeprefix("metadata."))}
    return bare == _fields(old) and old.removeprefix(frontmatter(old)) == new.removeprefix(frontmatter(new))


def _entries(workspace: Workspace, text: _Text) -> Entries:
    with suppress(SkillgitError):  # a text whose names no folder can have was never installed
        return edited(entries_of(skill_at(workspace.repo, text.row.commit, text.path)))
    return {}


def _project_hash(workspace: Workspace, text: _Text) -> str:
    """Return the hash by which ``npx skills`` knows a text in the lock of a project."""
    state = hashlib.sha256()
    for path, entry in sorted(_entries(workspace, text).items(), key=lambda row: (row[0].casefold(), row[0])):
        state.update(path.encode() + entry.content)
    return state.hexdigest()


def _lock_entry(file: Path, name: str) -> Mapping[str, object]:
    with suppress(OSError, DocumentError):  # there is none, or none that could be read
        return members(members(members(read_document(read_plain(file, most=_MOST_LOCK))).get("skills")).get(name))
    return {}


def _document(entries: Entries) -> str:
    return entries[DOCUMENT].content.decode(errors="replace") if DOCUMENT in entries else ""


def _fields(text: str) -> dict[str, str]:
    """Return the fields of a frontmatter as texts, those of metadata by their dotted names."""
    fields = read_head(text).fields
    texts = {key: value for key, value in fields.items() if isinstance(value, str) and value}
    return texts | {f"metadata.{key}": value for key, value in metadata_of(fields).items()}
