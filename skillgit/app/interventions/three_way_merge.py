"""Merging two skills that come from one: what both changed in different ways is a conflict, and a choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from merge3 import Merge3

from skillgit.domain.protected_regions import Owner, blocks, frontmatter
from skillgit.domain.skill import DOCUMENT, Skill

Lines = tuple[str, ...]


class Choice(StrEnum):
    """Whose text is taken where both sides changed the same lines."""

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
                ours = self.ours or ()  # its last line gets an end, for more follows
                lines = (*ours[:-1], ours[-1].removesuffix("\n") + "\n") if ours else ()
                return (*lines, *(self.theirs or ()))
            case Choice.NEITHER:
                return self.base

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices that differ, ours first."""
        by_lines: dict[Lines | None, Choice] = {}
        for choice in (Choice.OURS, Choice.THEIRS) if self.whole else tuple(Choice):
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
        files: dict[str, bytes] = {}
        for path, pieces in self.files.items():
            content = pieces if isinstance(pieces, bytes) else _joined(pieces, remaining)
            if content is not None:
                files[path] = content
        if DOCUMENT not in files:
            return None
        files[DOCUMENT] = frontmatter(self.ours.document).encode() + files[DOCUMENT]
        skill = Skill(self.ours.name, files, self.executable & files.keys())
        before, after = _owned(self.ours), _owned(skill)
        is_kept = all(before[owner] == after[owner] for owner in (Owner.FRONTMATTER, Owner.KEEP))
        is_whole = all(
            len(after[owner]) <= max(1, len(before[owner]))
            and all(text.rstrip().endswith("-->") for text in after[owner])
            for owner in (Owner.SLOW, Owner.APPENDIX)  # none twice, and none without its end
        )
        return skill if is_kept and is_whole else None


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


def _owned(skill: Skill) -> dict[Owner, list[str]]:
    texts: dict[Owner, list[str]] = {owner: [] for owner in Owner}
    for block in blocks(text := skill.document):
        texts[block.owner].append(text[block.start : block.end])
    return texts


def merge(base: Skill | None, ours: Skill, theirs: Skill, *, beside: bool = False) -> Merge:
    """Merge ``theirs`` into ``ours``; ``base`` is what both come from, absent if there is no such text.

    The frontmatter belongs to people and is always ours. With ``beside`` it is not a conflict that one side only added
    lines right before or after those that the other changed.
    """
    contents = [
        {} if skill is None else {**skill.files, DOCUMENT: _body(skill).encode()} for skill in (base, ours, theirs)
    ]
    files: dict[str, bytes | tuple[Piece, ...]] = {}
    for path in sorted({*contents[1], *contents[2]}):
        was, mine, yours = (content.get(path) for content in contents)
        if yours in (mine, was) or mine == was:
            whole = yours if mine == was else mine
            if whole is not None:
                files[path] = whole
            continue
        texts = [_text(content) for content in (was, mine, yours)]
        if mine is None or yours is None or None in texts:
            lines = [None if content is None else (content.decode("latin-1"),) for content in (was, mine, yours)]
            files[path] = (
                Conflict(file=path, line=1, base=lines[0] or (), ours=lines[1], theirs=lines[2], whole=True),
            )
            continue
        above = frontmatter(ours.document).count("\n") if path == DOCUMENT else 0
        sides = tuple(tuple((text or "").splitlines(keepends=True)) for text in texts)
        files[path] = tuple(_pieces(path, above, *sides, beside=beside))
    bits = [frozenset[str]() if skill is None else skill.executable for skill in (base, ours, theirs)]
    executable = (bits[1] & bits[2]) | (bits[1] - bits[0]) | (bits[2] - bits[0])
    return Merge(ours=ours, theirs=theirs, files=files, executable=executable)


def _body(skill: Skill) -> str:
    return skill.document.removeprefix(frontmatter(skill.document))


def _text(content: bytes | None) -> str | None:
    """Return ``content`` as a text, an empty one for no file; None if it is not one."""
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _pieces(path: str, above: int, base: Lines, ours: Lines, theirs: Lines, *, beside: bool) -> Iterator[Piece]:
    work = Merge3(base, ours, theirs)
    for region in work.merge_regions():
        # Where nothing stood before, lines that both added are agreed on, and no conflict.
        is_addition = region[0] == "conflict" and region[1] == region[2]
        for part in work.reprocess_merge_regions(iter([region])) if is_addition else (region,):
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
