"""What a scan finds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

FINGERPRINT_LENGTH = 16


class Severity(StrEnum):
    """Whether a push goes on."""

    STOP = "stop"
    """Nothing is pushed."""
    WARN = "warn"
    """It is told, and the push goes on."""


class Kind(StrEnum):
    """What was found."""

    SECRET = "secret"  # noqa: S105 - the name of a kind
    """A credential by its shape, or the value of an environment variable that is named like one."""
    SECRET_LIKE = "secret-like"  # noqa: S105 - as above
    """What may be one: a random text in quotes, or a password in evidence."""
    LEAK = "leak"
    """A skill quotes an answer, a check, or the input of a selection or test item."""
    HUGE_FILE = "huge-file"
    """GitHub refuses it."""
    LARGE_FILE = "large-file"
    """GitHub warns of it."""
    LICENCE_FILE = "licence-file"
    """A skill's license names a file that is not there."""
    LICENCE_BUNDLED = "licence-bundled"
    """A file seems to be somebody else's, and no licence file stands beside or above it."""

    @property
    def severity(self) -> Severity:
        """Whether it stops a push."""
        return Severity.WARN if self in _TOLD else Severity.STOP


_TOLD = frozenset({Kind.SECRET_LIKE, Kind.LARGE_FILE, Kind.LICENCE_BUNDLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that should not leave, or should be looked at before it does.

    Attributes:
        rule: What it is.
        severity: Whether it stops a push.
        commit: The oldest of the commits looked at that brings it.
        path: The file in that commit; empty for the commit's message.
        line: The line, counted from 1; 0 for the whole file.
        what: What was seen there.
        excerpt: The line with the secret masked; empty if there is none.
        fingerprint: What names the same finding in every commit; an allow-list holds it.
    """

    rule: Kind
    severity: Severity
    commit: str
    path: str
    line: int
    what: str
    excerpt: str
    fingerprint: str


def finding(
    kind: Kind, commit: str, path: str, *, what: str, identity: str, line: int = 0, excerpt: str = ""
) -> Finding:
    """Return a finding whose fingerprint is made of its kind and ``identity``."""
    digest = hashlib.sha256(f"{kind.value}\0{identity}".encode("utf-8", "surrogatepass")).hexdigest()
    return Finding(
        rule=kind,
        severity=kind.severity,
        commit=commit,
        path=path,
        line=line,
        what=what,
        excerpt=excerpt,
        fingerprint=digest[:FINGERPRINT_LENGTH],
    )
