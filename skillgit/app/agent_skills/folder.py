"""Whether a skill folder keeps the rules of Agent Skills: its document, its other files, and how they hang together."""

from __future__ import annotations

import re
from math import ceil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from skillgit.app.agent_skills.fields import read_head
from skillgit.app.agent_skills.licences import licence_files
from skillgit.app.agent_skills.links import link_faults
from skillgit.app.agent_skills.rules import BODY_TOKENS, CHARACTERS_PER_TOKEN, DOCUMENT_LINES, broken
from skillgit.domain.skill import (
    APPENDIX_END,
    APPENDIX_START,
    DOCUMENT,
    KEEP_END,
    KEEP_START,
    SLOW_END,
    SLOW_START,
    frontmatter,
)
from skillgit.domain.untrusted.hidden import hidden_characters
from skillgit.domain.untrusted.names import clashes, path_fault, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.app.agent_skills.fields import Head
    from skillgit.app.agent_skills.rules import Fault

LOWER = "skill.md"
_BOM = b"\xef\xbb\xbf"
_TEXTS = frozenset(
    {".md", ".txt", ".py", ".sh", ".js", ".ts", ".json", ".yaml", ".yml", ".toml", ".csv", ".html", ".xml"}
)
_REGIONS = ((KEEP_START, KEEP_END), (SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))


def check_folder(name: str, files: Mapping[str, bytes]) -> tuple[Fault, ...]:
    """Return where a skill folder breaks the rules, by file and line.

    Args:
        name: The folder's name.
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
        texts = {path: found for path, content in rest.items() if (found := _markdown(path, content)) is not None}
        faults += _document_faults(name, text, {DOCUMENT: text, **texts}, {DOCUMENT, *rest})
    return tuple(sorted(faults, key=lambda fault: (fault.path != DOCUMENT, fault.path, fault.line)))


def _document_faults(name: str, text: str, texts: Mapping[str, str], files: set[str]) -> Iterator[Fault]:
    head = read_head(text)
    yield from head.faults
    yield from _name_fault(name, head)
    yield from _licence_faults(head, files)
    yield from _body_faults(text)
    shown = {**texts, DOCUMENT: _without_head(text)}
    yield from link_faults(shown, files)


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
        told = "begins with a byte order mark" if content.startswith(_BOM) else "is not UTF-8"
        yield broken("companion-encoding", path, line, f"{path} {told}")
    if (line := _carriage_return(content)) is not None:
        yield broken("line-ends", path, line, f"{path} has a line end that is not LF")


def _undecodable_line(content: bytes) -> int | None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return None


def _carriage_return(content: bytes) -> int | None:
    place = content.find(b"\r")
    return None if place < 0 else content.count(b"\n", 0, place) + 1


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
        told = f"the skill is called {name}, and its folder {folder}"
        yield broken("name-folder", DOCUMENT, head.lines["name"], told)


def _licence_faults(head: Head, files: set[str]) -> Iterator[Fault]:
    licence = head.fields.get("license")
    for wanted in licence_files(licence) if isinstance(licence, str) else ():
        if wanted not in files:
            told = f"the license names {wanted}, which is not in the folder"
            yield broken("licence-file", DOCUMENT, head.lines["license"], told)


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
