"""``skillgit lint``: which rules of Agent Skills a skill folder breaks, in a work tree or in a commit."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from math import ceil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from skillgit.app.skill_format.frontmatter import read_head
from skillgit.app.skill_format.links import licence_files, link_faults
from skillgit.app.skill_format.lint_rules import BODY_TOKENS, CHARACTERS_PER_TOKEN, DOCUMENT_LINES, RuleSeverity, broken
from skillgit.domain.protected_regions import (
    APPENDIX_END,
    APPENDIX_START,
    KEEP_END,
    KEEP_START,
    SLOW_END,
    SLOW_START,
    frontmatter,
)
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.file_names import clashes, path_fault, shown
from skillgit.domain.untrusted.hidden_characters import hidden_characters
from skillgit.errors import NotFoundError, SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from skillgit.app.skill_format.frontmatter import Head
    from skillgit.app.skill_format.lint_rules import Fault
    from skillgit.app.workspace.context import Context


LOWER = "skill.md"
_BOM = b"\xef\xbb\xbf"
_TEXTS = frozenset(
    {".md", ".txt", ".py", ".sh", ".js", ".ts", ".json", ".yaml", ".yml", ".toml", ".csv", ".html", ".xml"}
)
_REGIONS = ((KEEP_START, KEEP_END), (SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))


def check_folder(name: str, files: Mapping[str, bytes]) -> tuple[Fault, ...]:
    """Return where a skill folder breaks the rules, by file and line.

    Args:
        files: Path inside the folder (``/`` as separator) to content.
    """
    faults: list[Fault] = []
    document = DOCUMENT
    if DOCUMENT not in files:
        if LOWER not in files:
            return (broken("document-missing", "", 0, f"the folder {name} has no {DOCUMENT}"),)
        document = LOWER
        faults.append(broken("document-case", LOWER, 0, f"the document is called {LOWER}"))
    rest = {path: content for path, content in files.items() if path != document}
    faults += _name_faults(files)
    faults += _byte_faults(files[document])
    faults += _hidden_faults(files)
    faults += [fault for path, content in rest.items() for fault in _companion_faults(path, content)]
    text = _text(files[document])
    if text is not None:
        texts = {path: markdown for path, content in rest.items() if (markdown := _markdown(path, content)) is not None}
        faults += _document_faults(name, text, {DOCUMENT: text, **texts}, {DOCUMENT, *rest})
    return tuple(sorted(faults, key=lambda fault: (fault.path != DOCUMENT, fault.path, fault.line)))


def _document_faults(name: str, text: str, texts: Mapping[str, str], files: set[str]) -> Iterator[Fault]:
    head = read_head(text)
    yield from head.faults
    yield from _name_fault(name, head)
    yield from _licence_faults(head, files)
    yield from _body_faults(text)
    documents = {**texts, DOCUMENT: _without_head(text)}
    yield from link_faults(documents, files)


def _name_faults(files: Mapping[str, bytes]) -> Iterator[Fault]:
    for path in files:
        if fault := path_fault(path):
            yield broken("file-name", path, 0, f"{shown(path)} cannot be the path of a file: {fault}")
    for clash in clashes(files):
        yield broken("file-name", "", 0, clash)


def _byte_faults(content: bytes) -> Iterator[Fault]:
    if content.startswith(_BOM):
        yield broken("byte-order-mark", DOCUMENT, 1, f"{DOCUMENT} begins with a byte order mark")
    if (line := _undecodable_line(content)) is not None:
        yield broken("encoding", DOCUMENT, line, f"{DOCUMENT} is not UTF-8")
    if (line := _carriage_return(content)) is not None:
        yield broken("line-ends", DOCUMENT, line, f"{DOCUMENT} has a line end that is not LF")


def _hidden_faults(files: Mapping[str, bytes]) -> Iterator[Fault]:
    for path, content in files.items():
        if hidden := hidden_characters(path, content):
            yield broken("hidden-character", path, hidden.line, hidden.sentence)


def _companion_faults(path: str, content: bytes) -> Iterator[Fault]:
    if PurePosixPath(path).suffix.lower() not in _TEXTS:
        return
    line = 1 if content.startswith(_BOM) else _undecodable_line(content)
    if line is not None:
        message = "begins with a byte order mark" if content.startswith(_BOM) else "is not UTF-8"
        yield broken("companion-encoding", path, line, f"{path} {message}")
    if (line := _carriage_return(content)) is not None:
        yield broken("line-ends", path, line, f"{path} has a line end that is not LF")


def _undecodable_line(content: bytes) -> int | None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return None


def _carriage_return(content: bytes) -> int | None:
    position = content.find(b"\r")
    return None if position < 0 else content.count(b"\n", 0, position) + 1


def _text(content: bytes) -> str | None:
    """Return the text of the document as far as it can be read, line ends as validators see them."""
    try:
        return content.removeprefix(_BOM).decode().replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None


def _markdown(path: str, content: bytes) -> str | None:
    return _text(content) if path.lower().endswith(".md") else None


def _without_head(text: str) -> str:
    """Return the document with blank lines in place of its frontmatter, so that lines keep their numbers."""
    block = frontmatter(text)
    return "\n" * block.count("\n") + text.removeprefix(block)


def _name_fault(folder: str, head: Head) -> Iterator[Fault]:
    name = head.fields.get("name")
    if isinstance(name, str) and name and name != folder:
        message = f"the skill is called {name}, and its folder {folder}"
        yield broken("name-folder", DOCUMENT, head.lines["name"], message)


def _licence_faults(head: Head, files: set[str]) -> Iterator[Fault]:
    licence = head.fields.get("license")
    for file in licence_files(licence) if isinstance(licence, str) else ():
        if file not in files:
            message = f"the license names {file}, which is not in the folder"
            yield broken("licence-file", DOCUMENT, head.lines["license"], message)


def _body_faults(text: str) -> Iterator[Fault]:
    block = frontmatter(text)
    body, above = text.removeprefix(block), block.count("\n")
    lines, tokens = text.count("\n") + (not text.endswith("\n")), ceil(len(body) / CHARACTERS_PER_TOKEN)
    if not body.strip():
        yield broken("body-empty", DOCUMENT, above or 1, f"{DOCUMENT} ends with its frontmatter")
    if lines >= DOCUMENT_LINES:
        yield broken("document-lines", DOCUMENT, DOCUMENT_LINES, f"{DOCUMENT} has {lines} lines")
    if tokens >= BODY_TOKENS:
        yield broken("body-tokens", DOCUMENT, 0, f"the body has about {tokens} tokens")
    for start, end in _REGIONS:
        for match in re.finditer(re.escape(start), body):
            if end not in body[match.end() :]:
                line = above + body.count("\n", 0, match.start()) + 1
                yield broken("region-open", DOCUMENT, line, f"{start} is never closed")


_NAMES = frozenset({DOCUMENT, "skill.md"})
_LEFT_OUT = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedSkill:
    """A skill folder that was checked.

    Attributes:
        place: The folder, as a path, or as ``<commit>:<path>`` in a commit.
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
        return self._count(RuleSeverity.ERROR)

    @property
    def warnings(self) -> int:
        return self._count(RuleSeverity.WARNING)

    def _count(self, severity: RuleSeverity) -> int:
        return sum(fault.severity is severity for skill in self.skills for fault in skill.faults)


