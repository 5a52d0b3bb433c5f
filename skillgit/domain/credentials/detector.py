"""The question itself: where in a text does something look like a credential, and how certainly.

What is certain has a form that nothing else has: a vendor's token, a private key, a password in an address. It is taken
out of everything that is recorded. What is likely is a value near a word for secret, or a random word; texts that are
private to begin with, or on their way out, lose it too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from skillgit.domain.credentials.named_values import MASK as MASK  # noqa: PLC0414 - what is asked of this module is masked with it
from skillgit.domain.credentials.named_values import is_placeholder, named_values
from skillgit.domain.credentials.positional_values import positional_values
from skillgit.domain.credentials.random_words import is_random
from skillgit.domain.credentials.spellings import decoded, respellings
from skillgit.domain.credentials.vendor_tokens import BEGINNING, CUT_TOKENS, VENDOR_TOKENS, VendorToken, by_beginning


class Certainty(IntEnum):
    """How certain it is that something is a credential."""

    LIKELY = 1
    CERTAIN = 2


@dataclass(frozen=True, slots=True, order=True)
class FoundCredential:
    """A part of a text that looks like a credential."""

    start: int
    end: int
    kind: str  # the vendor of a token, or what gives it away
    certainty: Certainty


PRIVATE_KEY, NAMED, PLACED, RANDOM = "private key", "named as a secret", "where a secret is expected", "a random word"
CUT = "the beginning of a token"
_HEADER, _ADDRESS, _LABEL = "authorization", "password in an address", "key behind its name"

_KEY_BEGIN = "-----BEGIN "
# The certain forms stay inside a JSON string: none of them reaches over a quote, so that masked JSON is still JSON.
_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----[^\"]{0,20000}?-----END [A-Z0-9"
    r" ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
)
# What a private key has around its lines: quotes, marks of lines and of differences, what joins strings.
_MARKED_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[\s\"'`>+|A-Za-z0-9/=:,.\\-]){0,20000}"
)
_PEM_TAIL = re.compile(
    r"(?:[A-Za-z0-9+/=]{16,80}(?:\\[nr]|[\s\"'>|+]){1,12}){1,99}[\s\"'>"
    r"|+]{0,8}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
)
_BEARER = re.compile(r"(?i)\bbearer\s{1,8}(?=[A-Z._~+/-]{0,200}[0-9])([A-Z0-9._~+/-]{20,}={0,2})")
_BASIC = re.compile(
    r"(?i)\bauthorization\\{0,3}[\"']?\s{0,2}[:=,]\s{0,2}\\{0,3}[\"']?basic\s{1,3}([A-Z0-9+/]{12,}={0,2})"
)
_LABELS = (
    *("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "secret_key", "secret-key", "secretkey"),
    *("client_secret", "clientsecret", "access_token", "accesstoken", "auth_token", "authtoken", "password"),
)
# In a JSON string a quote or a line break has a backslash before it, and in JSON within JSON three.
_QUOTE, _SPACE = r"(?:\\{0,3}[\"'])?", r"(?:\s|\\{1,3}[nrt]){0,3}"
_LABELLED = re.compile(
    rf"(?i)(?:{'|'.join(_LABELS)}){_QUOTE}{_SPACE}[:=]{_SPACE}{_QUOTE}"
    r"((?=[A-Z+/_-]{0,200}[0-9])(?=[0-9+/_-]{0,200}[A-Z])[A-Z0-9+/_-]{20,}={0,2})"
)
_PASSWORD_IN_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s/:@\"']{0,64}:([^\s/@\"'\[\\<>$]{1,200})(?=@)")
_LONG_WORD = re.compile(r"\S{9,}")
"""What a vendor's token is or is a part of: none is shorter, and none has a blank."""
_WORD = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HARMLESS_WORD = re.compile(
    # ids, digests and public keys: hex, UUIDs, numbers, integrity of lock files, ids of calls of models
    r"[0-9a-fA-F_-]+|(?:toolu|msg|call|req|resp|chatcmpl|srvtoolu|run|file|item|rs|fc|ws|thread|asst|ses"
    r"|prt)[_-][A-Za-z0-9_-]+|h1|sha(?:1|256|384|512)-[A-Za-z0-9+/]+={0,2}"
    r"|AAAA[BCE][A-Za-z0-9+/]+={0,3}"
)
_KEYED_HEX = re.compile(
    r"(?i)(?:[a-z]{1,12}[_-])?(?:sk|key|secret|token|access|live|test"
    r"|prod)[_-](?:[a-z]{2,12}-)?(?:[0-9a-f]{24,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_HARMLESS_BEFORE = re.compile(
    r"(?:;base64,|sha(?:1|256|384|512)[-:]|h1:|integrity\W{1,4}|\bssh-[a-z0-9]{3,10} |checksum\W{1,4}|\betag\W{1,4})\Z",
    re.IGNORECASE,
)
_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?!.{0,60}PRIVATE)[A-Z0-9 ]{1,60}-----[\s\S]{0,20000}?-----END [A-Z0-9 ]{1,60}-----"
)
_MOST_DEPTH = 2
_VENDORS, _CUT = by_beginning(VENDOR_TOKENS), by_beginning(CUT_TOKENS)


