"""``skillgit lint``: which rules of Agent Skills a skill folder breaks, in a work tree or in a commit."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from skillgit.app.skill_format.frontmatter import is_installers, metadata_of, read_head
from skillgit.app.skill_format.lint_rules import (
    BODY_TOKENS,
    CHARACTERS_PER_TOKEN,
    DOCUMENT_LINES,
    broken,
)
from skillgit.app.workspace.context import Context
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

if TYPE_CHECKING:
    from markdown_it.token import Token


_MENTION = re.compile(r"(?:\./)?(?:scripts|references|assets)/[\w./-]*[\w-]\.\w+")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a place in a document leads to."""

    path: str  # the path as it is written, without what follows ``#`` or ``?``
    line: int  # its line, counted from 1
    is_link: bool  # whether it is a link; else a path in a code span


def link_faults(texts: Mapping[str, str], files: Collection[str]) -> Iterator[Finding]:
    """Yield links to nowhere, outside, or two steps off; ``texts`` are Markdown, frontmatter lines counted."""
    targets = {path: tuple(_targets(text)) for path, text in texts.items()}
    paths = {*files, ".", *(folder.as_posix() for path in files for folder in PurePosixPath(path).parents)}
    first = {normpath(target.path) for target in targets.get(DOCUMENT, ())}
    for path, links in targets.items():
        for target in links:
            yield from _faults(path, target, paths, first)


def _faults(path: str, target: Target, paths: Collection[str], first: Collection[str]) -> Iterator[Finding]:
    destination = normpath(f"{path[: path.rfind('/') + 1]}{target.path}")
    if destination.startswith("..") or target.path.startswith(("/", "~")) or _DRIVE.match(target.path):
        if target.is_link:
            yield broken("link-outside", path, target.line, f"the link to {target.path} leaves the skill folder")
        return
    if destination not in paths:
        if not target.is_link:
            # A path in a code span is meant from the folder, wherever the file stands that mentions it.
            if path == DOCUMENT:
                yield broken("mention-missing", path, target.line, f"there is no {target.path} in the folder")
            return
        rule = "link-missing" if path == DOCUMENT else "companion-link-missing"
        yield broken(rule, path, target.line, f"the link leads to {target.path}, which is not there")
    elif target.is_link and destination.endswith(".md") and destination not in {*first, path, DOCUMENT}:
        yield broken("reference-chain", path, target.line, f"{destination} is linked here, and not in {DOCUMENT}")


def _targets(text: str) -> Iterator[Target]:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only a check needs it

    for block in MarkdownIt("commonmark").enable("table").parse(text):
        if block.type == "inline":
            yield from _inline(block, (block.map or [0])[0] + 1)


def _inline(block: Token, first: int) -> Iterator[Target]:
    line = first
    for token in block.children or ():
        if token.type in {"softbreak", "hardbreak"}:
            line += 1
        elif token.type in {"link_open", "image"}:
            if path := _local(str(token.attrGet("href" if token.type == "link_open" else "src") or "")):
                yield Target(path=path, line=line, is_link=True)
        elif token.type == "code_inline":
            # A code span names paths alone or in a command.
            mentions = filter(_MENTION.fullmatch, token.content.split())
            yield from (Target(path=mention, line=line, is_link=False) for mention in mentions)


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
    for path, content in files.items():
        location = PurePosixPath(path)
        has_licence = is_licence(path) or folders & set(location.parents)
        if not has_licence and (reason := _reason(location, content)):
            yield path, reason


def _reason(path: PurePosixPath, content: bytes) -> str:
    if _OF_OTHERS & set(path.parts[:-1]):
        return "is in a folder for what others wrote"
    if path.suffix.lower() in _FONTS:
        return "is a font"
    if path.name.endswith(_MINIFIED):
        return "is a minified library"
    if path.suffix.lower() != ".md" and _CLAIM.search(content[:_LOOKED_AT]):
        return "names a copyright or a licence of its own"
    return ""


