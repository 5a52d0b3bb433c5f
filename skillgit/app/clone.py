"""``skillgit clone``: a copy of another repository with its runs, notes and rejected candidates."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.app.connection import Listener, check_address, line_for, shown_address
from skillgit.app.pull import Pulled, PullRequest, pull
from skillgit.errors import UsageError
from skillgit.store.exchange.cloning import clone as clone_repository
from skillgit.store.exchange.cloning import stand_on_main
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.app.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned:
    """A copy of another repository.

    Attributes:
        path: Where it is.
        pulled: What came in.
    """

    path: Path
    pulled: Pulled


def clone(
    context: Context,
    url: str,
    directory: Path | None = None,
    *,
    evidence: bool = False,
    listener: Listener | None = None,
) -> Cloned:
    """Copy the repository at ``url`` into ``directory``, or a new folder that is named after it.

    Its runs become runs of the copy. Their recorded configurations are a stranger's words and are never acted on. If
    anything fails, nothing of the copy is left.

    Raises:
        RemoteError: It could not be reached, or refused, or its files cannot be checked out here.
        UsageError: The address holds a credential, or the folder is there and not empty.
    """
    check_address(url)
    listener = listener or Listener()
    place = (context.directory / (directory or folder_of(url))).resolve()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(f"{place} exists already and is not empty", hint="skillgit clone URL DIR names another folder")
    was_there = place.exists()
    try:
        clone_repository(line_for(context, listener), context.directory, url, place, shown_address(url))
        inside = replace(context, directory=place)
        pulled = pull(inside, PullRequest(remote="origin", evidence=evidence), listener)
        stand_on_main(Repo.discover(place), shown_address(url))
    except BaseException:
        _remove(place, itself=not was_there)
        raise
    return Cloned(path=place, pulled=pulled)


def _remove(place: Path, *, itself: bool) -> None:
    """Remove what ``place`` holds, and the folder ``itself`` where the copy made it."""
    for path in [place] if itself else list(place.iterdir()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def folder_of(url: str) -> str:
    """Return the folder that git would clone ``url`` into.

    Raises:
        UsageError: It names none.
    """
    path = re.sub(r"^[a-z][a-z0-9+.-]*://[^/]*", "", url)
    name = re.sub(r"(?:/\.git|\.git)?/*$", "", path.rstrip("/")).replace(":", "/").rpartition("/")[2]
    if not name or name in {".", ".."}:
        raise UsageError(f"'{shown_address(url)}' does not say how to call the folder", hint="skillgit clone URL DIR")
    return name
