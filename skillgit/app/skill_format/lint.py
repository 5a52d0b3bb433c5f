"""``skillgit lint``: which rules of Agent Skills a skill folder breaks, in a work tree or in a commit."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from skillgit.app.skill_format.frontmatter import PROTOCOLS, is_installers, metadata_of, read_head
from skillgit.app.skill_format.lint_rules import (
    BODY_TOKENS,
    CHARACTERS_PER_TOKEN,
    DOCUMENT_LINES,
    broken,
)
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.finding import Finding, Severity
from skillgit.domain.protected_regions import (
    APPENDIX_END,
    APPENDIX_START,
    KEEP_END,
    KEEP_START,
    SLOW_END,
    SLOW_START,
    frontmatter,
)
from skillgit.domain.skill import DOCUMENT, hidden_characters
from skillgit.domain.untrusted.file_names import clashes, leads_out, path_fault, shown
from skillgit.errors import NotFoundError, SkillError
from skillgit.lazy import loaded_on_use

with loaded_on_use():  # a folder needs no repository
    from skillgit.app.workspace import revision
    from skillgit.store import tree


_MENTION = re.compile(r"(?:\./)?(?:scripts|references|assets)/[\w./-]*[\w-]\.\w+")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class Target(NamedTuple):
    """What a place in a document leads to."""

    path: str  # the path as it is written, without what follows ``#`` or ``?``
    line: int  # its line, counted from 1
    is_link: bool  # whether it is a link; else a path in a code span


def link_faults(texts: Mapping[str, str], files: Collection[str]) -> Iterator[Finding]:
    """Yield links to nowhere, outside, or two steps off; ``texts`` are Markdown, frontmatter lines counted."""
    targets = {path: tuple(_targets(text)) for path, text in texts.items()}
    paths = {*files, ".", *(folder.as_posix() for path in files for folder in PurePosixPath(path).parents)}
    first = {normpath(target.path) for target in targets.get(DOCUMENT, ())}
    for path, target in ((path, target) for path, links in targets.items() for target in links):
        destination = normpath(f"{path[: path.rfind('/') + 1]}{target.path}")
        if destination.startswith("..") or target.path.startswith(("/", "~")) or _DRIVE.match(target.path):
            if target.is_link:
                yield broken("link-outside", path, target.line, f"the link to {target.path} leaves the skill folder")
        elif destination in paths:
            if target.is_link and destination.endswith(".md") and destination not in {*first, path, DOCUMENT}:
                sentence = f"{destination} is linked here, and not in {DOCUMENT}"
                yield broken("reference-chain", path, target.line, sentence)
        elif target.is_link:
            rule = "link-missing" if path == DOCUMENT else "companion-link-missing"
            yield broken(rule, path, target.line, f"the link leads to {target.path}, which is not there")
        elif path == DOCUMENT:  # a path in a code span is meant from the folder, wherever the file is that mentions it
            yield broken("mention-missing", path, target.line, f"there is no {target.path} in the folder")


def _targets(text: str) -> Iterator[Target]:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only a check needs it

    for block in MarkdownIt("commonmark").enable("table").parse(text):
        line = (block.map or [0])[0] + 1
        for token in (block.children or ()) if block.type == "inline" else ():
            if token.type in {"softbreak", "hardbreak"}:
                line += 1
            elif token.type in {"link_open", "image"}:
                if path := _local(str(token.attrGet("href" if token.type == "link_open" else "src") or "")):
                    yield Target(path, line, is_link=True)
            elif token.type == "code_inline":
                # A code span names paths alone or in a command.
                mentions = filter(_MENTION.fullmatch, token.content.split())
                yield from (Target(mention, line, is_link=False) for mention in mentions)


def _local(address: str) -> str:
    """Return the path that a link leads to; empty for another place in the same file and for the web."""
    if _DRIVE.match(unquote(address)):
        return unquote(address)
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return "" if parts.scheme or parts.netloc else unquote(parts.path)


_NAMED = re.compile(
    r"(?<![\w./:-])(?:[\w-]+/)*(?:(?:LICEN[CS]E|COPYING|NOTICE)(?:[.-][\w.-]*\w)?|[\w-]+\.(?:txt|md|rst))(?![\w/])"
)
_LICENCE = re.compile(r"(?i)(?:.*[-_.])?(?:licen[cs]e|copying|notice|ofl|unlicense)(?:[-_.].*)?")
_OF_OTHERS = frozenset({"vendor", "vendored", "third_party", "third-party", "thirdparty", "node_modules"})
_FONTS = frozenset({".ttf", ".otf", ".woff", ".woff2"})
_MINIFIED = (".min.js", ".min.css")
_CLAIM = re.compile(rb"(?i)copyright\s+(?:\(c\)|\xc2\xa9|[12]\d{3})|SPDX-License-Identifier:|@license\b")
_LOOKED_AT = 2000  # bytes at the beginning of a file in which it says whose it is


def licence_files(licence: str) -> tuple[str, ...]:
    """Return the files that the frontmatter's ``license`` names, such as ``LICENSE.txt``."""
    return tuple(dict.fromkeys(_NAMED.findall(licence)))