def lint(context: Context, words: Sequence[str] = ()) -> Linted:
    """Check skill folders.

    Args:
        words: Folders that are skills or hold some, documents, or revisions; none for the context's folder. What
            exists as a path is taken for one.

    Raises:
        NotFoundError: A word names neither a path nor a revision, or a place without skills.
        SkillError: A folder or a file cannot be read.
    """
    return Linted(skills=tuple(skill for word in words or (".",) for skill in _named(context, word)))


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
            target = _not_empty(path, word)
            name = target.resolve().name
            yield LintedSkill(place=_shown(context, target), name=name, faults=check_folder(name, {}))
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
    if not any(entry.is_file() for entry in path.iterdir() if not entry.name.startswith(".")):
        raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")
    return path


def _shown(context: Context, folder: Path) -> str:
    absolute = folder.resolve()
    return (
        absolute.relative_to(context.directory).as_posix()
        if absolute.is_relative_to(context.directory)
        else str(absolute)
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
    from skillgit.app.workspace.revision import resolve_in  # noqa: PLC0415 - a folder needs no repository
    from skillgit.app.workspace.workspace import open_workspace  # noqa: PLC0415 - as above
    from skillgit.store.tree import skill_folders  # noqa: PLC0415 - as above

    try:
        with open_workspace(context) as workspace:
            resolution = resolve_in(workspace, word)
            only = workspace.index.skill_path(resolution.run) if resolution.run else ""
            folders = skill_folders(workspace.repo, resolution.commit, only)
    except NotFoundError as error:
        raise type(error)(f"{word} is neither a path nor a revision: {error.message}", hint=error.hint) from error
    yield from _checked(resolution.commit, folders)
    if not folders:
        raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")


def _checked(commit: str, folders: dict[str, dict[str, bytes]]) -> Iterable[LintedSkill]:
    for path, files in folders.items():
        name = path.rpartition("/")[2]
        yield LintedSkill(place=f"{commit[:12]}:{path}", name=name, faults=check_folder(name, files))