def find_credentials(text: str, least: Certainty = Certainty.LIKELY) -> list[FoundCredential]:
    """Return what looks like a credential in ``text`` at least so certainly, in order; no two overlap.

    >>> text = "curl -u me:Gr4nite-moss https://example.org"
    >>> [text[found.start : found.end] for found in find_credentials(text)]
    ['Gr4nite-moss']
    """
    return merged(_found(text, least, depth=0))


def is_guess(credential: FoundCredential) -> bool:
    """Say whether nothing but how a word looks speaks for it."""
    return credential.kind in (RANDOM, CUT)


def masked(text: str, least: Certainty = Certainty.LIKELY) -> str:
    """Return ``text`` with a mask in place of every credential."""
    return cut_out(text, find_credentials(text, least))


def cut_out(text: str, credentials: Iterable[FoundCredential]) -> str:
    parts, at = list[str](), 0
    for credential in credentials:
        parts += text[at : credential.start], MASK
        at = credential.end
    return "".join([*parts, text[at:]])


def _found(text: str, least: Certainty, depth: int) -> list[FoundCredential]:
    credentials = [*_shapes(text)]
    for start, end, meaning in decoded(text):
        if depth < _MOST_DEPTH and (inner := _found(meaning, Certainty.CERTAIN, depth + 1)):
            credentials.append(FoundCredential(start, end, inner[0].kind, Certainty.CERTAIN))
    sightings = merged(credentials)
    ends = [sighting.end for sighting in sightings]
    for respelling in respellings(text) if depth == 0 else ():
        for credential in _shapes(respelling.text):
            start, end = respelling.origin(credential.start, credential.end)
            # A word more than a token may follow it on the next line; what is found as it is written is enough.
            before = bisect_left(ends, start + 1)
            if before == len(ends) or sightings[before].start >= end:
                credentials.append(replace(credential, start=start, end=end))
    if least is Certainty.LIKELY:
        credentials += _likely(text)
        for respelling in respellings(text):
            if len(text) - len(respelling.text) > 2 * text.count("\n"):  # more than its lines joined
                for credential in _likely(respelling.text):
                    start, end = respelling.origin(credential.start, credential.end)
                    if text[start:end] != respelling.text[credential.start : credential.end]:
                        credentials.append(replace(credential, start=start, end=end))
    return credentials


def merged(credentials: Iterable[FoundCredential]) -> list[FoundCredential]:
    """Return credentials in order, those that overlap made one, of the kind of the most certain."""
    result: list[FoundCredential] = []
    for credential in sorted(credentials):
        if result and credential.start < result[-1].end:
            last = result[-1]
            surest = max(last, credential, key=lambda span: (span.certainty, span.end - span.start))
            result[-1] = replace(surest, start=last.start, end=max(last.end, credential.end))
        elif credential.end > credential.start:
            result.append(credential)
    return result


