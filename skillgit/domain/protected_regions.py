"""Who may write which part of a ``SKILL.md``: people, the steps of a run, or one of its stages.

A ``SKILL.md`` is divided into blocks. Each block has one owner, and only its owner changes it:

- the *frontmatter* belongs to people: no optimizer edits it;
- a *keep* region (``<!-- skillgit:keep -->`` … ``<!-- /skillgit:keep -->``) belongs to people too;
- the *slow* region (``<!-- skillgit:slow -->`` … ``<!-- /skillgit:slow -->``) belongs to the slow update;
- the *appendix* region (``<!-- skillgit:appendix -->`` … ``<!-- /skillgit:appendix -->``) belongs to skill-aware
  reflection: one bullet for each reminder;
- everything else is *body* and belongs to the steps.

A region that is opened and never closed reaches to the end of the file: a damaged marker protects too much, never too
little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from skillgit.domain.untrusted.model_text import SkillText, verbatim
from skillgit.errors import SkillError

SLOW_START, SLOW_END = "<!-- skillgit:slow -->", "<!-- /skillgit:slow -->"
KEEP_START, KEEP_END = "<!-- skillgit:keep -->", "<!-- /skillgit:keep -->"
APPENDIX_START, APPENDIX_END = "<!-- skillgit:appendix -->", "<!-- /skillgit:appendix -->"
APPENDIX_HEADING = "## Reminders"

_FRONTMATTER = re.compile(r"\A---[ \t]*\n.*?^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
MARKER = re.compile(r"<!--\s*/?\s*skillgit:[a-z-]*\s*-->")  # matches anything shaped like a region marker


class Owner(StrEnum):
    FRONTMATTER = "frontmatter"
    BODY = "body"
    KEEP = "keep"
    SLOW = "slow"
    APPENDIX = "appendix"


_MARKERS = {
    Owner.SLOW: (SLOW_START, SLOW_END),
    Owner.KEEP: (KEEP_START, KEEP_END),
    Owner.APPENDIX: (APPENDIX_START, APPENDIX_END),
}
_REGION = re.compile(
    "|".join(rf"{re.escape(start)}(?P<{owner}>.*?)(?:{re.escape(end)}|\Z)" for owner, (start, end) in _MARKERS.items()),
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A stretch of a text file with one owner, as character offsets ``[start, end)``."""

    owner: Owner
    start: int
    end: int


def has_marker(text: str) -> bool:
    return MARKER.search(text) is not None


def frontmatter(text: str) -> str:
    """Return the frontmatter of ``text`` with its fences, or an empty string."""
    match = _FRONTMATTER.match(text)
    return match.group() if match else ""


def blocks(text: str, *, is_document: bool = True) -> tuple[Block, ...]:
    """Divide ``text`` into blocks without gaps, in order, none of them empty; only the document has frontmatter."""
    start = len(frontmatter(text)) if is_document else 0
    parts = [Block(owner=Owner.FRONTMATTER, start=0, end=start)]
    position = start
    for match in _REGION.finditer(text, start):
        owner = _owner(match)
        parts.append(Block(owner=Owner.BODY, start=position, end=match.start()))
        parts.append(Block(owner=owner, start=match.start(), end=match.end()))
        position = match.end()
    parts.append(Block(owner=Owner.BODY, start=position, end=len(text)))
    return tuple(block for block in parts if block.end > block.start)


def protected(text: str, *, is_document: bool = True) -> list[tuple[Owner, str]]:
    """Return owner and text of all that steps may not write, in order."""
    parts = blocks(text, is_document=is_document)
    return [(part.owner, text[part.start : part.end]) for part in parts if part.owner is not Owner.BODY]


def _owner(region: re.Match[str]) -> Owner:
    return next(owner for owner in _MARKERS if region.group(owner.value) is not None)


def _region(text: str, owner: Owner) -> re.Match[str] | None:
    regions = _REGION.finditer(text, len(frontmatter(text)))
    return next((region for region in regions if _owner(region) is owner), None)


def _with_region(text: str, owner: Owner, content: str) -> str:
    """Return ``text`` with the region of ``owner`` set; one that is missing is added at the end."""
    start, end = _MARKERS[owner]
    region = f"{start}\n{content}\n{end}" if content else f"{start}\n{end}"
    match = _region(text, owner)
    if match is not None:
        return text[: match.start()] + region + text[match.end() :]
    return f"{text.rstrip(chr(10))}\n\n{region}\n"


def slow_guidance(text: str) -> SkillText:
    """Return what is between the slow markers, trimmed; empty if there is no slow region."""
    region = _region(text, Owner.SLOW)
    return verbatim(region.group("slow").strip() if region is not None else "")


def with_slow_guidance(text: str, guidance: SkillText) -> str:
    r"""Return ``text`` with the slow region set to ``guidance``; every other character stays as it was.

    A region that is missing is added at the end. Empty guidance leaves an empty region in place. A SkillError if
    ``guidance`` contains a region marker.

    >>> from skillgit.domain.untrusted.model_text import clean
    >>> text = with_slow_guidance('# Search\n', clean('Answer in few words.'))
    >>> slow_guidance(text)
    'Answer in few words.'
    """
    if has_marker(guidance):
        raise SkillError("slow guidance contains a region marker", hint="write the guidance without HTML comments")
    return _with_region(text, Owner.SLOW, guidance.strip())


def appendix_notes(text: str) -> tuple[SkillText, ...]:
    """Return the reminders in the appendix region, without their bullets; none if there is no such region."""
    region = _region(text, Owner.APPENDIX)
    lines = region.group("appendix").split("\n") if region is not None else ()
    return tuple(verbatim(line[2:].strip()) for line in lines if line.startswith("- ") and line[2:].strip())


def with_appendix(text: str, notes: Iterable[SkillText]) -> str:
    """Return ``text`` with the appendix region set to ``notes``; every other character stays as it was.

    A region that is missing is added at the end; without notes nothing is added. A SkillError if a note contains a
    region marker or a line break, or is empty.
    """
    reminders = [note.strip() for note in notes]
    if any(has_marker(note) or "\n" in note or not note for note in reminders):
        raise SkillError("a reminder has to be one line without region markers", hint="write it as plain text")
    if not reminders and _region(text, Owner.APPENDIX) is None:
        return text
    bullets = "\n".join(f"- {note}" for note in reminders)
    return _with_region(text, Owner.APPENDIX, f"{APPENDIX_HEADING}\n\n{bullets}" if reminders else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendixCounts:
    """What skill-aware reflection did to the appendix.

    Attributes:
        added: Reminders that are new.
        total: Reminders that are in the candidate.
        consolidated: How many there were before they were put together; 0 if they were not.
    """

    added: int
    total: int
    consolidated: int = 0
