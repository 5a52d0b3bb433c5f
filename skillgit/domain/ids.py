"""Names of runs, versions and items, and the digests that identify content."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date

from skillgit.domain.address import parse
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import DataError, UsageError

RUN_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")
_TAKEN = frozenset({"best", "head", "main"})  # names that mean something else where a revision is expected
_ITEM_ID = re.compile(r"[^\s,\x00-\x1f\x7f\ud800-\udfff]{1,200}")
_PROPOSING = re.compile(r".+-propose-[0-9a-f]{8}")
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def check_run_name(name: str) -> str:
    """Return ``name`` if it can name a run.

    A UsageError if it has other characters than ``a-z0-9-``, is longer than 60, starts or ends with a hyphen, or means
    something else, as ``v5`` and ``best`` do.
    """
    if not RUN_NAME.fullmatch(name) or "--" in name:
        raise UsageError(
            f"'{name}' cannot name a run",
            hint="use lower-case letters, digits and single hyphens, 60 characters at most",
        )
    if name in _TAKEN or parse(name) is not None:
        raise UsageError(f"'{name}' cannot name a run, since it names a revision", hint=f"skill-{name} could")
    return name


def new_run_name(environment: str, day: date, entropy: bytes) -> str:
    """Make a run name ``<environment>-<yyyymmdd>-<4 base32 characters>``."""
    suffix = "".join(_BASE32[byte % 32] for byte in entropy[:4])
    stem = re.sub(r"[^a-z0-9]+", "-", environment.lower()).strip("-")[:40].rstrip("-") or "run"
    return check_run_name(f"{stem}-{day:%Y%m%d}-{suffix}")


def is_proposing(run: str) -> bool:
    """Say whether ``propose`` gave the run its name; such a run is the default only where there are no others."""
    return _PROPOSING.fullmatch(run) is not None


def check_item_id(item_id: str) -> str:
    """Return ``item_id`` if it is safe in a path, a table and a list.

    A DataError if it is empty, has white space, a comma, a control character or half of a surrogate pair, or climbs out
    of a folder.
    """
    if not _ITEM_ID.fullmatch(item_id):
        raise DataError(
            f"item id {shown(item_id)} is not usable",
            hint="ids are 1 to 200 characters without white space, commas or control characters",
        )
    parts = item_id.replace("\\", "/").split("/")
    if ".." in parts or item_id.startswith(("/", "\\")):
        raise DataError(
            f"item id {shown(item_id)} names a path outside its folder", hint="remove '..' and leading slashes"
        )
    return item_id


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON of ``value`` in hexadecimal.

    Canonical: sorted keys, no white space, UTF-8, shortest round-trip floats. Two values are equal for skillgit exactly
    if their digests are. Lone surrogates are encoded as they are, so that any text has a digest.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_digest(value: object) -> str:
    """Return the first 12 hexadecimal characters of :func:`digest`, for trailers and screens."""
    return digest(value)[:12]


def text_digest(text: str) -> str:
    """Return the first 12 hexadecimal characters of the SHA-256 of ``text``."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def git_object_id(kind: str, content: bytes) -> str:
    """Return the id that git gives to an object of ``kind``, such as a blob, with this content."""
    head = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
