"""Owns how JSON from outside is read: within limits that no real reply, event or row reaches.

A document of a few megabytes can hold millions of values, and Python keeps each of them as an object many times larger
than its text. So the text is looked at before it is parsed. An integer of hundreds of digits, which Python may refuse
to convert, is infinite.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

MOST_BYTES = 32 << 20
"""Bytes of a document. A reply of 128,000 tokens takes 4 MiB if every character of it is escaped, and as a stream of
one event for each token 25 MiB."""
MOST_VALUES = 1_000_000
"""Values in a document, which as objects take about 100 MB; a reply of 128,000 tokens cannot hold half as many commas
and brackets."""
MOST_DEPTH = 100
"""Levels of lists and objects inside each other; Python itself gives up at about a thousand, wherever it is then."""
_TOO_DEEP = f"is nested more than {MOST_DEPTH} levels deep"
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_WIDE_FENCE = re.compile(r"```(?:json)?\s*\n(.*)```", re.DOTALL)
_MOST_DIGITS = 300  # characters of an integer that is kept exact; such a one is still within the range of a float


class DocumentError(ValueError):
    """A document that is not read; the message goes on after "the document"."""


class SeveralObjectsError(DocumentError):
    """A reply with several JSON objects; which of them is meant is not ours to choose."""


def object_in(reply: str) -> dict[str, Any]:
    """Return the one JSON object of a model's ``reply``: in a fence, else between the outermost braces.

    A SeveralObjectsError if it holds several that differ, a DocumentError if it holds none, or one beyond a limit of
    this module.

    >>> object_in('Here it is: {"edits": []} as asked.')
    {'edits': []}
    """
    objects: list[dict[str, Any]] = []
    for candidate in _FENCE.findall(reply) or [""]:
        if isinstance(value := _value(candidate), dict) and value not in objects:
            objects.append(value)
    fences, braces = json_spans(reply)
    if not objects:
        if _is_followed(braces):
            raise SeveralObjectsError("holds several JSON objects")
        objects = [value for part in (*fences, braces) if isinstance(value := _value(part), dict)][:1]
    if len(objects) > 1:
        raise SeveralObjectsError("holds several JSON objects")
    if not objects:
        raise DocumentError("holds no JSON object")
    return objects[0]


def json_spans(reply: str) -> tuple[list[str], str]:
    """Return where a reply's JSON may be: in its first fence, to the first or last end, and in the outer braces."""
    fences = [match.group(1) for pattern in (_FENCE, _WIDE_FENCE) if (match := pattern.search(reply))]
    return fences, reply[reply.find("{") : reply.rfind("}") + 1]


def _value(text: str) -> object:
    try:
        return read_document(text)
    except DocumentError:
        return None


def _is_followed(braces: str) -> bool:
    """Say whether ``braces`` begins with a whole object and another one may begin behind it."""
    try:
        _, end = _DECODER.raw_decode(braces)
    except (ValueError, RecursionError):
        return False
    return "{" in braces[end:]


def read_document(content: str | bytes, *, unique: bool = False) -> object:
    """Return the value of the JSON document ``content``; a DocumentError if it is none, or beyond a limit.

    With ``unique``, no object may have two values for one name, of which readers take different ones.
    """
    if len(content) > MOST_BYTES:
        raise DocumentError(f"is longer than {MOST_BYTES >> 20} MiB")
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    if sum(map(data.count, (b"[", b"{", b",", b":"))) > MOST_VALUES:
        raise DocumentError(f"holds more than {MOST_VALUES:,} values")
    decoder = _UNIQUE_DECODER if unique else _DECODER
    value: object = _parsed(lambda: decoder.decode(data.decode("utf-8-sig", "surrogatepass")))
    return value


def loads(content: str | bytes) -> Any:  # noqa: ANN401 - as json has it
    """Return the value of a JSON document that is here, of any size; a DocumentError if it is none, or too deep."""
    return _parsed(lambda: json.loads(content))


def _parsed(parse: Callable[[], Any]) -> Any:  # noqa: ANN401 - as json has it
    try:
        value = parse()
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None
    except ValueError:
        raise DocumentError("is not JSON") from None
    if not _is_within(value, MOST_DEPTH):
        raise DocumentError(_TOO_DEEP)
    return value


def _whole(digits: str) -> int | float:
    if len(digits) <= _MOST_DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


_DECODER = json.JSONDecoder(parse_int=_whole)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name has two values")
    return fields


_UNIQUE_DECODER = json.JSONDecoder(parse_int=_whole, object_pairs_hook=_unique)


def _is_within(value: object, levels: int) -> bool:
    """Say whether ``value`` has at most so many levels of lists and objects."""
    level = [value]
    for _ in range(levels):
        groups = (
            entry.values() if isinstance(entry, dict) else entry for entry in level if isinstance(entry, dict | list)
        )
        level = [entry for entries in groups for entry in entries if isinstance(entry, dict | list)]
        if not level:
            return True
    return False
