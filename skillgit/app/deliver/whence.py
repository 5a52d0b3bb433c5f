"""``skillgit whence``: which version an installed skill is, by what it holds and by what its installer left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from skillgit.app.deliver.install import CHANGED, GONE, UNCHANGED
from skillgit.app.deliver.install_record import InstalledFolder, known_places
from skillgit.app.recorded.evidence_json import members
from skillgit.app.skill_format.atomic_write import typed_path
from skillgit.app.skill_format.folder_contents import Entries, edited, entries_of, fingerprint, read_entries, tree_id
from skillgit.app.skill_format.frontmatter import is_installers, metadata_of, read_head
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import NotFoundError, SkillgitError
from skillgit.files import read_plain
from skillgit.index import queries, version_queries
from skillgit.store.history_reader import skill_at
from skillgit.store.promotion import changes_on_trunk, releases
from skillgit.store.work_tree import skill_tree

_MOST_LOCK = 1 << 20
_TREE = "metadata.github-tree-sha"
_LOCK, _PROJECT_LOCK = ".skill-lock.json", "skills-lock.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillOrigin:
    place: str
    skill: str
    version: str = ""  # ``<run>/v<N>``, or what the record calls it; empty if it is none of this repository's
    release: str = ""  # the tag of the release that it is, such as ``skill/v1.2.0``
    state: str = ""  # ``unchanged``, ``changed by hand`` or ``gone``
    told_by: str = ""  # what says so: the folder itself, or what an installer left
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A text of a skill in history."""

    origin: SkillOrigin  # where it comes from, at no place
    path: str
    tree: str


def whence(context: Context, paths: Sequence[str] = ()) -> tuple[SkillOrigin, ...]:
    """Return what the skills at ``paths`` are, folders of skills or of one; without any, those of the record."""
    with open_workspace(context) as workspace:
        record = {location.path: location for location in known_places(workspace.repo)}
        folders = [folder for path in paths for folder in _skills(typed_path(context.directory, path))]
        search = _Search(context, workspace, record)
        return tuple(search.origin(folder) for folder in (folders if paths else map(Path, record)))


def _skills(folder: Path) -> list[Path]:
    if (folder / DOCUMENT).is_file():
        return [folder]
    inside = sorted(path.parent for path in folder.glob(f"*/{DOCUMENT}")) if folder.is_dir() else []
    if not inside:
        raise NotFoundError(f"there is no skill in {folder}", hint=f"a skill is a folder with a {DOCUMENT}")
    return inside


