"""Who may look at the repository in a browser, and where a server that shows it listens.

A token is known by its digest only: the link with it is shown once and cannot be read from here.
"""

from __future__ import annotations

import json
import os
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from skillgit.app.workspace.command_journal import TERMINAL, own_folder
from skillgit.app.workspace.context import Context
from skillgit.errors import ConflictError, HistoryError, NotFoundError, UsageError
from skillgit.files import is_held, locked, open_plain, read_plain, write_file

OWNER: Final = "owner"
"""Who has the link that a server prints when it starts; it ends with the server."""
_FOLDER, _FILE, _SERVER = "serve", "tokens.json", "server-"
_NAME: Final = re.compile(r"[^\W_][\w .@+-]{0,39}")
_BYTES: Final = 32  # random bytes of a token
USE_PRECISION: Final = timedelta(minutes=1)
"""How precisely the last use of a token is known."""
NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Role(StrEnum):
    """What a token allows."""

    VIEWER = "viewer"  # reads every page
    OPERATOR = "operator"  # runs commands too


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    name: str
    role: Role
    created: datetime
    used: datetime | None  # the last time, to the minute
    digest: str


def new_token(context: Context) -> str:
    return urlsafe_b64encode(context.entropy(_BYTES)).decode().rstrip("=")


def digest_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def invite(context: Context, name: str, role: Role) -> str:
    """Return a token for ``name``, which is valid until it is revoked."""
    if not _NAME.fullmatch(name) or name in {OWNER, TERMINAL}:
        raise UsageError(
            f"'{name}' cannot be the name of a token" if name.isprintable() else "that cannot be the name of a token",
            hint="up to 40 letters, digits, spaces and .@+-_, as in 'Ada'",
        )
    with _held(context) as folder:
        rows = _read(folder)
        if any(row.name == name for row in rows):
            raise ConflictError(
                f"{name} has a token already", hint=f"skillgit serve --revoke '{name}', or another name"
            )
        token = new_token(context)
        row = Invitation(name=name, role=role, created=context.clock(), used=None, digest=digest_of(token))
        _write(folder, (*rows, row))
    return token


def revoke(context: Context, name: str) -> Invitation:
    """End the token of ``name``; servers that run notice it with the next request, and open streams within a second."""
    with _held(context) as folder:
        rows = _read(folder)
        row = next((row for row in rows if row.name == name), None)
        if row is None:
            raise NotFoundError(f"{name} has no token", hint="skillgit serve --tokens lists them")
        _write(folder, tuple(entry for entry in rows if entry is not row))
    return row


def invitations(context: Context) -> tuple[Invitation, ...]:
    return _read(own_folder(context, _FOLDER))


def watch(context: Context) -> Callable[[], tuple[int, ...]]:
    """Return a function whose value is another one after every change of the invitations, which it does not read."""
    path = own_folder(context, _FOLDER) / _FILE

    def stamp() -> tuple[int, ...]:
        try:
            status = path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_size

    return stamp


def note_use(context: Context, digest: str) -> None:
    """Remember that a token was used just now."""
    now = context.clock()
    with suppress(ConflictError, OSError), _held(context) as folder:
        _write(folder, tuple(replace(row, used=now) if row.digest == digest else row for row in _read(folder)))


@contextmanager
def serving(context: Context, port: int, link: str) -> Iterator[None]:
    """Let invitations know where a server listens, as long as it does."""
    path = own_folder(context, _FOLDER) / f"{_SERVER}{port}"
    try:
        handle = open_plain(path, os.O_RDWR | os.O_CREAT, mode=0o600)
    except OSError:
        yield
        return
    with locked(handle):
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, link.encode(), 0)
            yield
        finally:
            path.unlink(missing_ok=True)


def addresses(context: Context) -> tuple[str, ...]:
    """Return how the links of servers begin that show this repository now."""
    paths = sorted(own_folder(context, _FOLDER).glob(f"{_SERVER}*"))
    return tuple(read_plain(path).decode() for path in paths if is_held(path))


@contextmanager
def _held(context: Context) -> Iterator[Path]:
    folder = own_folder(context, _FOLDER)
    try:
        handle = open_plain(folder / "lock", os.O_RDWR | os.O_CREAT, mode=0o600)
    except OSError as error:
        raise ConflictError(
            f"the repository cannot be written: {error.strerror}", hint=f"ls -ld {folder.parent}"
        ) from error
    with locked(handle):
        yield folder


def _write(folder: Path, rows: tuple[Invitation, ...]) -> None:
    document = [
        asdict(row) | {"created": row.created.isoformat(), "used": row.used and row.used.isoformat()} for row in rows
    ]
    write_file(folder / _FILE, json.dumps(document, indent=1).encode(), mode=0o600)


def _read(folder: Path) -> tuple[Invitation, ...]:
    try:
        return tuple(
            Invitation(
                name=row["name"],
                role=Role(row["role"]),
                created=datetime.fromisoformat(row["created"]),
                used=row["used"] and datetime.fromisoformat(row["used"]),
                digest=row["digest"],
            )
            for row in json.loads(read_plain(folder / _FILE))
        )
    except (FileNotFoundError, PermissionError):
        return ()
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise HistoryError(
            f"{folder / _FILE}, the list of tokens, cannot be read", hint="move it away and invite people again"
        ) from error
