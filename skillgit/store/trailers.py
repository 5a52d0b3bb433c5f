"""The trailer block of a commit message: its grammar, written and parsed.

The block is the message's last paragraph. Each line is ``Skillgit-<Key>: <value>`` and a value is
``[word] *( SP key "=" token )``. A token is made of ``A-Za-z0-9._:/+-``; any other character is percent-encoded as in a
URL, so that a file name with a space survives. Empty tokens are left out.

git's own parsers are not used for reading: they lose repeated keys, or stop at a line of hyphens in the body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite, nan
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from skillgit.errors import FormatVersionError, TrailerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT = 1
PREFIX = "Skillgit-"
VALUE_LIMIT = 320
BLOCK_LIMIT = 8192

_SAFE = "._:/+-"
_NAME = re.compile(r"[A-Za-z0-9-]+")
_LINE = re.compile(r"(?P<name>[A-Za-z0-9-]+): ?(?P<value>.*)")
_DIGITS = 18
"""Digits of a whole number at most, so that it fits into what a database calls an integer."""
_INTEGER = re.compile(rf"-?\d{{1,{_DIGITS}}}", re.ASCII)
_OURS = re.compile(rf"^{PREFIX}[a-z-]+:", re.IGNORECASE | re.MULTILINE)
_CHARACTERS = r"[A-Za-z0-9._:/+%-]+"
_VALUE = re.compile(rf"(?:(?P<word>[^ =]*)|[^ =]+={_CHARACTERS})(?: [^ =]+={_CHARACTERS})*")
_FIELD = re.compile(rf"([^ =]+)=({_CHARACTERS})")
_USUAL = re.compile(r"[A-Za-z0-9._:/+ =-]+")
_PLAIN = re.compile(r"[A-Za-z0-9._:/+-]*")
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Value:
    """A trailer's value: an optional word, then named tokens."""

    word: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """Return the field ``key``, empty if it is absent."""
        return self.fields.get(key, "")

    def integer(self, key: str) -> int:
        """Return the field ``key`` as an integer.

        Raises:
            TrailerError: It is absent or not an integer.
        """
        text = self.fields.get(key, "")
        # digits alone, by far the most usual, need no pattern
        return int(text) if text.isdigit() and text.isascii() and len(text) <= _DIGITS else as_integer(text, key)

    def count(self, key: str) -> int:
        """Return the field ``key`` as an integer; 0 if it is absent."""
        text = self.fields.get(key)
        return as_integer(text, key) if text else 0

    def number(self, key: str) -> float:
        """Return the field ``key`` as a float.

        Raises:
            TrailerError: It is absent or not a finite number.
        """
        try:
            number = float(self.fields.get(key, ""))
        except ValueError:
            number = nan
        if not isfinite(number):
            raise TrailerError(f"'{key}={self.text(key)}' is not a number", hint="skillgit fsck")
        return number


def as_integer(text: str, key: str) -> int:
    """Return ``text`` as an integer; ``key`` names it in the error.

    Raises:
        TrailerError: It is not one, or has more than eighteen digits.
    """
    if _INTEGER.fullmatch(text) is None:
        raise TrailerError(f"{key} is {text!r}, not an integer", hint="skillgit fsck")
    return int(text)


def format_token(value: str | float) -> str:
    """Return ``value`` as a token: floats in their shortest round-trip form, text percent-encoded where needed."""
    if not isinstance(value, str):
        return repr(value)
    if _PLAIN.fullmatch(value):
        return value
    # urllib takes the tilde for safe, whatever it is told.
    return quote(value, safe=_SAFE, errors="replace").replace("~", "%7E")


def format_value(word: str = "", /, **fields: str | float) -> str:
    """Return a value; empty fields are left out."""
    tokens = [(key, format_token(value)) for key, value in fields.items()]
    return " ".join(filter(None, (word, *(f"{key}={token}" for key, token in tokens if token))))


def parse_value(text: str) -> Value:
    """Return ``text`` as a value.

    Raises:
        TrailerError: It does not follow the grammar.
    """
    if _USUAL.fullmatch(text):
        word, tokens = "", text.split(" ")
        if "=" not in tokens[0]:
            word, *tokens = tokens
        pairs = [token.split("=") for token in tokens]
        if all([len(pair) == _PAIR and pair[0] and pair[1] for pair in pairs]):  # noqa: C419 - a list is faster
            found: dict[str, str] = dict(pairs)
            if len(found) == len(pairs):
                return Value(word, found)
    return _parse_unusual(text)


def _parse_unusual(text: str) -> Value:
    """Return ``text``, which is encoded or breaks the grammar, as a value."""
    match = _VALUE.fullmatch(text)
    fields: dict[str, str] = dict(_FIELD.findall(text)) if match else {}
    if match is None or len(fields) != text.count("="):
        raise TrailerError(f"'{text}' is not a trailer value", hint="skillgit fsck")
    word = match["word"] or ""
    if "%" in text:
        word, fields = unquote(word), {key: unquote(token) for key, token in fields.items()}
    return Value(word, fields)


