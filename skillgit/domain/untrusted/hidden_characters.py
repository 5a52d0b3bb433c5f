"""Characters in the files of a skill that no reader sees, or that act on whatever shows the file."""

from __future__ import annotations

from dataclasses import dataclass

from skillgit.domain.trainable_files import is_prose
from skillgit.domain.untrusted.model_text import hidden_in, name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """The hidden characters of a file."""

    line: int  # the line of the first one, counted from 1
    sentence: str  # how many there are, and which comes first; without a full stop


def hidden_characters(path: str, content: bytes) -> Hidden | None:
    """Return what is hidden in the file at ``path``; None if nothing is, or it is no text."""
    if b"\0" in content and not is_prose(path):
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    characters = hidden_in(text)
    if not characters:
        return None
    offset, first = characters[0]
    line = text.count("\n", 0, offset) + 1
    count = "a hidden character" if len(characters) == 1 else f"{len(characters)} hidden characters"
    comes = "" if len(characters) == 1 else ", the first"
    return Hidden(line=line, sentence=f"{path} has {count}{comes} in line {line}: {name_of(first)}")
