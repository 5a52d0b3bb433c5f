"""Tags of releases: they follow ``main`` to another repository, and come from there with a pull.

Such a tag is made once and never moves. Where both sides have another one under the same name, each keeps its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import HistoryError
from skillgit.store import refs
from skillgit.store.binary import git
from skillgit.store.exchange.transport import CHECKED, ask
from skillgit.store.mainline import skills_at

if TYPE_CHECKING:
    from skillgit.store.exchange.transport import Line
    from skillgit.store.repo import Repo


def releases(repo: Repo, main: str | None) -> dict[str, str]:
    """Return the tags of releases of the skills at the commit ``main``, with the ids of the tags.

    Tags of other things that the repository may hold, such as ``library/v1.2.3``, are left to git.
    """
    out = git(repo, "for-each-ref", "--format=%(objectname)\t%(refname)", "refs/tags/").out
    return _releases_in(out, _skills(repo, main))


def fetch_releases(repo: Repo, line: Line, remote: str, main: str | None, *, dry_run: bool = False) -> tuple[str, ...]:
    """Bring in the tags of releases that ``remote`` has and this repository does not; return them.

    Args:
        repo: The repository.
        line: The connection.
        remote: The remote.
        main: What its ``main`` is; the releases of the skills there come.
        dry_run: Whether only to ask.

    Raises:
        RemoteError: It could not be reached, or refused.
    """
    out = ask(repo, line, remote, "ls-remote", "--refs", "--quiet", remote, "refs/tags/*").out
    missing = tuple(sorted(_releases_in(out, _skills(repo, main)).keys() - releases(repo, main).keys()))
    if missing and not dry_run:
        options = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
        ask(repo, line, remote, *CHECKED, "fetch", "--quiet", *options, remote, *(f"{name}:{name}" for name in missing))
    return missing


def _skills(repo: Repo, main: str | None) -> frozenset[str]:
    try:
        return frozenset(path.rpartition("/")[2] for path in skills_at(repo, main)) if main else frozenset()
    except HistoryError:
        # a commit of somebody's own, which fsck names
        return frozenset()


def _releases_in(out: bytes, skills: frozenset[str]) -> dict[str, str]:
    found = (row.partition("\t") for row in out.decode(errors="replace").splitlines())
    return {name: oid for oid, _, name in found if refs.is_release(name) and name.split("/")[2] in skills}
