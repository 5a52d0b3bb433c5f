"""``git clone`` makes a copy of another repository; what git does not copy by itself is fetched afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.store import refs
from skillgit.store.binary import git
from skillgit.store.exchange.refusals import refusal
from skillgit.store.exchange.transport import CHECKED, run

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.store.exchange.transport import Line
    from skillgit.store.repo import Repo


def clone(line: Line, folder: Path, url: str, place: Path, name: str) -> None:
    """Copy the repository at ``url`` to ``place``; git leaves the history there if only its files cannot be written.

    Args:
        line: The connection.
        folder: Where a relative ``url`` begins.
        url: The address.
        place: A folder that is missing or empty.
        name: What the repository is called in errors.

    Raises:
        NotFoundError: There is no git on this machine.
        RemoteError: It could not be reached, or refused.
    """
    # Files that are copied from a folder of this machine would come in unchecked.
    options = (*(("--progress",) if line.shows else ()), "--no-local", "--no-recurse-submodules", "--origin", "origin")
    answer = run(line, folder, *CHECKED, "clone", *options, "--", url, str(place), hooks=True)
    if answer.code != 0:
        raise refusal(name, answer.error, named=False)


def stand_on_main(repo: Repo, name: str) -> None:
    """Check ``main`` out where the host names a branch that it does not have, so that git has checked out nothing.

    Raises:
        RemoteError: A file of it cannot be written here; ``name`` is what the repository is called.
    """
    _, commit = repo.head()
    if not commit and repo.workdir is not None and repo.tip(refs.MAIN) is not None:
        answer = git(repo, "checkout", "-q", refs.short(refs.MAIN), hooks=True)
        if answer.code != 0:
            raise refusal(name, answer.error, named=False)
