"""What the text of a skill refers to: links, mentioned paths and licence files, and which of them are missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from skillgit.app.skill_format.lint_rules import Fault, broken
from skillgit.domain.skill import DOCUMENT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from markdown_it.token import Token


_MENTION = re.compile(r"(?:\./)?(?:scripts|references|assets)/[\w./-]*[\w-]\.\w+")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a place in a document leads to."""

    path: str  # the path as it is written, without what follows ``#`` or ``?``
    line: int  # its line, counted from 1
    is_link: bool  # whether it is a link; else a path in a code span


def link_faults(texts: Mapping[str, str], files: Collection[str]) -> Iterator[Fault]:
    """Yield where the Markdown of a skill leads to nothing, out of the folder, or over more than one step.

    In ``texts``, path to Markdown, the document's frontmatter has to count as lines.
    """
    targets = {path: tuple(_targets(text)) for path, text in texts.items()}
    paths = {*files, ".", *(folder.as_posix() for path in files for folder in PurePosixPath(path).parents)}
    first = {_resolved(DOCUMENT, target.path) for target in targets.get(DOCUMENT, ())}
    for path, links in targets.items():
        for target in links:
            yield from _faults(path, target, paths, first)


def _faults(path: str, target: Target, paths: Collection[str], first: Collection[str]) -> Iterator[Fault]:
    destination = _resolved(path, target.path)
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


def _resolved(path: str, target: str) -> str:
    folder = path.rpartition("/")[0]
    return normpath(f"{folder}/{target}" if folder else target)


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