def is_licence(path: str) -> bool:
    """Say whether the file at ``path`` is called like the text of a licence."""
    return _LICENCE.fullmatch(PurePosixPath(path).name) is not None


def unlicensed(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield path and reason of each file that begins like someone else's and has no licence file above it."""
    folders = {PurePosixPath(path).parent for path in files if is_licence(path)}
    for name, content in files.items():
        path = PurePosixPath(name)
        if is_licence(name) or folders & set(path.parents):
            continue
        if _OF_OTHERS & set(path.parts[:-1]):
            yield name, "is in a folder for what others wrote"
        elif path.suffix.lower() in _FONTS:
            yield name, "is a font"
        elif path.name.endswith(_MINIFIED):
            yield name, "is a minified library"
        elif path.suffix.lower() != ".md" and _CLAIM.search(content[:_LOOKED_AT]):
            yield name, "names a copyright or a licence of its own"


_LOWER = "skill.md"
_NAMES = frozenset({DOCUMENT, _LOWER})
_BOM = b"\xef\xbb\xbf"
_TEXTS = frozenset(
    {".md", ".txt", ".py", ".sh", ".js", ".ts", ".json", ".yaml", ".yml", ".toml", ".csv", ".html", ".xml"}
)
_REGIONS = ((KEEP_START, KEEP_END), (SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))


def check_folder(name: str, files: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Return where a skill folder, path inside it to content, breaks the rules, by file and line."""
    document = DOCUMENT if DOCUMENT in files else _LOWER
    if document not in files:
        return (broken("document-missing", "", 0, f"the folder {name} has no {DOCUMENT}"),)
    faults = [broken("document-case", _LOWER, 0, f"the document is called {_LOWER}")] if document == _LOWER else []
    faults += [
        broken("file-name", path, 0, f"{shown(path)} cannot be the path of a file: {fault}")
        for path in files
        if (fault := path_fault(path))
    ]
    faults += [broken("file-name", "", 0, clash) for clash in clashes(files)]
    texts: dict[str, str] = {}
    for path, content in files.items():
        name_shown, is_document = (DOCUMENT, True) if path == document else (path, False)
        if hidden := hidden_characters(path, content):
            faults.append(broken("hidden-character", path, hidden.line, hidden.sentence))
        if is_document or PurePosixPath(path).suffix.lower() in _TEXTS:
            faults += _byte_faults(name_shown, content, is_document=is_document)
        if is_document or path.lower().endswith(".md"):
            with suppress(UnicodeDecodeError):  # line ends as validators see them
                texts[name_shown] = content.removeprefix(_BOM).decode().replace("\r\n", "\n").replace("\r", "\n")
    if DOCUMENT in texts:
        faults += _document_faults(name, texts, {*files, DOCUMENT} - {_LOWER if document == _LOWER else ""})
    return tuple(sorted(faults, key=lambda fault: (fault.path != DOCUMENT, fault.path, fault.line)))


def _byte_faults(path: str, content: bytes, *, is_document: bool) -> Iterator[Finding]:
    has_mark = content.startswith(_BOM)
    if has_mark:
        rule = "byte-order-mark" if is_document else "companion-encoding"
        yield broken(rule, path, 1, f"{path} begins with a byte order mark")
    if is_document or not has_mark:
        try:
            content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            yield broken("encoding" if is_document else "companion-encoding", path, line, f"{path} is not UTF-8")
    if (position := content.find(b"\r")) >= 0:
        line = content.count(b"\n", 0, position) + 1
        yield broken("line-ends", path, line, f"{path} has a line end that is not LF")


def _document_faults(name: str, texts: Mapping[str, str], files: Collection[str]) -> Iterator[Finding]:
    """Yield the faults of the document, which is called ``SKILL.md`` in ``texts``, and of links between ``texts``."""
    text = texts[DOCUMENT]
    head, block = read_head(text), frontmatter(text)
    yield from head.faults
    skill_name, licence = head.fields.get("name"), head.fields.get("license")
    if isinstance(skill_name, str) and skill_name and skill_name != name:
        message = f"the skill is called {skill_name}, and its folder {name}"
        yield broken("name-folder", DOCUMENT, head.lines["name"], message)
    for file in licence_files(licence) if isinstance(licence, str) else ():
        if file not in files:
            message = f"the license names {file}, which is not in the folder"
            yield broken("licence-file", DOCUMENT, head.lines["license"], message)
    if keys := sorted(filter(is_installers, metadata_of(head.fields))):
        yield broken("installed-metadata", DOCUMENT, head.lines["metadata"], f"metadata hold {', '.join(keys)}")
    if keys := sorted(key for key in metadata_of(head.fields) if key.startswith(PROTOCOLS)):
        yield broken("reserved-metadata", DOCUMENT, head.lines["metadata"], f"metadata hold {', '.join(keys)}")
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
    # Blank lines in place of the frontmatter, so that lines keep their numbers.
    yield from link_faults({**texts, DOCUMENT: "\n" * above + body}, files)


_LEFT_OUT = frozenset({"__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedSkill:
    """A skill folder that was checked."""

    place: str  # the folder, as a path, or as ``<commit>:<path>`` in a commit
    name: str
    faults: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """What was checked and what was found."""

    skills: tuple[LintedSkill, ...]  # the folders, in the order in which they were named

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(fault for skill in self.skills for fault in skill.faults)

    @property
    def errors(self) -> int:
        return self._count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        return self._count(Severity.WARNING)

    def _count(self, severity: Severity) -> int:
        return sum(fault.severity is severity for fault in self.findings)


def lint(workspace: Workspace, words: Sequence[str] = ()) -> Linted:
    """Check skills in ``words``: existing paths (folders, documents) or else revisions; the current folder without.

    Where the context names a skill, it is that one, as it is in the work tree or at each revision.
    """
    skills: list[LintedSkill] = []
    if workspace.context.skill and not words:
        words = (_in_work_tree(workspace),)
    for word in words or (".",):
        path = workspace.context.directory / word
        skills += _on_disk(workspace.context, path, word) if path.exists() else _in_commit(workspace, word)
    return Linted(skills=tuple(skills))


def _in_work_tree(workspace: Workspace) -> str:
    folder = workspace.repo.workdir
    if folder is None or not (folder / workspace.skill).is_dir():
        raise NotFoundError(f"{workspace.skill} is not in the work tree", hint="name a revision that has it")
    return os.path.relpath(folder / workspace.skill, workspace.context.directory)


def _on_disk(context: Context, path: Path, word: str) -> Iterator[LintedSkill]:
    if path.is_file() and path.name not in _NAMES:
        raise NotFoundError(f"{word} is not a skill", hint=f"name a folder with a {DOCUMENT}, or a revision")
    try:
        folders = [path.parent] if path.is_file() else sorted(_skill_folders(path))
        if not folders:
            if not any(entry.is_file() for entry in path.iterdir() if not entry.name.startswith(".")):
                raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")
            name = path.resolve().name  # it may be any folder, with any number of files
            yield LintedSkill(place=_shown(context, path), name=name, faults=check_folder(name, {}))
        for folder in folders:
            entries = {entry.relative_to(folder).as_posix(): entry for entry in sorted(_entries(folder))}
            files = {inside: entry.read_bytes() for inside, entry in entries.items() if entry.is_file()}
            links = [_link(inside, str(entry.readlink())) for inside, entry in entries.items() if entry.is_symlink()]
            name = folder.resolve().name
            yield LintedSkill(place=_shown(context, folder), name=name, faults=(*check_folder(name, files), *links))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SkillError(f"{error.filename or word} cannot be read: {reason}", hint="check its permissions") from error


def _shown(context: Context, folder: Path) -> str:
    absolute, here = folder.resolve(), context.directory
    return absolute.relative_to(here).as_posix() if absolute.is_relative_to(here) else str(absolute)


def _skill_folders(folder: Path) -> Iterator[Path]:
    """Yield the skill folders in ``folder``, itself included; none inside of another one.

    Of hidden folders only the ``skills`` of agents, as in ``.claude``, are looked into.
    """
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        names = {entry.name: entry for entry in current.iterdir()}
        if not _NAMES.isdisjoint(names):
            yield current
            continue
        for name, entry in names.items():
            if entry.is_dir() and not entry.is_symlink() and not name.startswith(".") and name not in _LEFT_OUT:
                waiting.append(entry)
            elif name.startswith(".") and name != ".git" and not entry.is_symlink() and (entry / "skills").is_dir():
                waiting.append(entry / "skills")


def _entries(folder: Path) -> Iterator[Path]:
    """Yield the files and links of a skill folder, hidden ones left out."""
    waiting = [folder]
    while waiting:
        for entry in waiting.pop().iterdir():
            if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                continue
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            else:
                yield entry


def _link(path: str, target: str) -> Finding:
    rule = "link-leads-out" if leads_out(path, target) else "symbolic-link"
    return broken(rule, path, 0, f"{path} is a symbolic link to {shown(target)}")


def _in_commit(workspace: Workspace, word: str) -> Iterator[LintedSkill]:
    try:
        resolution = revision.resolve(workspace, word)
        only = workspace.skill or (workspace.index.skill_path(resolution.run) if resolution.run else "")
        folders = tree.skill_folders(workspace.repo, resolution.commit, only)
        links = {path: tuple(tree.outward_links(workspace.repo, resolution.commit, path)) for path in folders}
    except NotFoundError as error:
        raise type(error)(f"{word} is neither a path nor a revision: {error.message}", hint=error.hint) from error
    if not folders:
        raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")
    for path, files in folders.items():
        name = path.rpartition("/")[2]
        faults = (*check_folder(name, files), *(_link(*link) for link in links[path]))
        yield LintedSkill(place=f"{resolution.commit[:12]}:{path}", name=name, faults=faults)
