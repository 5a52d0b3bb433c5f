"""Merging two skills that come from one: what both changed in different ways is a conflict, and a choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from skillgit.domain.protected_regions import Owner, blocks, frontmatter
from skillgit.domain.skill import DOCUMENT, Skill

Lines = tuple[str, ...]
Files = dict[str, bytes]
Sides = tuple[bytes | None, bytes | None, bytes | None]
"""A file as it was, as it is here, and as it is there; None where there is no such file."""


class Choice(StrEnum):
    """Whose text stands where both sides changed the same lines."""

    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Lines that both sides changed in different ways."""

    file: str  # inside the skill folder
    line: int  # where it begins in the file on our side, from 1
    base: Lines
    ours: Lines | None  # what is there on our side; absent if the file is gone
    theirs: Lines | None  # what is there on the other side; absent if the file is gone
    whole: bool = False  # whether it is the file as a whole, which cannot be put together from both

    def text(self, choice: Choice) -> Lines | None:
        """Return what is there under ``choice``; None if the file is gone."""
        match choice:
            case Choice.OURS:
                return self.ours
            case Choice.THEIRS:
                return self.theirs
            case Choice.BOTH:
                return (*_ended(self.ours or ()), *(self.theirs or ()))
            case Choice.NEITHER:
                return self.base

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices that differ, ours first."""
        options = (Choice.OURS, Choice.THEIRS) if self.whole else tuple(Choice)
        by_lines: dict[Lines | None, Choice] = {}
        for choice in options:
            by_lines.setdefault(self.text(choice), choice)
        return tuple(by_lines.values())


Piece = Lines | Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Two skills put together, as far as they can be without a choice."""

    ours: Skill
    theirs: Skill
    files: Mapping[str, bytes | tuple[Piece, ...]]  # path to bytes, or to pieces of text with conflicts between them
    executable: frozenset[str]

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts, in the order of files and lines."""
        return tuple(
            piece
            for pieces in self.files.values()
            if not isinstance(pieces, bytes)
            for piece in pieces
            if isinstance(piece, Conflict)
        )

    def settled(self, choices: Sequence[Choice]) -> Skill | None:
        """Return the skill under ``choices``, one for each conflict; None if it would harm a protected region."""
        remaining = iter(choices)
        files: Files = {}
        for path, pieces in self.files.items():
            content = pieces if isinstance(pieces, bytes) else _joined(pieces, remaining)
            if content is not None:
                files[path] = content
        if DOCUMENT not in files:
            return None
        head = frontmatter(self.ours.document)
        skill = Skill(
            self.ours.name,
            {**files, DOCUMENT: head.encode() + files[DOCUMENT]},
            self.executable & files.keys(),
        )
        return skill if _keeps(self.ours, skill) else None


def merge(base: Skill | None, ours: Skill, theirs: Skill, *, beside: bool = False) -> Merge:
    """Merge ``theirs`` into ``ours``; ``base`` is what both come from, absent if there is no such text.

    The frontmatter belongs to people and is always ours. With ``beside`` it is no conflict that one side only added
    lines right before or after those that the other changed.
    """
    was, mine, yours = ({} if skill is None else _files(skill) for skill in (base, ours, theirs))
    files: dict[str, bytes | tuple[Piece, ...]] = {}
    above = {DOCUMENT: frontmatter(ours.document).count("\n")}
    for path in sorted({*mine, *yours}):
        file = _file(path, above.get(path, 0), (was.get(path), mine.get(path), yours.get(path)), beside=beside)
        if file is not None:
            files[path] = file
    bits = [frozenset[str]() if skill is None else skill.executable for skill in (base, ours, theirs)]
    executable = (bits[1] & bits[2]) | (bits[1] - bits[0]) | (bits[2] - bits[0])
    return Merge(ours=ours, theirs=theirs, files=files, executable=executable)


def _files(skill: Skill) -> Files:
    body = skill.document.removeprefix(frontmatter(skill.document))
    return {**skill.files, DOCUMENT: body.encode()}


def _file(path: str, above: int, sides: Sides, *, beside: bool) -> bytes | tuple[Piece, ...] | None:
    """Return what is in a file of three sides; ``above`` is how many lines of it are not looked at."""
    base, ours, theirs = sides
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    texts = [_text(content) for content in sides]
    if ours is None or theirs is None or None in texts:
        lines = [None if content is None else (content.decode("latin-1"),) for content in sides]
        return (Conflict(file=path, line=1, base=lines[0] or (), ours=lines[1], theirs=lines[2], whole=True),)
    was, mine, yours = (tuple((text or "").splitlines(keepends=True)) for text in texts)
    return tuple(_pieces(path, above, (was, mine, yours), beside=beside))


def _text(content: bytes | None) -> str | None:
    if content is None:
        return ""
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _pieces(path: str, above: int, sides: tuple[Lines, Lines, Lines], *, beside: bool) -> Iterator[Piece]:
    from merge3 import Merge3  # noqa: PLC0415 - only merges need it

    base, ours, theirs = sides
    work = Merge3(base, ours, theirs)
    for region in work.merge_regions():
        # Where nothing stood before, lines that both added are agreed on, and no conflict.
        is_addition = region[0] == "conflict" and region[1] == region[2]
        parts = work.reprocess_merge_regions(iter([region])) if is_addition else (region,)
        for part in parts:
            match part:
                case "unchanged", first, last:
                    yield base[first:last]
                case "a" | "same", first, last:
                    yield ours[first:last]
                case "b", first, last:
                    yield theirs[first:last]
                case _, was, until, first, last, other, end:
                    stood = () if was is None else base[was:until]
                    mine, yours = ours[first:last], theirs[other:end]
                    both = _beside(stood, mine, yours) or _beside(stood, yours, mine) if beside else None
                    yield both or Conflict(file=path, line=above + first + 1, base=stood, ours=mine, theirs=yours)


def _beside(base: Lines, addition: Lines, change: Lines) -> Lines | None:
    """Return ``addition`` with ``change`` where it has ``base``; None if it does not hold that as it was."""
    for index in range(len(addition) - len(base) + 1) if base else ():
        if addition[index : index + len(base)] == base:
            return (*addition[:index], *change, *addition[index + len(base) :])
    return None


def _joined(pieces: Sequence[Piece], choices: Iterator[Choice]) -> bytes | None:
    lines: list[str] = []
    for piece in pieces:
        text = piece.text(next(choices)) if isinstance(piece, Conflict) else piece
        if text is None:
            return None
        if isinstance(piece, Conflict) and piece.whole:
            return "".join(text).encode("latin-1")
        if lines and text and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines.extend(text)
    return "".join(lines).encode()


def _ended(lines: Lines) -> Lines:
    return (*lines[:-1], lines[-1] if lines[-1].endswith("\n") else f"{lines[-1]}\n") if lines else ()


def _keeps(ours: Skill, result: Skill) -> bool:
    """Say whether ``result`` keeps what people own of ``ours``, and has no region twice or unclosed."""
    before, after = _owned(ours), _owned(result)
    for owner in (Owner.FRONTMATTER, Owner.KEEP):
        if before[owner] != after[owner]:
            return False
    return all(
        len(after[owner]) <= max(1, len(before[owner])) and all(text.rstrip().endswith("-->") for text in after[owner])
        for owner in (Owner.SLOW, Owner.APPENDIX)
    )


def _owned(skill: Skill) -> dict[Owner, list[str]]:
    texts: dict[Owner, list[str]] = {owner: [] for owner in Owner}
    text = skill.document
    for block in blocks(text):
        texts[block.owner].append(text[block.start : block.end])
    return texts
