"""Other repositories: creating one on GitHub, and the remotes known by name."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace

from skillgit.app.workspace.context import Context
from skillgit.plugin.redaction import redact
from skillgit.store.exchange import remotes as stored
from skillgit.store.exchange.remotes import Remote as Remote  # noqa: PLC0414 - what a list of remotes holds
from skillgit.store.exchange.remotes import find_remote
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
    repo = Repo.discover(context.directory)
    match = _ADDRESS.fullmatch(find_remote(repo, remote).configured_push_urls(repo)[1][0])
    if match is None:
        return None
    return Creatable(name=match["name"], by_gh=shutil.which("gh", path=context.environ.get("PATH")) is not None)


def create(context: Context, repository: Creatable) -> None:
    create_repository(repository.name, context.directory, context.environ)


def remotes(context: Context) -> tuple[Remote, ...]:
    """Return the remotes in the order of their names, with addresses that hold no credentials."""
    return tuple(
        replace(remote, url=redact(remote.url), push_url=redact(remote.push_url))
        for remote in stored.remotes(Repo.discover(context.directory))
    )
