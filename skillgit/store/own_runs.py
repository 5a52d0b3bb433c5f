"""Which runs were begun here by this user: their recorded configurations are the user's own words and may be acted on.

A configuration can name programs and files. That of a run which was fetched is a stranger's, whoever wrote to the run
here since. A run is known by the commit that started it, since its name may come to stand for another one. Its mark is
sealed with a key that lies with the user's own files and not in the repository, since a stranger's folder may bring a
``.git`` with any marks in it.

Of a run that was begun here, others may have written a part: its evidence stays with them unless it is fetched, and is
not lost when it is not here.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.store.disk import sync, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillgit.store.repo import Repo

_KEY_BYTES = 32


def note_own(repo: Repo, start: str, local: Mapping[str, object]) -> None:
    """Note that the run whose first commit is ``start`` begins here.

    Where the user has no folder for a key, nothing is noted, and the run will count as anybody's.

    Args:
        repo: The repository.
        start: The commit of its run-started event.
        local: Settings of this machine that no history records, by key, for measuring its versions later.
    """
    key = _key(make=True)
    if key is None:
        return
    mark = _mark(repo, start)
    if not mark.parent.is_dir():
        mark.parent.mkdir()
        sync(repo.private_dir)
    write_file(mark, json.dumps({"local": local, "seal": _seal(key, start, local)}, sort_keys=True).encode())


def is_own(repo: Repo, *, start: str) -> bool:
    """Say whether the run whose first commit is ``start`` was begun here; a run that was fetched was not."""
    return _read(repo, start) is not None


def local_settings(repo: Repo, start: str) -> dict[str, object]:
    """Return the settings that :func:`note_own` noted for a run; none for one that was begun elsewhere."""
    return _read(repo, start) or {}


def _read(repo: Repo, start: str) -> dict[str, object] | None:
    """Return what is noted of the run that begins with ``start``; None where nothing is, or by somebody else."""
    try:
        mark = json.loads(_mark(repo, start).read_bytes())
        local, seal = mark["local"], mark["seal"]
        key = _key()
        if key is not None and isinstance(local, dict) and hmac.compare_digest(seal, _seal(key, start, local)):
            return local
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        pass  # whoever wrote that, it was not this user
    return None


def _seal(key: bytes, start: str, local: Mapping[str, object]) -> str:
    return hmac.digest(key, json.dumps([start, local], sort_keys=True).encode(), "sha256").hex()


def _key(*, make: bool = False) -> bytes | None:
    """Return the key of this user, made when it is missing and wanted; None where there is none."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expandvars("$HOME/.local/state")
    file = Path(home) / "skillgit" / "key"
    if not file.is_absolute():
        return None
    with suppress(OSError):
        if make and not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            young = file.with_name(f"key.{secrets.token_hex(8)}")
            handle = os.open(young, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as stream:
                stream.write(secrets.token_bytes(_KEY_BYTES))
                stream.flush()
                os.fsync(stream.fileno())
            with suppress(FileExistsError):  # another process was quicker, and its key counts
                os.link(young, file)
            young.unlink()
        key = file.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None


def note_elsewhere(repo: Repo, run: str, commits: Iterable[str]) -> None:
    """Note that the evidence of the events ``commits`` of ``run`` stayed where they were written."""
    place = _list(repo, run)
    known = evidence_elsewhere(repo, run)
    fresh = [commit for commit in commits if commit not in known]
    if fresh:
        write_file(place, "".join(f"{commit}\n" for commit in (*sorted(known), *fresh)).encode())


def evidence_elsewhere(repo: Repo, run: str) -> frozenset[str]:
    """Return the events of ``run`` whose evidence stayed where they were written."""
    try:
        return frozenset(_list(repo, run).read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return frozenset()


def _list(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"run-{run}.elsewhere"


def _mark(repo: Repo, start: str) -> Path:
    return repo.private_dir / "own" / start
