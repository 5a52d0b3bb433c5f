"""The final answer in a reply: what is in the last pair of tags, else the last line that is not blank."""

from __future__ import annotations

import json
import re
from functools import cache


def extract(reply: str, tag: str = "answer") -> str:
    """Return the final answer of ``reply``; empty if it says nothing.

    Args:
        tag: The name of the tag, in whichever case.

    >>> extract('It is in the title. <answer>Paris</answer>')
    'Paris'
    """
    answer = in_tag(reply, tag)
    if answer is not None:
        return answer
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def in_tag(reply: str, tag: str = "answer") -> str | None:
    """Return what is in the last pair of tags; None if there is no pair."""
    close = _last(_pattern(f"</{tag}>"), reply, len(reply))
    opening = _last(_pattern(f"<{tag}>"), reply, close.start()) if close else None
    return reply[opening.end() : close.start()].strip() if close and opening else None


def quoted(text: str) -> str:
    """Return ``text`` as feedback quotes it: on one line, between quotation marks, with its letters as they are."""
    return json.dumps(text, ensure_ascii=False)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text), re.IGNORECASE)


def _last(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text, 0, end):  # noqa: B007 - the last match is wanted
        pass
    return match
