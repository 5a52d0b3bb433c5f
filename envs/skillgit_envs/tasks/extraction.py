"""How the result is taken out of a reply: all of it, the answer in tags, the last line, JSON, or a block of code."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from skillgit_envs.answer_tag import extract as in_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FENCE = re.compile(r"^(?P<ticks>`{3,})[^\n`]*\n(?P<body>.*?)^(?P=ticks)`*[ \t]*$", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"[{\[]")


def last_line(reply: str) -> str:
    """Return the last line that is not blank."""
    return next((line.strip() for line in reversed(reply.splitlines()) if line.strip()), "")


def json_text(reply: str) -> str:
    """Return the last value of JSON: a block of code that is one, else an object or array; else the whole reply."""
    blocks = [block for block in _blocks(reply) if _is_json(block)]
    if blocks:
        return blocks[-1]
    value, position, decoder = "", 0, json.JSONDecoder()
    while (match := _OPENING.search(reply, position)) is not None:
        try:
            _, position = decoder.raw_decode(reply, match.start())
            value = reply[match.start() : position]
        except (ValueError, RecursionError):
            position = match.end()
    return value or reply.strip()


def code_block(reply: str) -> str:
    """Return the last block of code between fences, without them; the whole reply if there is none."""
    return (_blocks(reply) or [reply])[-1].strip("\n")


def _blocks(reply: str) -> list[str]:
    return [match.group("body") for match in _FENCE.finditer(reply)]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


EXTRACTORS: Mapping[str, Callable[[str], str]] = {
    "whole": str.strip,
    "tag": in_tags,
    "last_line": last_line,
    "json": json_text,
    "code": code_block,
}
"""Name, as ``env.extract`` has it, to what takes the result out of a reply."""
