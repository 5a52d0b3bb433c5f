"""Owns patterns of paths, by which files are collected and found: ``*``, ``?``, ``[abc]``, and ``**`` over folders."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]/]+\]|.", re.DOTALL)
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def expression(pattern: str) -> str:
    """Return the regular expression of the whole paths that ``pattern`` means; ``[abc]`` is one of these characters."""
    return "(?s:" + "".join(_meaning(token) for token in _TOKEN.findall(pattern)) + ")"


def _meaning(token: str) -> str:
    if token in _MEANING:
        return _MEANING[token]
    if token.startswith("[") and len(token) > 1:
        inner = token[1:-1]
        negated = inner.startswith("!") and len(inner) > 1
        # A range is written as in a regular expression; everything else is taken literally.
        chosen = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", inner[1:] if negated else inner)
        candidate = f"[{'^/' if negated else ''}{chosen}]"
        return candidate if _compiles(candidate) else re.escape(token)
    return re.escape(token)


def _compiles(candidate: str) -> bool:
    try:
        re.compile(candidate)
    except re.error:
        return False
    return True
