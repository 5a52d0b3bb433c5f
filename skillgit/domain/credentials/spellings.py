r"""Other ways to write a text: escapes, wide letters, strings in pieces, broken lines, base64 and hex.

A respelling keeps, for each of its characters, which characters of the original it comes from, so that what is found
in it can be masked where it was written.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

# Each pattern begins with a literal, by which Python's engine leaps over the rest of a text.
_ESCAPE = re.compile(
    r"\\\\{0,6}u\{(?P<braced>[0-9a-fA-F]{1,6})\}|\\\\{0,6}u00(?P<four>[0-7][0-9a-fA-F])|\\\\{0,6}x(?P<two>[0-7][0-9a-fA-F])"
    r"|\\(?P<octal>[01][0-7]{2})|%(?P<percent>[2-7][0-9a-fA-F])|&#x(?P<entity>[0-9a-fA-F]{2});|&#(?P<number>[0-9]{2,3});"
    r"|\\(?P<plain>[_.+-])"
)
_HEXADECIMAL = ("braced", "four", "two", "percent", "entity")
_WIDE = re.compile(
    r"[\u00aa-\u00ba\u2070-\u209f\u2100-\u214f\u2460-\u24ff\u3000\uff01-\uffee\U0001d400-\U0001d7ff]"
    r"|[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]"
)
_SIGN = r"[A-Za-z0-9_/.=-]"
_PIECES = re.compile(
    rf"[\"'`\\](?<={_SIGN}.)[\"'`\\]{{0,3}}\s{{0,40}}(?:[+.&]|\.\.|<>)?\s{{0,40}}\\{{0,3}}[\"'`](?={_SIGN})"
    rf"|[\\`^](?<={_SIGN}.)\r?\n[ \t]{{0,40}}(?={_SIGN})"
)
_REST = r"[ \t]{0,8}(?=[A-Za-z_-]{0,80}[0-9])(?=[A-Za-z0-9_-]{6})"
_BROKEN_LINE = re.compile(rf"\n(?<=[A-Za-z0-9_-]{{8}}\n){_REST}|\r\n(?<=[A-Za-z0-9_-]{{8}}\r\n){_REST}")
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_CODES = re.compile(r"(?<![0-9])(?:(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6])\s{0,2},\s{0,4}){15,}[0-9]{2,3}(?![0-9])")
_LETTERS = re.compile(r"[A-Za-z0-9+/_-]+={0,6}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE32 = re.compile(r"[A-Z2-7]+=*")
_MOST_DECODED = 20_000  # characters of a word; what is longer is a picture or a file


@dataclass(frozen=True, slots=True)
class Respelling:
    """A text written in another way; part ``n`` of it begins at ``starts[n]`` and comes from ``origins[n]``."""

    text: str
    starts: list[int]
    origins: list[tuple[int, int]]
    is_copied: list[bool]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the original the characters from ``start`` to ``end`` come from."""
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, end - 1) - 1
        begin = self.origins[first][0] + (start - self.starts[first] if self.is_copied[first] else 0)
        if self.is_copied[last]:
            return begin, self.origins[last][0] + end - self.starts[last]
        return begin, self.origins[last][1]


def respellings(text: str) -> Iterator[Respelling]:
    """Yield ``text`` in plain spelling, and with broken lines joined, as far as that changes it."""
    plain = plain_spelling(text)
    if plain is not None:
        yield plain
    source = plain.text if plain else text
    if "\n" in source and (broken := _respelled(source, _BROKEN_LINE, lambda _: "")) is not None:
        yield _joined(plain, broken) or broken


def plain_spelling(text: str) -> Respelling | None:
    """Return ``text`` without escapes, wide letters and joints of strings; None if it has none."""
    plain = _respelled(text, _ESCAPE, _unescaped) if "\\" in text or "%" in text or "&#" in text else None
    if not text.isascii():
        plain = _joined(plain, _respelled(plain.text if plain else text, _WIDE, _narrowed))
    source = plain.text if plain else text
    if '"' in source or "'" in source or "\\\n" in source or "`" in source:
        plain = _joined(plain, _respelled(source, _PIECES, lambda _: ""))
    return plain


def decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and meaning of every word that is base64, base32 or hex of a text, or a row of codes of one."""
    for match in _ENCODED.finditer(text):
        if len(match[0]) <= _MOST_DECODED:
            for meaning in _meanings(match[0]):
                yield match.start(), match.end(), meaning
    if "," in text:
        for match in _CODES.finditer(text):
            yield match.start(), match.end(), "".join(chr(int(code)) for code in match[0].split(","))


def meaning_of(word: str) -> str:
    """Return the text that a word in base64, base32 or hex stands for; empty if it stands for none."""
    return next(_meanings(word), "")


def _meanings(word: str) -> Iterator[str]:
    candidates = list[bytes]()
    if _LETTERS.fullmatch(word) is None:
        return
    if len(word) % 2 == 0 and _HEX.fullmatch(word):
        candidates.append(bytes.fromhex(word))
    else:
        body = word.rstrip("=").replace("-", "+").replace("_", "/")
        with suppress(binascii.Error):
            candidates.append(binascii.a2b_base64(body + "=" * (-len(body) % 4)))
        if _BASE32.fullmatch(word):
            body = word.rstrip("=")
            with suppress(binascii.Error):
                candidates.append(base64.b32decode(body + "=" * (-len(body) % 8)))
    for content in candidates:
        if content.isascii() and (meaning := content.decode()).replace("\n", "").replace("\r", "").isprintable():
            yield meaning


def _respelled(text: str, pattern: re.Pattern[str], meaning: Callable[[re.Match[str]], str]) -> Respelling | None:
    parts, starts, origins, is_copied, position, at = (
        list[str](),
        list[int](),
        list[tuple[int, int]](),
        list[bool](),
        0,
        0,
    )

    def add(part: str, start: int, end: int, *, is_same: bool) -> None:
        nonlocal position
        if part:
            parts.append(part)
            starts.append(position)
            origins.append((start, end))
            is_copied.append(is_same)
            position += len(part)

    for match in pattern.finditer(text):
        part = meaning(match)
        if part != match[0]:
            add(text[at : match.start()], at, match.start(), is_same=True)
            add(part, match.start(), match.end(), is_same=False)
            at = match.end()
    if at == 0 and not parts:
        return None
    add(text[at:], at, len(text), is_same=True)
    return Respelling("".join(parts), starts, origins, is_copied)


def _joined(inner: Respelling | None, outer: Respelling | None) -> Respelling | None:
    """Return ``outer``, which was made of the text of ``inner``, with its origins in the text before both."""
    if inner is None or outer is None:
        return outer or inner
    pairs = zip(outer.starts, outer.origins, outer.is_copied, strict=True)
    starts, origins, is_copied = list[int](), list[tuple[int, int]](), list[bool]()
    for start, (begin, end), is_same in pairs:
        if not is_same:
            starts.append(start)
            origins.append(inner.origin(begin, end))
            is_copied.append(False)
            continue
        at = begin
        part = bisect_right(inner.starts, begin) - 1
        while at < end:
            stop = min(end, inner.starts[part + 1] if part + 1 < len(inner.starts) else end)
            starts.append(start + at - begin)
            origins.append(inner.origin(at, stop))
            is_copied.append(inner.is_copied[part])
            at, part = stop, part + 1
    return Respelling(outer.text, starts, origins, is_copied)


def _unescaped(match: re.Match[str]) -> str:
    if match["plain"]:
        return match["plain"]
    digits = next((match[name] for name in _HEXADECIMAL if match[name]), "")
    code = int(digits, 16) if digits else int(match["octal"], 8) if match["octal"] else int(match["number"])
    return chr(code) if 0x20 <= code < 0x7F else match[0]  # noqa: PLR2004 - what ASCII prints


def _narrowed(match: re.Match[str]) -> str:
    sign = match[0]
    if unicodedata.category(sign) in ("Cf", "Mn"):
        return ""
    return unicodedata.normalize("NFKC", sign)
