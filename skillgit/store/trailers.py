"""The trailer block of a commit message: its grammar, written and parsed.

The block is the message's last paragraph. Each line is ``Skillgit-<Key>: <value>`` and a value is
``[word] *( SP key "=" token )``. A token is made of ``A-Za-z0-9._:/+-``; any other character is percent-encoded as in a
URL, so that a file name with a space survives. Empty tokens are left out.

git's own parsers are not used for reading: they lose repeated keys, or stop at a line of hyphens in the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from skillgit.errors import FormatVersionError, TrailerError

FORMAT = 1
PREFIX = "Skillgit-"
VALUE_LIMIT = 640
BLOCK_LIMIT = 8192

_SAFE = "._:/+-"
_NAME = re.compile(r"[A-Za-z0-9-]+")
_LINE = re.compile(r"(?P<name>[A-Za-z0-9-]+): ?(?P<value>.*)")
_OURS = re.compile(rf"^{PREFIX}[a-z-]+:", re.IGNORECASE | re.MULTILINE)
INTEGER = re.compile(r"-?[0-9]{1,18}")
"""A whole number, of as many digits as fit into what a database calls an integer."""
TOKEN = re.compile(r"[A-Za-z0-9._:/+%-]+")
"""A token as it is in a value."""
_VALUE = re.compile(r"(?!=|.* =)[A-Za-z0-9._:/+%= -]+")
_PLAIN = re.compile(r"[A-Za-z0-9._:/+-]*")


def format_token(value: str | float) -> str:
    """Return ``value`` as a token: floats in their shortest round-trip form, text percent-encoded where needed."""
    if not isinstance(value, str):
        return repr(value)
    if _PLAIN.fullmatch(value):
        return value
    # urllib always takes the tilde for safe.
    return quote(value, safe=_SAFE, errors="replace").replace("~", "%7E")


def parse_value(text: str) -> dict[str, str]:
    """Return the tokens of a value by key; a word at its beginning has the empty key."""
    tokens = text.split(" ")
    if "=" not in tokens[0]:
        tokens[0] = f"={tokens[0]}"
    try:
        values: dict[str, str] = dict([token.split("=") for token in tokens])
    except ValueError:
        values = {}
    if len(values) < len(tokens) or "" in values.values() or _VALUE.fullmatch(text) is None:
        raise TrailerError(f"'{text[:60]}' is not a trailer value", hint="skillgit fsck")
    return values


def format_block(trailers: Iterable[tuple[str, str]]) -> str:
    """Return the block with ``trailers``, keys without their prefix; trailers without a value are left out."""
    entries = [(key, value) for key, value in (("Format", str(FORMAT)), *trailers) if value]
    for key, value in entries:
        if len(value) > VALUE_LIMIT:
            raise TrailerError(
                f"the trailer {PREFIX}{key} would have {len(value)} characters: '{value[:60]}…'",
                hint=f"shorten file and model names; a value has {VALUE_LIMIT} characters at most",
            )
    block = "\n".join(f"{PREFIX}{key}: {value}" for key, value in entries)
    if len(block) > BLOCK_LIMIT:
        raise TrailerError(
            f"the trailers of an event would take {len(block)} bytes of {BLOCK_LIMIT}",
            hint="lower optimizer.learning_rate, so that a step applies fewer edits",
        )
    return block


def has_trailers(message: str) -> bool:
    """Say whether any line of ``message`` is a trailer of skillgit's, in its place or not."""
    # the usual case needs no pattern
    return f"\n{PREFIX}Format: " in message or _OURS.search(message) is not None


def last_paragraph(message: str) -> str:
    """Return the last paragraph of ``message``, which is the trailer block."""
    return message.rstrip("\n").rpartition("\n\n")[2]


@dataclass(frozen=True, slots=True)
class TrailerBlock:
    """A parsed trailer block: key without prefix to values, in order; foreign trailers are left out."""

    trailers: Mapping[str, list[str]]

    def one(self, key: str) -> str:
        """Return the value of a trailer that may occur once; empty if it does not occur."""
        values = self.trailers.get(key)
        if values is None:
            return ""
        if len(values) > 1:
            raise TrailerError(f"the commit has {len(values)} trailers {PREFIX}{key}", hint="skillgit fsck")
        return values[0]

    def token(self, key: str) -> str:
        text = self.one(key)
        return unquote(text) if "%" in text else text

    def integer(self, key: str) -> int:
        text = self.one(key)
        if INTEGER.fullmatch(text) is None:
            raise TrailerError(f"{PREFIX}{key} is {text!r}, not an integer", hint="skillgit fsck")
        return int(text)

    def all(self, key: str) -> list[str]:
        return self.trailers.get(key, [])


def parse_block(message: str) -> TrailerBlock:
    """Return the trailer block of ``message``; a TrailerError if there is none, or it is broken."""
    block = last_paragraph(message)
    if not block.startswith(f"{PREFIX}Format: "):
        raise TrailerError("the commit has no skillgit trailers", hint="skillgit log shows the commits that have")
    fields: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(": ")
        key = _key(name)
        if key is None:
            match = _LINE.fullmatch(line)  # perhaps without a space after its colon
            if match is None:
                raise TrailerError(f"'{line[:60]}' breaks the trailer block", hint="skillgit fsck")
            key, value = _key(match["name"]) or "", match["value"]
        if key in fields:
            fields[key].append(value)
        elif key:
            fields[key] = [value]
    if fields["Format"] != [str(FORMAT)]:
        raise FormatVersionError(
            f"the commit has format {', '.join(fields['Format'])}, and this skillgit reads format {FORMAT}",
            hint="install a newer skillgit",
        )
    return TrailerBlock(fields)


@lru_cache(maxsize=1 << 8)
def _key(name: str) -> str | None:
    """Return the trailer's name without prefix: empty for a trailer of others, None if it is not a name."""
    if _NAME.fullmatch(name) is None:
        return None
    return name[len(PREFIX) :] if name.startswith(PREFIX) else ""
