"""Text of models made fit for one line, one title, plain paragraphs; cleaning twice is cleaning once."""

from __future__ import annotations

import re

from skillgit.domain.untrusted.text import clean

TITLE_LENGTH = 60


def clean_line(text: str) -> str:
    """Return ``text`` on one line without surplus white space and what cleaning removes."""
    if _is_clean(text):
        return text
    return " ".join(clean(text).split())


def clean_title(text: str) -> str:
    """Return ``text`` as a commit title: one line of at most 60 characters, cut at a word, without a full stop."""
    line = clean_line(text).rstrip(" .;:,")
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1].rsplit(" ", 1)[0].rstrip(" .;:,")
    return f"{cut or line[: TITLE_LENGTH - 1]}…"


def clean_paragraphs(text: str) -> str:
    """Return ``text`` as paragraphs of one clean line each, parted by single blank lines."""
    if _is_clean(text):
        return text
    paragraphs = (clean_line(paragraph) for paragraph in re.split(r"\n\s*\n", text))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _is_clean(text: str) -> bool:
    """Say whether ``text`` is one clean line of ASCII, which most are; others may be clean as well."""
    ends = text[:1] + text[-1:]
    return text.isascii() and text.isprintable() and "  " not in text and " " not in ends