class _Search:
    def __init__(self, context: Context, workspace: Workspace, record: Mapping[str, InstalledFolder]) -> None:
        self._context, self._workspace, self._record = context, workspace, record
        self._texts: dict[str, tuple[_Text, ...]] = {}

    def origin(self, folder: Path) -> SkillOrigin:
        entries = read_entries(folder.resolve())
        name = _name(entries) or folder.name
        if name not in self._texts:
            self._texts[name] = tuple(_texts(self._workspace, name))
        texts, own, state = self._texts[name], tree_id(entries), CHANGED if entries else GONE
        matches = {
            "its tree": (text for text in texts if text.tree == own),
            "its files, but for metadata of an installer": (
                text for text in texts if entries and self._is_installed(entries, text)
            ),
        }
        for source, candidates in matches.items():
            for text in candidates:
                return replace(text.origin, place=str(folder), state=UNCHANGED, told_by=source)
        if location := self._record.get(str(folder)):
            top = location.top
            state = UNCHANGED if fingerprint(entries) == top.installed else state
            facts = {"version": top.name, "commit": top.commit, "told_by": "the record of skillgit install"}
            return SkillOrigin(place=str(folder), skill=location.skill, state=state, **facts)
        for source, value in self._left(folder, name, entries):
            for text in texts if isinstance(value, str) and value else ():
                if value in {text.tree, self._locked(text, source)}:
                    return replace(text.origin, place=str(folder), state=state, told_by=source)
        return SkillOrigin(place=str(folder), skill=name)

    def _left(self, folder: Path, name: str, entries: Entries) -> Iterator[tuple[str, object]]:
        """Yield what installers left that says which text they copied: a tree, or a hash of their own."""
        yield _TREE, _fields(_document(entries)).get(_TREE)
        environ = self._context.environ
        home, state = environ.get("HOME"), environ.get("XDG_STATE_HOME")
        locks = [Path(state, "skills", _LOCK)] if state else [Path(home, ".agents", _LOCK)] if home else []
        for file in locks:
            yield _LOCK, _locked(file, name).get("skillFolderHash")
        for parent in folder.parents:
            yield _PROJECT_LOCK, _locked(parent / _PROJECT_LOCK, name).get("computedHash")

    def _is_installed(self, entries: Entries, text: _Text) -> bool:
        """Say whether ``entries`` are those of ``text`` but for what ``gh skill install`` adds to its metadata."""
        original, have = self._entries(text), edited(entries)
        if original.keys() != have.keys() or any(
            path != DOCUMENT and entry.content != have[path].content for path, entry in original.items()
        ):
            return False
        old, new = _document(original), _document(have)
        bare = {key: value for key, value in _fields(new).items() if not is_installers(key.removeprefix("metadata."))}
        return bare == _fields(old) and old.removeprefix(frontmatter(old)) == new.removeprefix(frontmatter(new))

    def _entries(self, text: _Text) -> Entries:
        with suppress(SkillgitError):  # a text whose names no folder can have was never installed
            return edited(entries_of(skill_at(self._workspace.repo, text.origin.commit, text.path)))
        return {}

    def _locked(self, text: _Text, source: str) -> str:
        """Return the hash by which ``npx skills`` knows a text in the lock of a project; empty for other sources."""
        if source != _PROJECT_LOCK:
            return ""
        state = hashlib.sha256()
        for path, entry in sorted(self._entries(text).items(), key=lambda row: (row[0].casefold(), row[0])):
            state.update(path.encode() + entry.content)
        return state.hexdigest()


def _texts(workspace: Workspace, name: str) -> Iterator[_Text]:
    """Yield the texts that a skill had: releases and promotions first, then versions of runs, the newest first."""
    repo, index = workspace.repo, workspace.index
    runs = [(run, path) for run in queries.run_names(index) if (path := index.skill_path(run)).endswith(f"/{name}")]
    tags = releases(repo, name)
    for path in dict.fromkeys(path for _, path in runs):
        for change in changes_on_trunk(repo, path):
            tag = tags.get(change.commit, "")
            if change.version or tag:
                tree = skill_tree(repo, change.commit, path)
                version = change.version or tag
                origin = SkillOrigin(place="", skill=name, version=version, release=tag, commit=change.commit)
                yield _Text(origin=origin, path=path, tree=tree)
    for run, path in runs:
        for row in reversed(version_queries.selection_scores(index, run)):
            event = queries.row_of_version(index, run, row.version)
            version = "" if event is None else str(event.address)
            origin = SkillOrigin(place="", skill=name, version=version, commit=row.commit)
            yield _Text(origin=origin, path=path, tree=skill_tree(repo, row.commit, path))


def _document(entries: Entries) -> str:
    return entries[DOCUMENT].content.decode(errors="replace") if DOCUMENT in entries else ""


def _name(entries: Entries) -> str:
    return _fields(_document(entries)).get("name", "")


def _fields(text: str) -> dict[str, str]:
    """Return the fields of a frontmatter as texts, those of metadata by their dotted names."""
    fields = {key: value for key, value in read_head(text).fields.items() if isinstance(value, str) and value}
    return fields | {f"metadata.{key}": value for key, value in metadata_of(read_head(text).fields).items()}


def _locked(file: Path, name: str) -> dict[str, object]:
    with suppress(OSError, DocumentError):  # there is none, or none that could be read
        document = members(read_document(read_plain(file, most=_MOST_LOCK)))
        return members(members(document.get("skills")).get(name))
    return {}
