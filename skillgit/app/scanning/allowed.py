"""What people have looked at and allow: fingerprints of findings, and a baseline of detect-secrets.

Both files stand at the top of the repository: in the work tree, committed or not, else as ``main`` has them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.scanning.finding import FINGERPRINT_LENGTH
from skillgit.errors import ConfigError
from skillgit.store import refs
from skillgit.store.published import file_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.scanning.secrets import Secret
    from skillgit.store.repo import Repo

ALLOW_LIST = ".skillgit-allow"
BASELINE = ".secrets.baseline"
_FINGERPRINT = re.compile(rf"[0-9a-f]{{{FINGERPRINT_LENGTH}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What is allowed.

    Attributes:
        fingerprints: Findings.
        secrets: Path, detector and hash of secrets that a baseline holds and nobody has marked as real.
    """

    fingerprints: frozenset[str]
    secrets: frozenset[tuple[str, str, str]]

    def holds(self, path: str, secrets: tuple[Secret, ...]) -> bool:
        """Say whether the baseline holds everything that detect-secrets found in a line of the file at ``path``."""
        known = [secret for secret in secrets if secret.hashed]
        return bool(known) and all((path, secret.kind, secret.hashed) in self.secrets for secret in known)


def read_allowed(repo: Repo) -> Allowed:
    """Return what the repository's files allow.

    Raises:
        ConfigError: One of them cannot be read.
    """
    return Allowed(
        fingerprints=frozenset(_fingerprints(_content(repo, ALLOW_LIST))),
        secrets=frozenset(_baseline(_content(repo, BASELINE))),
    )


def _content(repo: Repo, name: str) -> str:
    path = repo.workdir / name if repo.workdir is not None else None
    try:
        if path is not None and path.is_file():
            return path.read_text(encoding="utf-8")
        tip = repo.tip(refs.MAIN)
        return ((tip and file_at(repo, tip, name)) or b"").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name} cannot be read", hint="check its permissions, and its UTF-8") from error


def _fingerprints(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        found = line.partition("#")[0].strip()
        if found and not _FINGERPRINT.fullmatch(found):
            raise ConfigError(
                f"line {number} of {ALLOW_LIST} is no fingerprint: {found}",
                hint="write one a line, as skillgit scan prints them; '#' begins a remark",
            )
        if found:
            yield found


def _baseline(text: str) -> Iterator[tuple[str, str, str]]:
    if not text.strip():
        return
    try:
        results = json.loads(text)["results"]
        rows = [(path, row) for path, found in results.items() for row in found]
        for path, row in rows:
            if row.get("is_secret") is not True:
                yield str(path), str(row["type"]), str(row["hashed_secret"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{BASELINE} is no baseline", hint="detect-secrets scan > .secrets.baseline") from error