def _shapes(text: str) -> Iterator[FoundCredential]:
    """Yield what has the form of a credential."""

    def certain(start: int, end: int, kind: str) -> FoundCredential:
        return FoundCredential(start, end, kind, Certainty.CERTAIN)

    if _KEY_BEGIN in text:
        yield from (certain(*match.span(), PRIVATE_KEY) for match in _PEM.finditer(text))
    for start, end, vendor in _tokens(text, _VENDORS):
        yield certain(start, end, f"{vendor} token" if vendor != "JSON Web Token" else vendor)
    lower = text.lower()
    if "bearer" in lower:
        yield from (certain(*match.span(1), _HEADER) for match in _BEARER.finditer(text))
    if "basic" in lower:
        yield from (certain(*match.span(1), _HEADER) for match in _BASIC.finditer(text))
    if any(label in lower for label in _LABELS):
        yield from (certain(*match.span(1), _LABEL) for match in _LABELLED.finditer(text))
    if "://" in text:
        for match in _PASSWORD_IN_URL.finditer(text):
            if not is_placeholder(match[1]) and "redacted" not in match[1]:
                yield certain(*match.span(1), _ADDRESS)


def _tokens(text: str, table: dict[str, list[VendorToken]]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and vendor of the tokens of a table; few texts have a long word, and fewer one with a mark."""
    words = "\n".join(_LONG_WORD.findall(text))
    if not words:
        return
    for token in (
        each for beginning in sorted({"", *BEGINNING.findall(words)} & table.keys()) for each in table[beginning]
    ):
        if token.mark not in words:
            continue
        at = text.find(token.mark)
        if not token.is_anchored:
            yield from ((*match.span(), token.vendor) for match in token.pattern.finditer(text))
            continue
        while at >= 0:
            match = token.pattern.match(text, at)
            if match:
                yield at, match.end(), token.vendor
            at = text.find(token.mark, match.end() if match else at + len(token.mark))


def _likely(text: str) -> Iterator[FoundCredential]:
    """Yield what is given away by a word near it, by its place, or by being random."""

    def likely(start: int, end: int, kind: str) -> FoundCredential:
        return FoundCredential(start, end, kind, Certainty.LIKELY)

    yield from (likely(start, end, NAMED) for start, end in named_values(text))
    yield from (likely(start, end, PLACED) for start, end in positional_values(text))
    yield from (likely(start, end, CUT) for start, end, _ in _tokens(text, _CUT))
    if _KEY_BEGIN in text:
        yield from (likely(*match.span(), PRIVATE_KEY) for match in _MARKED_PEM.finditer(text))
    if "PRIVATE KEY" in text:
        yield from (likely(*match.span(), PRIVATE_KEY) for match in _PEM_TAIL.finditer(text))
    public = [match.span() for match in _PUBLIC_BLOCK.finditer(text)] if _KEY_BEGIN in text else []
    for start, end in _random_words(text):
        block = bisect_left(public, (start + 1, 0)) - 1
        if block < 0 or start >= public[block][1]:
            yield likely(start, end, RANDOM)


def _random_words(text: str) -> Iterator[tuple[int, int]]:
    for word in _WORD.finditer(text):
        if _HARMLESS_WORD.fullmatch(word[0]) or _HARMLESS_BEFORE.search(text, max(0, word.start() - 12), word.start()):
            continue
        if is_random(word[0]) or _KEYED_HEX.fullmatch(word[0]):
            yield word.span()
            continue
        for piece in re.finditer(r"[A-Za-z0-9]{20,}", word[0]) if len(word[0]) > 24 else ():  # noqa: PLR2004 - with a border
            if not _HARMLESS_WORD.fullmatch(piece[0]) and is_random(piece[0]):
                yield word.start() + piece.start(), word.start() + piece.end()
