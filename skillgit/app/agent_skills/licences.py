"""Licences of a skill: files that its ``license`` names, and files of others that came without their licence.

What somebody else wrote is known by what it says of itself, a copyright line or an SPDX tag in its first lines, or by
where it stands, as under ``vendor/``. It is warned of where no licence file stands beside it or above it.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAMED = re.compile(
    r"(?<![\w./:-])(?:[\w-]+/)*(?:(?:LICEN[CS]E|COPYING|NOTICE)(?:[.-][\w.-]*\w)?|[\w-]+\.(?:txt|md|rst))(?![\w/])"
)
_LICENCE = re.compile(r"(?i)(?:.*[-_.])?(?:licen[cs]e|copying|notice|ofl|unlicense)(?:[-_.].*)?")
_OF_OTHERS = frozenset({"vendor", "vendored", "third_party", "third-party", "thirdparty", "node_modules"})
_FONTS = frozenset({".ttf", ".otf", ".woff", ".woff2"})
_MINIFIED = (".min.js", ".min.css")
_CLAIM = re.compile(rb"(?i)copyright\s+(?:\(c\)|\xc2\xa9|[12]\d{3})|SPDX-License-Identifier:|@license\b")
_LOOKED_AT = 2000
"""Bytes at the beginning of a file in which it says whose it is."""


def licence_files(licence: str) -> tuple[str, ...]:
    """Return the files that the frontmatter's ``license`` names, such as ``LICENSE.txt``."""
    return tuple(dict.fromkeys(_NAMED.findall(licence)))


def is_licence(path: str) -> bool:
    """Say whether the file at ``path`` is called like the text of a licence."""
    return _LICENCE.fullmatch(PurePosixPath(path).name) is not None


def unlicensed(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield path and reason of every file that seems to be somebody else's and has no licence file above it.

    Args:
        files: Path inside the skill folder to content, or to the beginning of it.
    """
    licensed = {PurePosixPath(path).parent for path in files if is_licence(path)}
    for path, content in files.items():
        place = PurePosixPath(path)
        if is_licence(path) or licensed & set(place.parents):
            continue
        reason = _reason(place, content)
        if reason:
            yield path, reason


def _reason(place: PurePosixPath, content: bytes) -> str:
    if _OF_OTHERS & set(place.parts[:-1]):
        return "stands in a folder for what others wrote"
    if place.suffix.lower() in _FONTS:
        return "is a font"
    if place.name.endswith(_MINIFIED):
        return "is a minified library"
    if place.suffix.lower() != ".md" and _CLAIM.search(content[:_LOOKED_AT]):
        return "names a copyright or a licence of its own"
    return ""
