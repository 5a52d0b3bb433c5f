"""Which runs were begun here by this user: their recorded configurations are the user's own words and may be acted on.

A configuration can name programs and files. That of a run which was fetched is a stranger's, whoever wrote to the run
here since. A run is known by the commit that started it, since its name may come to stand for another one, and its mark
is sealed, so that no other user's counts.

Of a run that was begun here, others may have written a part: its evidence stays with them unless it is fetched, and is
not lost when it is not here.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.json_limits import loads
from skillgit.files import read_plain, sync, write_file
from skillgit.store.seals import seal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from skillgit.store.repo import Repo


def note_own(repo: Repo, start: str, local: Mapping[str, object]) -> None:
    """Note that the run whose first commit is ``start`` begins here; without a key, it will count as anybody's.

    ``local`` are settings of this machine that no history records, for measuring its versions later.
    """
    digest = seal(start, local, make=True)
    if not digest:
        return
    mark = _mark(repo, start)
    if not mark.parent.is_dir():
        mark.parent.mkdir()
        sync(repo.private_dir)
    write_file(mark, json.dumps({"local": local, "seal": digest}, sort_keys=True).encode())


def is_own(repo: Repo, *, start: str) -> bool:
    """Say whether the run whose first commit is ``start`` was begun here; a run that was fetched was not."""
    return _read(repo, start) is not None


def local_settings(repo: Repo, start: str) -> dict[str, object]:
    """Return the settings that :func:`note_own` noted for a run; none for one that was begun elsewhere."""
    return _read(repo, start) or {}


def _read(repo: Repo, start: str) -> dict[str, object] | None:
    try:
        mark = loads(read_plain(_mark(repo, start)))
        local, digest = mark["local"], seal(start, mark["local"])
        if digest and isinstance(local, dict) and hmac.compare_digest(mark["seal"], digest):
            return local
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        pass  # whoever wrote that, it was not this user
    return None


def note_elsewhere(repo: Repo, run: str, commits: Iterable[str]) -> None:
    """Note that the evidence of the events ``commits`` of ``run`` stayed where they were written."""
    path = _list(repo, run)
    old_commits = evidence_elsewhere(repo, run)
    fresh = [commit for commit in commits if commit not in old_commits]
    if fresh:
        write_file(path, "".join(f"{commit}\n" for commit in (*sorted(old_commits), *fresh)).encode())


def evidence_elsewhere(repo: Repo, run: str) -> frozenset[str]:
    try:
        return frozenset(read_plain(_list(repo, run)).decode("ascii", errors="replace").split())
    except OSError:
        return frozenset()


def note_asked(repo: Repo, run: str, tip: str) -> None:
    """Note that a repository, where the line of ``run`` ended with ``tip``, was asked for all its evidence."""
    if not is_asked(repo, run, tip):
        write_file(_asked(repo, run), f"{tip}\n".encode())


def is_asked(repo: Repo, run: str, tip: str) -> bool:
    try:
        return read_plain(_asked(repo, run)) == f"{tip}\n".encode()
    except OSError:
        return False


def _asked(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"run-{run}.asked"


def _list(repo: Repo, run: str) -> Path:
    return repo.private_dir / f"run-{run}.elsewhere"


def _mark(repo: Repo, start: str) -> Path:
    return repo.private_dir / "own" / start
