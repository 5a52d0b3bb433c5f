"""``skillgit lint``: whether skill folders keep the rules of Agent Skills, in a work tree or in a commit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.agent_skills.folder import check_folder
from skillgit.app.agent_skills.rules import Severity, broken
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import NotFoundError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from skillgit.app.agent_skills.rules import Fault
    from skillgit.app.context import Context
    from skillgit.domain.skill import Skill

_NAMES = frozenset({DOCUMENT, "skill.md"})
_LEFT_OUT = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedSkill:
    """A skill folder that was checked.

    Attributes:
        place: The folder, as a path, or as ``<commit>:<path>`` in a commit.
        name: Its name.
        faults: Where it breaks a rule.
    """

    place: str
    name: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """What was checked and what was found.

    Attributes:
        skills: The folders, in the order in which they were named.
    """

    skills: tuple[LintedSkill, ...]

    @property
    def errors(self) -> int:
        """How many errors there are."""
        return self._count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        """How many warnings there are."""
        return self._count(Severity.WARNING)

    def _count(self, severity: Severity) -> int:
        return sum(fault.severity is severity for skill in self.skills for fault in skill.faults)


def lint(context: Context, words: Sequence[str] = ()) -> Linted:
    """Check skill folders.

    Args:
        context: Where to look.
        words: Folders that are skills or hold some, documents, or revisions; none for the context's folder. What
            exists as a path is taken for one.

    Raises:
        NotFoundError: A word names neither a path nor a revision, or a place without skills.
        SkillError: A folder or a file cannot be read.
    """
    return Linted(skills=tuple(skill for word in words or (".",) for skill in _named(context, word)))


def faults_of(skill: Skill) -> tuple[Fault, ...]:
    """Return where ``skill`` breaks a rule of Agent Skills."""
    return check_folder(skill.name, skill.files)


def _named(context: Context, word: str) -> list[LintedSkill]:
    path = context.directory / word
    if path.exists():
        return list(_on_disk(context, path, word))
    return list(_in_commit(context, word))


def _on_disk(context: Context, path: Path, word: str) -> Iterator[LintedSkill]:
    if path.is_file() and path.name not in _NAMES:
        raise NotFoundError(f"{word} is no skill", hint=f"name a folder with a {DOCUMENT}, or a revision")
    try:
        folders = [path.parent] if path.is_file() else sorted(_skill_folders(path))
        if not folders:
            # only what it lacks is told: it may be any folder, with any number of files
            place = _not_empty(path, word)
            name = place.resolve().name
            yield LintedSkill(place=_shown(context, place), name=name, faults=check_folder(name, {}))
        for folder in folders:
            files, links = _read(folder)
            name = folder.resolve().name
            faults = check_folder(name, files)
            yield LintedSkill(place=_shown(context, folder), name=name, faults=(*faults, *links))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SkillError(f"{error.filename or word} cannot be read: {reason}", hint="check its permissions") from error


def _not_empty(path: Path, word: str) -> Path:
    """Return a folder that is no skill but has files of its own, so that it is told what it lacks."""
    if not any(found.is_file() for found in path.iterdir() if not found.name.startswith(".")):
        raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")
    return path


def _shown(context: Context, folder: Path) -> str:
    resolved = folder.resolve()
    return (
        resolved.relative_to(context.directory).as_posix()
        if resolved.is_relative_to(context.directory)
        else str(resolved)
    )


def _skill_folders(folder: Path) -> Iterator[Path]:
    """Yield the skill folders in ``folder``, itself included; none inside of another one, and no hidden ones."""
    names = {entry.name: entry for entry in folder.iterdir()}
    if not _NAMES.isdisjoint(names):
        yield folder
        return
    for name, entry in names.items():
        if entry.is_dir() and not entry.is_symlink() and not name.startswith(".") and name not in _LEFT_OUT:
            yield from _skill_folders(entry)


def _read(folder: Path) -> tuple[dict[str, bytes], list[Fault]]:
    """Return the files of a skill folder, hidden ones left out, and the links among them."""
    files: dict[str, bytes] = {}
    links: list[Fault] = []
    for path in _entries(folder):
        inside = path.relative_to(folder).as_posix()
        if path.is_symlink():
            links.append(broken("symbolic-link", inside, 0, f"{inside} is a symbolic link"))
        if path.is_file():
            files[inside] = path.read_bytes()
    return files, links


def _entries(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name in _LEFT_OUT:
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry)
        else:
            yield entry


def _in_commit(context: Context, word: str) -> Iterator[LintedSkill]:
    from skillgit.app.revision import resolve_in  # noqa: PLC0415 - a folder needs no repository
    from skillgit.app.workspace import open_workspace  # noqa: PLC0415 - as above
    from skillgit.store.folders import skill_folders  # noqa: PLC0415 - as above

    try:
        with open_workspace(context) as workspace:
            found = resolve_in(workspace, word)
            only = workspace.index.skill_path(found.run) if found.run else ""
            folders = skill_folders(workspace.repo, found.commit, only)
    except NotFoundError as error:
        raise type(error)(f"{word} is neither a path nor a revision: {error.message}", hint=error.hint) from error
    yield from _checked(found.commit, folders)
    if not folders:
        raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")


def _checked(commit: str, folders: dict[str, dict[str, bytes]]) -> Iterable[LintedSkill]:
    for path, files in folders.items():
        name = path.rpartition("/")[2]
        yield LintedSkill(place=f"{commit[:12]}:{path}", name=name, faults=check_folder(name, files))
