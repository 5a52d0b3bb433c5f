"""Fetch refs to tracking copies only, and the tags of releases; what is ours is not touched, and nothing is pruned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import HistoryError
from skillgit.store import refs
from skillgit.store.exchange.transport import CHECKED, ask
from skillgit.store.git_binary import git
from skillgit.store.lock import repo_lock
from skillgit.store.main_branch import skills_at

if TYPE_CHECKING:
    from skillgit.store.exchange.transport import RemoteConnection
    from skillgit.store.repo import Repo


_MANY = 500
"""So many refs that git had better keep them in one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRef:
    """A ref of another repository that is new, or has moved."""

    ref: str
    run: str  # the run that it belongs to; empty for other branches and for notes
    old: str  # to what it pointed when it was fetched last; empty if it is new
    new: str


def fetch(
    repo: Repo, line: RemoteConnection, remote: str, *, with_rejected: bool, evidence: bool
) -> tuple[FetchedRef, ...]:
    """Bring the refs of ``remote`` in as tracking copies and return those that moved.

    With ``with_rejected``, refused candidates come too, as branches and in attics.
    """
    hidden = ["plan", *(("attic",) if with_rejected else ()), *(("evidence", "dropped") if evidence else ())]
    names = ("refs/heads/*", *(f"refs/skillgit/{kind}/*" for kind in hidden), "refs/notes/skillgit/*")
    specs = [f"+{name}:{refs.tracking(remote, name)}" for name in names]
    before = tracked(repo, remote)
    _fetch(repo, line, remote, *specs, *(() if with_rejected else ("^refs/heads/rejected/*",)))
    after = tracked(repo, remote)
    changes = {name: oid for name, oid in after.items() if before.get(name) != oid}
    pack(repo, len(changes))
    return tuple(
        FetchedRef(ref=name, run=_run_of(name), old=before.get(name, ""), new=oid) for name, oid in changes.items()
    )


def fetch_notes(repo: Repo, line: RemoteConnection, remote: str) -> None:
    name = "refs/notes/skillgit/*"
    _fetch(repo, line, remote, f"+{name}:{refs.tracking(remote, name)}")


def _fetch(repo: Repo, line: RemoteConnection, remote: str, *specs: str) -> None:
    options = (
        "--progress" if line.shows else "--no-progress",
        "--no-tags",
        "--no-prune",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--no-recurse-submodules",
    )
    ask(repo, line, remote, *CHECKED, "fetch", *options, remote, *specs)


def tracked(repo: Repo, remote: str) -> dict[str, str]:
    """Return the refs of ``remote`` as they were when they were fetched last, under their names there."""
    prefixes = {refs.tracking(remote, name): name for name in ("refs/notes/skillgit/", "refs/heads/", "refs/skillgit/")}
    form = "%(objectname) %(refname)%(if)%(symref)%(then) symbolic%(end)"
    out = git(repo, "for-each-ref", f"--format={form}", *prefixes).out.decode(errors="replace")
    tips = {}
    for row in out.splitlines():
        oid, name, *symbolic = row.split()
        if not symbolic:
            own, there = next(pair for pair in prefixes.items() if name.startswith(pair[0]))
            tips[there + name.removeprefix(own)] = oid
    return tips


def pack(repo: Repo, count: int) -> None:
    """Let git keep its refs in one file if so many have moved that reading them one by one would take long."""
    if count > _MANY:
        with repo_lock(repo):
            git(repo, "pack-refs", "--all")


def _run_of(name: str) -> str:
    ref = refs.parse(name)
    return ref.run if ref is not None else ""


def releases(repo: Repo, main: str | None) -> dict[str, str]:
    """Return the release tags, with their ids, of the skills at the commit ``main``.

    Tags of other things that the repository may hold, such as ``library/v1.2.3``, are left to git.
    """
    out = git(repo, "for-each-ref", "--format=%(objectname)\t%(refname)", "refs/tags/").out
    return _releases_in(out, _skills(repo, main))


def fetch_releases(
    repo: Repo, line: RemoteConnection, remote: str, main: str | None, *, dry_run: bool = False
) -> tuple[str, ...]:
    """Bring in and return the missing release tags of ``remote``, for the skills on its ``main``."""
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
        # a commit of someone's own, which fsck names
        return frozenset()


def _releases_in(out: bytes, skills: frozenset[str]) -> dict[str, str]:
    rows = (row.partition("\t") for row in out.decode(errors="replace").splitlines())
    return {name: oid for oid, _, name in rows if refs.is_release(name) and name.split("/")[2] in skills}
