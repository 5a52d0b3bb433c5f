"""What is this user's alone: a key and the seals that it makes, a repository's private folder, runs that began here.

``.git/skillgit`` holds what is never shared: index, ledger, locks, marks of one's own runs, the record of installed
skills. All of it is believed, so that it has to be this user's. A folder or an archive from elsewhere may bring a
``.git`` with such a folder in it: it lacks the seal, is moved out of the way, and nothing in it is read. It stays while
a process holds a lock in it: that is this machine at work with another key, as another HOME has it.

The recorded configuration of a run that began here is the user's own words and may be acted on. It can name programs
and files, and that of a run which was fetched is a stranger's, even if it was continued here. A run is known by
the commit that started it, since its name may come to stand for another one, and its mark is sealed, so that no other
user's counts. Of such a run, others may have written a part: its evidence stays with them unless it is fetched, and is
not lost when it is not here.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import RunLockedError
from skillgit.files import is_held, locked, read_plain, sync, write_file
from skillgit.store.git_binary import Folders

ELSEWHERE = "skillgit-elsewhere"
"""How the names of folders begin that were moved out of the way."""
_NAME, _SEAL = "skillgit", "seal"
_KEPT = ("ledger.db", "adopted", "damaged")
"""What cannot be recreated."""
_KEY_BYTES = 32


def private_folder(git_dir: Path) -> Path:
    """Return the user's private folder for ``git_dir``, made if missing; unverified if there is no folder for a key."""
    folder = git_dir / _NAME
    digest = seal(_NAME, make=True)
    if not digest:
        folder.mkdir(exist_ok=True)
    elif not _has(folder, digest):
        handle = os.open(git_dir, os.O_RDONLY | os.O_CLOEXEC)
        with locked(handle):
            if not _has(folder, digest):
                _make(folder, digest)
                os.fsync(handle)
    return folder


def own_folder(git_dir: Path) -> Path | None:
    folder, digest = git_dir / _NAME, seal(_NAME)
    return folder if digest and _has(folder, digest) else None


def folders_elsewhere(git_dir: Path) -> list[Path]:
    """Return the private folders of others that were moved out of the way."""
    return sorted(git_dir.glob(f"{ELSEWHERE}*"))


def seal(*content: object, make: bool = False) -> str:
    """Return a seal of a JSON value that only this user can make; empty without a key, unless ``make`` makes one."""
    key = _key(make=make)
    return "" if key is None else hmac.digest(key, json.dumps(content, sort_keys=True).encode(), "sha256").hex()


def _has(folder: Path, digest: str) -> bool:
    try:
        return not folder.is_symlink() and hmac.compare_digest(read_plain(folder / _SEAL), digest.encode())
    except OSError:
        return False


def _make(folder: Path, digest: str) -> None:
    """Make ``folder``, sealed from its first moment; the caller holds the lock of the folder around it."""
    if os.path.lexists(folder):
        if not folder.is_symlink() and any(map(is_held, folder.glob("*.lock"))):
            raise RunLockedError(
                f"a process with another key works in '{folder}', and its locks are there",
                hint="give this one the same HOME or XDG_STATE_HOME, or wait until the other ends",
            )
        _move_away(folder)
    young = folder.with_name(f"{_NAME}.{secrets.token_hex(8)}")
    young.mkdir()
    try:
        write_file(young / _SEAL, digest.encode())
        young.rename(folder)
    except OSError:
        shutil.rmtree(young, ignore_errors=True)
        raise


def _move_away(folder: Path) -> None:
    """Free the name of ``folder``; what can be recreated is removed, for containers may bring a new key each time."""
    names = (f"{ELSEWHERE}{f'-{number}' if number > 1 else ''}" for number in count(1))
    target = next(name for name in map(folder.with_name, names) if not os.path.lexists(name))
    folder.rename(target)
    if target.is_symlink() or not any(os.path.lexists(target / name) for name in _KEPT):
        with suppress(OSError):
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink()


def _key(*, make: bool) -> bytes | None:
    home = os.environ.get("XDG_STATE_HOME") or os.path.expandvars("$HOME/.local/state")
    file = Path(home) / _NAME / "key"
    if not file.is_absolute():
        return None
    with suppress(OSError):
        if make and not file.exists():
            _make_key(file)
        key = read_plain(file, follow=True)
        return key if len(key) == _KEY_BYTES else None
    return None


def _make_key(file: Path) -> None:
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
    sync(file.parent)


def note_own(repo: Folders, start: str, local: Mapping[str, object]) -> None:
    """Note that the run from ``start`` is our own, if there is a key; ``local`` are unrecorded settings of it."""
    digest = seal(start, local, make=True)
    if not digest:
        return
    mark = _mark(repo, start)
    if not mark.parent.is_dir():
        mark.parent.mkdir()
        sync(repo.private_dir)
    write_file(mark, json.dumps({"local": local, "seal": digest}, sort_keys=True).encode())


def is_own(repo: Folders, *, start: str) -> bool:
    """Say whether the run whose first commit is ``start`` was begun here; a run that was fetched was not."""
    return _read(repo, start) is not None


def local_settings(repo: Folders, start: str) -> dict[str, object]:
    """Return the settings that :func:`note_own` noted for a run; none for one that was begun elsewhere."""
    return _read(repo, start) or {}


def _read(repo: Folders, start: str) -> dict[str, object] | None:
    try:
        mark = loads(read_plain(_mark(repo, start)))
        local, digest = mark["local"], seal(start, mark["local"])
        if digest and isinstance(local, dict) and hmac.compare_digest(mark["seal"], digest):
            return local
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        pass  # it was not written by this user
    return None


def note_elsewhere(repo: Folders, run: str, commits: Iterable[str]) -> None:
    """Note that the evidence of the events ``commits`` of ``run`` stayed where they were written."""
    path = _list(repo, run)
    old_commits = evidence_elsewhere(repo, run)
    fresh = [commit for commit in commits if commit not in old_commits]
    if fresh:
        write_file(path, "".join(f"{commit}\n" for commit in (*sorted(old_commits), *fresh)).encode())


def evidence_elsewhere(repo: Folders, run: str) -> frozenset[str]:
    try:
        return frozenset(read_plain(_list(repo, run)).decode("ascii", errors="replace").split())
    except OSError:
        return frozenset()


def note_asked(repo: Folders, run: str, tip: str) -> None:
    """Note that a repository, where the line of ``run`` ended with ``tip``, was asked for all its evidence."""
    if not is_asked(repo, run, tip):
        write_file(_asked(repo, run), f"{tip}\n".encode())


def is_asked(repo: Folders, run: str, tip: str) -> bool:
    try:
        return read_plain(_asked(repo, run)) == f"{tip}\n".encode()
    except OSError:
        return False


def _asked(repo: Folders, run: str) -> Path:
    return repo.private_dir / f"run-{run}.asked"


def _list(repo: Folders, run: str) -> Path:
    return repo.private_dir / f"run-{run}.elsewhere"


def _mark(repo: Folders, start: str) -> Path:
    return repo.private_dir / "own" / start
