"""Owns what a secret looks like, and takes secrets out of texts before they are recorded.

Only shapes that credentials are known by are replaced: a run must not lose words of an answer because they are long.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from skillgit.plugin.backend import Reply

MASK = "[redacted]"

# The shapes stay inside a JSON string: none of them reaches over a quote, so that redacted JSON is still JSON.
_PRIVATE_KEY = r'-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^"]*?-----END [A-Z ]{0,20}PRIVATE KEY-----'
_TOKENS = (
    r"sk-(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Za-z0-9]{16})[A-Za-z0-9_-]{20,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
    r"gh[pousr]_[A-Za-z0-9]{36,}",
    r"github_pat_[A-Za-z0-9_]{40,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{20,}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"hf_[A-Za-z0-9]{30,}",
    r"npm_[A-Za-z0-9]{36}",
    r"[sr]k_live_[A-Za-z0-9]{20,}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
)
# A token begins where no word goes on; the n of an escaped line break in a JSON string is no word.
_BEGIN = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt]))"
_SECRET = re.compile(_PRIVATE_KEY + "|" + _BEGIN + r"(?:" + "|".join(_TOKENS) + ")")
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?=[A-Z._~+/-]*[0-9])[A-Z0-9._~+/-]{20,}=*")
_PASSWORD_IN_URL = re.compile(r"\b([a-z][a-z0-9+.-]{1,15}://[^\s/:@\"']{1,64}:)[^\s/@\"'\[\\]{1,200}(?=@)")


def redact(text: str) -> str:
    """Return ``text`` with everything shaped like a credential replaced by a mask.

    Args:
        text: Any text; JSON stays JSON.
    """
    text = _SECRET.sub(MASK, text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    return _PASSWORD_IN_URL.sub(rf"\1{MASK}", text)


def redact_json(value: object) -> object:
    """Return a copy of a JSON value with its strings redacted; keys stay."""
    if isinstance(value, str):
        return redact(storable(value))
    if isinstance(value, dict):
        return {key: redact_json(part) for key, part in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [redact_json(part) for part in cast("list[object]", value)]
    return value


def redact_reply(reply: Reply) -> Reply:
    """Return ``reply`` as it may be recorded."""
    calls = tuple(replace(call, arguments=redact(storable(call.arguments))) for call in reply.tool_calls)
    return replace(reply, text=redact(storable(reply.text)), tool_calls=calls)


def storable(text: str) -> str:
    """Return ``text`` with lone surrogates, which no encoding can hold, replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