_LOWER = "skill.md"
_NAMES = frozenset({DOCUMENT, _LOWER})
_BOM = b"\xef\xbb\xbf"
_TEXTS = frozenset(
    {".md", ".txt", ".py", ".sh", ".js", ".ts", ".json", ".yaml", ".yml", ".toml", ".csv", ".html", ".xml"}
)
_REGIONS = ((KEEP_START, KEEP_END), (SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))


def check_folder(name: str, files: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Return where a skill folder, path inside it to content, breaks the rules, by file and line."""
    faults: list[Finding] = []
    document = DOCUMENT
    if DOCUMENT not in files:
        if _LOWER not in files:
            return (broken("document-missing", "", 0, f"the folder {name} has no {DOCUMENT}"),)
        document = _LOWER
        faults.append(broken("document-case", _LOWER, 0, f"the document is called {_LOWER}"))
    rest = {path: content for path, content in files.items() if path != document}
    faults += _name_faults(files)
    faults += _byte_faults(files[document])
    for path, content in files.items():
        if hidden := hidden_characters(path, content):
            faults.append(broken("hidden-character", path, hidden.line, hidden.sentence))
    faults += [fault for path, content in rest.items() for fault in _companion_faults(path, content)]
    text = _text(files[document])
    if text is not None:
        pages = {path: _text(content) for path, content in rest.items() if path.lower().endswith(".md")}
        texts = {path: page for path, page in pages.items() if page is not None}
        faults += _document_faults(name, text, texts, {DOCUMENT, *rest})
    return tuple(sorted(faults, key=lambda fault: (fault.path != DOCUMENT, fault.path, fault.line)))


def _document_faults(name: str, text: str, texts: Mapping[str, str], files: set[str]) -> Iterator[Finding]:
    head = read_head(text)
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
    yield from _body_faults(text)
    # Blank lines in place of the frontmatter, so that lines keep their numbers.
    block = frontmatter(text)
    yield from link_faults({DOCUMENT: "\n" * block.count("\n") + text.removeprefix(block), **texts}, files)


def _name_faults(files: Mapping[str, bytes]) -> Iterator[Finding]:
    for path in files:
        if fault := path_fault(path):
            yield broken("file-name", path, 0, f"{shown(path)} cannot be the path of a file: {fault}")
    for clash in clashes(files):
        yield broken("file-name", "", 0, clash)


def _byte_faults(content: bytes) -> Iterator[Finding]:
    if content.startswith(_BOM):
        yield broken("byte-order-mark", DOCUMENT, 1, f"{DOCUMENT} begins with a byte order mark")
    if (line := _undecodable_line(content)) is not None:
        yield broken("encoding", DOCUMENT, line, f"{DOCUMENT} is not UTF-8")
    if (line := _carriage_return(content)) is not None:
        yield broken("line-ends", DOCUMENT, line, f"{DOCUMENT} has a line end that is not LF")


def _companion_faults(path: str, content: bytes) -> Iterator[Finding]:
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


def _body_faults(text: str) -> Iterator[Finding]:
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
    def errors(self) -> int:
        return self._severities().count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        return self._severities().count(Severity.WARNING)

    def _severities(self) -> list[Severity]:
        return [fault.severity for skill in self.skills for fault in skill.faults]


def lint(context: Context, words: Sequence[str] = ()) -> Linted:
    """Check skills in ``words``: existing paths (folders, documents) or else revisions; the current folder without.

    Where the context names a skill, it is that one, as it is in the work tree or at each revision.
    """
    skills: list[LintedSkill] = []
    if context.skill and not words:
        words = (_in_work_tree(context),)
    for word in words or (".",):
        path = context.directory / word
        skills += _on_disk(context, path, word) if path.exists() else _in_commit(context, word)
    return Linted(skills=tuple(skills))


def _in_work_tree(context: Context) -> str:
    from skillgit.app.workspace.workspace import open_workspace  # noqa: PLC0415 - a folder needs no repository

    with open_workspace(context) as workspace:
        folder = workspace.repo.workdir
        if folder is None or not (folder / workspace.skill).is_dir():
            raise NotFoundError(f"{workspace.skill} is not in the work tree", hint="name a revision that has it")
        return os.path.relpath(folder / workspace.skill, context.directory)


def _on_disk(context: Context, path: Path, word: str) -> Iterator[LintedSkill]:
    if path.is_file() and path.name not in _NAMES:
        raise NotFoundError(f"{word} is no skill", hint=f"name a folder with a {DOCUMENT}, or a revision")
    try:
        folders = [path.parent] if path.is_file() else sorted(_skill_folders(path))
        if not folders:
            if not any(entry.is_file() for entry in path.iterdir() if not entry.name.startswith(".")):
                raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")
            name = path.resolve().name  # it may be any folder, with any number of files
            yield LintedSkill(place=_shown(context, path), name=name, faults=check_folder(name, {}))
        for folder in folders:
            files, links = _read(folder)
            name = folder.resolve().name
            faults = check_folder(name, files)
            yield LintedSkill(place=_shown(context, folder), name=name, faults=(*faults, *links))
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
        place = waiting.pop()
        names = {entry.name: entry for entry in place.iterdir()}
        if not _NAMES.isdisjoint(names):
            yield place
            continue
        for name, entry in names.items():
            if entry.is_dir() and not entry.is_symlink() and not name.startswith(".") and name not in _LEFT_OUT:
                waiting.append(entry)
            elif name.startswith(".") and name != ".git" and not entry.is_symlink() and (entry / "skills").is_dir():
                waiting.append(entry / "skills")


def _read(folder: Path) -> tuple[dict[str, bytes], list[Finding]]:
    """Return the files of a skill folder, hidden ones left out, and the links among them."""
    files, links = dict[str, bytes](), list[Finding]()
    for path in sorted(_entries(folder)):
        inside = path.relative_to(folder).as_posix()
        if path.is_symlink():
            links.append(_link(inside, str(path.readlink())))
        if path.is_file():
            files[inside] = path.read_bytes()
    return files, links


def _link(path: str, target: str) -> Finding:
    rule = "link-leads-out" if leads_out(path, target) else "symbolic-link"
    return broken(rule, path, 0, f"{path} is a symbolic link to {shown(target)}")


def _entries(folder: Path) -> Iterator[Path]:
    waiting = [folder]
    while waiting:
        for entry in sorted(waiting.pop().iterdir()):
            if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                continue
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            else:
                yield entry


def _in_commit(context: Context, word: str) -> Iterator[LintedSkill]:
    from skillgit.app.workspace.revision import resolve_in  # noqa: PLC0415 - a folder needs no repository
    from skillgit.app.workspace.workspace import open_workspace  # noqa: PLC0415 - as above
    from skillgit.store.tree import outward_links, skill_folders  # noqa: PLC0415 - as above

    try:
        with open_workspace(context) as workspace:
            resolution = resolve_in(workspace, word)
            only = workspace.skill or (workspace.index.skill_path(resolution.run) if resolution.run else "")
            folders = skill_folders(workspace.repo, resolution.commit, only)
            links = {path: tuple(outward_links(workspace.repo, resolution.commit, path)) for path in folders}
    except NotFoundError as error:
        raise type(error)(f"{word} is neither a path nor a revision: {error.message}", hint=error.hint) from error
    if not folders:
        raise NotFoundError(f"there is no skill in {word}", hint=f"a skill is a folder with a {DOCUMENT}")
    for path, files in folders.items():
        name = path.rpartition("/")[2]
        faults = (*check_folder(name, files), *(_link(*link) for link in links[path]))
        yield LintedSkill(place=f"{resolution.commit[:12]}:{path}", name=name, faults=faults)
