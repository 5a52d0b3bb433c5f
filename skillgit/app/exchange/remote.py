"""Other repositories: creating one on GitHub, and the remotes known by name."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from skillgit.app.exchange.connection import Listener, check_address, line_for, shown_address
from skillgit.app.workspace.context import Context
from skillgit.store import refs
from skillgit.store.exchange import remotes as stored
from skillgit.store.exchange.remotes import find_remote
from skillgit.store.exchange.sending import advertised, snapshot
from skillgit.store.exchange.transport import create_repository
from skillgit.store.repo import Repo

_ADDRESS = re.compile(
    r"(?:https?://(?:[^@/]+@)?|ssh://(?:[^@/]+@)?|[^@/:]+@)github\.com[:/]+(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Creatable:
    """A repository of GitHub's that does not exist, as far as one can see."""

    name: str  # `owner/name`
    by_gh: bool  # whether GitHub's command line program is here to create it

    @property
    def hint(self) -> str:
        if self.by_gh:
            return f"skillgit push --yes creates it as a private repository: gh repo create {self.name} --private"
        return f"create {self.name} at https://github.com/new, without a README or a licence, and push again"


def creatable(context: Context, remote: str | None) -> Creatable | None:
    """Return what could be created so that a push to ``remote`` succeeds; None if it is not on GitHub."""
    known_remote = find_remote(Repo.discover(context.directory), remote)
    match = _ADDRESS.fullmatch(_written(context, known_remote.name) or known_remote.push_url)
    if match is None:
        return None
    return Creatable(name=match["name"], by_gh=shutil.which("gh", path=context.environ.get("PATH")) is not None)


def create(context: Context, repository: Creatable) -> None:
    create_repository(repository.name, context.directory, context.environ)


def _written(context: Context, remote: str) -> str:
    """Return the address as it is in git's configuration, before git rewrites it."""
    repo = Repo.discover(context.directory)
    return repo.config(f"remote.{remote}.pushurl") or repo.config(f"remote.{remote}.url")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRow:
    name: str
    url: str  # where it is fetched from, without credentials
    push_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunThere:
    """A run that a remote has, or that is here and not there."""

    run: str
    # `same`; `ahead` or `behind`, this repository that is; `diverged`; `unknown`, where the remote has something that
    # was not fetched; `only-here`; `only-there`
    state: str
    rejected: int
    attic: bool
    evidence: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteShown:
    remote: RemoteRow
    branches: int
    notes: bool
    runs: tuple[RunThere, ...]


def remotes(context: Context) -> tuple[RemoteRow, ...]:
    """Return the remotes in the order of their names."""
    return tuple(_row(entry) for entry in stored.remotes(Repo.discover(context.directory)))


def add(context: Context, name: str, url: str) -> RemoteRow:
    check_address(url)
    repo = Repo.discover(context.directory)
    stored.add_remote(repo, name, url)
    return _row(stored.find_remote(repo, name))


def set_url(context: Context, name: str, url: str) -> RemoteRow:
    check_address(url)
    repo = Repo.discover(context.directory)
    stored.set_url(repo, name, url)
    return _row(stored.find_remote(repo, name))


def remove(context: Context, name: str) -> int:
    """Remove a remote and the copies of its refs, and return the number of those."""
    return stored.remove_remote(Repo.discover(context.directory), name)


def show(context: Context, name: str | None, listener: Listener | None = None) -> RemoteShown:
    """Ask a remote what it has, and compare."""
    repo = Repo.discover(context.directory)
    remote = stored.find_remote(repo, name)
    there = advertised(repo, line_for(context, listener or Listener()), remote.name)
    here = snapshot(repo)
    names = {ref.run for ref in map(refs.parse, (*there, *here)) if ref is not None and ref.kind is refs.RefKind.RUN}
    return RemoteShown(
        remote=_row(remote),
        branches=sum(ref.startswith("refs/heads/") for ref in there),
        notes=refs.NOTES in there,
        runs=tuple(_run(repo, run, here, there) for run in sorted(names)),
    )


def _run(repo: Repo, run: str, here: Mapping[str, str], there: Mapping[str, str]) -> RunThere:
    line = refs.run_branch(run)
    return RunThere(
        run=run,
        state=_state(repo, here.get(line), there.get(line)),
        rejected=sum(ref.startswith(f"refs/heads/rejected/{run}/") for ref in there),
        attic=refs.attic_ref(run) in there,
        evidence=refs.evidence_ref(run) in there,
    )


def _state(repo: Repo, mine: str | None, theirs: str | None) -> str:
    if mine is None or theirs is None:
        return "only-there" if mine is None else "only-here"
    if mine == theirs:
        return "same"
    if not repo.has_object(theirs):
        return "unknown"
    if repo.reaches(mine, theirs):
        return "ahead"
    return "behind" if repo.reaches(theirs, mine) else "diverged"


def _row(entry: stored.Remote) -> RemoteRow:
    return RemoteRow(name=entry.name, url=shown_address(entry.url), push_url=shown_address(entry.push_url))