def format_block(trailers: Iterable[tuple[str, str]]) -> str:
    """Return the block with ``trailers``, keys without their prefix; trailers without a value are left out.

    Raises:
        TrailerError: A value or the whole is longer than the format allows.
    """
    kept = [(key, value) for key, value in (("Format", str(FORMAT)), *trailers) if value]
    for key, value in kept:
        if len(value) > VALUE_LIMIT:
            raise TrailerError(
                f"the trailer {PREFIX}{key} would have {len(value)} characters: '{value[:60]}…'",
                hint=f"shorten file and model names; a value has {VALUE_LIMIT} characters at most",
            )
    block = "\n".join(f"{PREFIX}{key}: {value}" for key, value in kept)
    if len(block) > BLOCK_LIMIT:
        raise TrailerError(
            f"the trailers of an event would take {len(block)} bytes of {BLOCK_LIMIT}",
            hint="lower optimizer.learning_rate, so that a step applies fewer edits",
        )
    return block


def has_trailers(message: str) -> bool:
    """Say whether any line of ``message`` is a trailer of skillgit's, be it in its place or not."""
    # the usual case needs no pattern
    return f"\n{PREFIX}Format: " in message or _OURS.search(message) is not None


def last_paragraph(message: str) -> str:
    """Return the last paragraph of ``message``, where a trailer block stands."""
    return message.rstrip("\n").rpartition("\n\n")[2]


@dataclass(frozen=True, slots=True)
class Block:
    """A parsed trailer block: key without prefix to values, in order; foreign trailers are left out."""

    trailers: Mapping[str, list[str]]

    def one(self, key: str) -> str:
        """Return the value of a trailer that may stand once; empty if it does not stand.

        Raises:
            TrailerError: It stands more than once.
        """
        values = self.trailers.get(key)
        if values is None:
            return ""
        if len(values) > 1:
            raise TrailerError(f"the commit has {len(values)} trailers {PREFIX}{key}", hint="skillgit fsck")
        return values[0]

    def token(self, key: str) -> str:
        """Return the value of a trailer that is a single token."""
        text = self.one(key)
        return unquote(text) if "%" in text else text

    def integer(self, key: str) -> int:
        """Return the value of a trailer that is an integer."""
        return as_integer(self.one(key), f"{PREFIX}{key}")

    def value(self, key: str) -> Value | None:
        """Return the value of a trailer that may stand once; ``None`` if it does not stand."""
        text = self.one(key)
        return parse_value(text) if text else None

    def needed(self, key: str) -> str:
        """Return the text of a trailer that stands once.

        Raises:
            TrailerError: It does not.
        """
        text = self.one(key)
        if not text:
            raise TrailerError(f"the commit has no trailer {PREFIX}{key}", hint="skillgit fsck")
        return text

    def required(self, key: str) -> Value:
        """Return the value of a trailer that stands once.

        Raises:
            TrailerError: It does not.
        """
        return parse_value(self.needed(key))

    def all(self, key: str) -> list[str]:
        """Return the texts of a trailer that may stand many times."""
        return self.trailers.get(key, [])

    def values(self, key: str) -> tuple[Value, ...]:
        """Return the values of a trailer that may stand many times."""
        return tuple(map(parse_value, self.all(key)))


def parse_block(message: str) -> Block:
    """Return the trailer block of ``message``.

    Raises:
        TrailerError: There is no block, or it is broken.
        FormatVersionError: A newer skillgit wrote it.
    """
    block = last_paragraph(message)
    if not block.startswith(f"{PREFIX}Format: "):
        raise TrailerError("the commit has no skillgit trailers", hint="skillgit log shows the commits that have")
    found: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(": ")
        key = _key(name)
        if key is None:
            key, value = _unusual_line(line)
        if key in found:
            found[key].append(value)
        elif key:
            found[key] = [value]
    if found["Format"] != [str(FORMAT)]:
        raise FormatVersionError(
            f"the commit has format {', '.join(found['Format'])}, and this skillgit reads format {FORMAT}",
            hint="install a newer skillgit",
        )
    return Block(found)


@lru_cache(maxsize=1 << 8)
def _key(name: str) -> str | None:
    """Return the trailer's name without prefix: empty for a trailer of others, None if it is no name."""
    if _NAME.fullmatch(name) is None:
        return None
    return name[len(PREFIX) :] if name.startswith(PREFIX) else ""


def _unusual_line(line: str) -> tuple[str, str]:
    """Return name and value of a trailer without a space after its colon."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise TrailerError(f"'{line[:60]}' breaks the trailer block", hint="skillgit fsck")
    return _key(match["name"]) or "", match["value"]
