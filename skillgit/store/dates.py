"""Times as people write them: git understands ``2 days ago`` and ``yesterday`` and is asked."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import datetime
from typing import TYPE_CHECKING

from skillgit.errors import NotFoundError, UsageError
from skillgit.store.binary import command

if TYPE_CHECKING:
    from skillgit.store.repo import Repo

_DAY = 24 * 60 * 60
_PRESENT = frozenset({"now", "today"})
_HINT = "write it like 2026-11-21T12:00:00Z, 2026-11-21, yesterday or '2 days ago'"


def moment(repo: Repo, text: str, now: datetime) -> int:
    """Return the time that ``text`` names, in seconds since 1970.

    A date without a time is its beginning, and a time without a zone is local. Everything that is no RFC 3339 time is
    asked of git.

    Raises:
        NotFoundError: There is no git on this machine.
        UsageError: It names no time.
    """
    wanted = text.strip()
    if wanted.lower() == "tomorrow":
        # git knows yesterday, and takes this for the present
        return _ask_git(repo, "yesterday", now) + 2 * _DAY
    try:
        return int(datetime.fromisoformat(wanted).timestamp())
    except ValueError:
        pass
    answer = _ask_git(repo, wanted, now)
    # git takes what it does not understand for the present
    if answer == int(now.timestamp()) and wanted.lower() not in _PRESENT and not re.search(r"\d", wanted):
        raise UsageError(f"'{text}' is not a time", hint=_HINT)
    return answer


def _ask_git(repo: Repo, text: str, now: datetime) -> int:
    try:
        done = subprocess.run(  # noqa: S603 - a list
            command(f"--git-dir={repo.raw.path}", "rev-parse", f"--since={text}"),
            env=os.environ | {"GIT_TEST_DATE_NOW": str(int(now.timestamp()))},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise NotFoundError("there is no git on the PATH", hint="install git") from error
    found = re.fullmatch(r"--max-age=(\d+)", done.stdout.strip())
    if found is None:
        raise UsageError(f"'{text}' is not a time", hint=_HINT)
    return int(found[1])
