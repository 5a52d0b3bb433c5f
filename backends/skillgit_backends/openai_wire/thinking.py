"""Owns how thoughts are told from the answer: they are counted, and they are no part of it."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


def split_thought(text: str) -> tuple[str, str]:
    """Return the thought that ``text`` begins with, and the rest.

    Some servers put the opening mark into the prompt, so that only the closing one comes back; a thought that was cut
    off has no closing one. Marks further on belong to the answer.
    """
    begun = text.lstrip()
    if begun.startswith(_OPEN):
        thought, closed, rest = begun[len(_OPEN) :].partition(_CLOSE)
        return thought, rest.lstrip() if closed else ""
    thought, closed, rest = text.partition(_CLOSE)
    if closed and _OPEN not in thought:
        return thought, rest.lstrip()
    return "", text
