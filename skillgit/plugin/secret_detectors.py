"""Secrets in lines of text, by the detectors of detect-secrets and by the shapes of credentials."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.plugin.redaction import MASK, credentials, redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from detect_secrets.core.potential_secret import PotentialSecret
    from detect_secrets.plugins.base import BasePlugin

BY_SHAPE = "a credential by its shape"
_KEYWORD = "Secret Keyword"
_OFF = frozenset({"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"})
_LONGEST_LINE = 100_000
"""A longer line is searched for shapes of credentials only: some detectors take very long."""
_EXCERPT = 160
_SHORTEST_MASKED = 6


@dataclass(frozen=True, slots=True)
class Secret:
    """What a detector found in a line."""

    kind: str
    value: str
    digest: str = ""  # its hash as a baseline of detect-secrets holds it; empty if no detector of theirs found it
    random: bool = False

    @property
    def named(self) -> bool:
        """Whether only a word such as ``password`` says that it is one."""
        return self.kind == _KEYWORD


class SecretScanner:
    """Finds secrets in lines; a line that was seen before costs nothing."""

    def __init__(self, random: tuple[BasePlugin, ...]) -> None:
        self._random = random
        self._cache: dict[str, tuple[Secret, ...]] = {}

    def secrets(self, line: str) -> tuple[Secret, ...]:
        if line not in self._cache:
            self._cache[line] = tuple(self._found(line))
        return self._cache[line]

    def _found(self, line: str) -> Iterator[Secret]:
        secrets = [_secret(match) for match in _detected(line)]
        random = [
            _secret(match, random=True)
            for plugin in (self._random if len(line) <= _LONGEST_LINE else ())
            for match in plugin.analyze_line(filename="", line=line, line_number=1)
        ]
        shapes = [Secret(BY_SHAPE, value) for value in credentials(line)]
        yield from (secret for secret in (*secrets, *shapes) if MASK not in secret.value)
        if not secrets and not shapes:
            yield from random


def _detected(line: str) -> list[PotentialSecret]:
    from detect_secrets.core.scan import scan_line  # noqa: PLC0415 - it takes a fifth of a second

    return list(scan_line(line)) if line.strip() and len(line) <= _LONGEST_LINE else []


def _secret(match: PotentialSecret, *, random: bool = False) -> Secret:
    return Secret(str(match.type), str(match.secret_value or ""), str(match.secret_hash), random)


@contextmanager
def secret_scanner() -> Iterator[SecretScanner]:
    """Set the detectors up for as long as the scanner is used, and restore them afterwards."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class  # noqa: PLC0415 - as above
    from detect_secrets.plugins.high_entropy_strings import (  # noqa: PLC0415 - as above
        Base64HighEntropyString,
        HexHighEntropyString,
    )
    from detect_secrets.settings import get_settings, transient_settings  # noqa: PLC0415 - as above

    detectors: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    names = sorted({detector.__name__ for detector in detectors.values()} - _OFF)
    with transient_settings({"plugins_used": [{"name": name} for name in names]}):
        # Whether a line is allowed depends on the one above it, and is asked where a secret was found.
        get_settings().disable_filters("detect_secrets.filters.allowlist.is_line_allowlisted")
        yield SecretScanner((Base64HighEntropyString(limit=4.5), HexHighEntropyString(limit=3.0)))


def is_allowed_inline(path: str, line: str, above: str) -> bool:
    """Say whether a comment such as ``pragma: allowlist secret`` allows what is in ``line``."""
    from detect_secrets.filters.allowlist import is_line_allowlisted  # noqa: PLC0415 - as above
    from detect_secrets.util.code_snippet import get_code_snippet  # noqa: PLC0415 - as above

    return bool(is_line_allowlisted(path, line, get_code_snippet(lines=[above, line], line_number=2)))


def masked(line: str, secrets: tuple[Secret, ...]) -> str:
    """Return ``line`` without its secrets, cut to one line; empty if a secret cannot be told from the rest of it."""
    text = redact(line)
    for secret in secrets:
        if len(secret.value) >= _SHORTEST_MASKED:
            text = text.replace(secret.value, MASK)
    if MASK not in text or any(secret.value in text for secret in secrets):
        return ""
    start = max(0, text.find(MASK) - _EXCERPT // 2) if len(text) > _EXCERPT else 0
    return text[start : start + _EXCERPT].strip()
