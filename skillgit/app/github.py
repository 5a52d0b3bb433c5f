"""A repository that is to be pushed to GitHub and does not exist there yet: who can create it, and how."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.store.exchange.github import create_repository
from skillgit.store.exchange.remotes import find_remote
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from skillgit.app.context import Context

_ADDRESS = re.compile(
    r"(?:https?://(?:[^@/]+@)?|ssh://(?:[^@/]+@)?|[^@/:]+@)github\.com[:/]+(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Creatable:
    """A repository of GitHub's that does not exist, as far as one can see.

    Attributes:
        name: ``owner/name``.
        by_gh: Whether GitHub's command line program is here to create it.
    """

    name: str
    by_gh: bool

    @property
    def hint(self) -> str:
        """What helps."""
        if self.by_gh:
            return f"skillgit push --yes creates it as a private repository: gh repo create {self.name} --private"
        return f"create {self.name} at https://github.com/new, without a README or a licence, and push again"


def creatable(context: Context, remote: str | None) -> Creatable | None:
    """Return what could be created so that a push to ``remote`` succeeds; None if it is not on GitHub.

    Raises:
        NotFoundError: There is no such remote.
    """
    found = find_remote(Repo.discover(context.directory), remote)
    match = _ADDRESS.fullmatch(_written(context, found.name) or found.push_url)
    if match is None:
        return None
    return Creatable(name=match["name"], by_gh=shutil.which("gh", path=context.environ.get("PATH")) is not None)


def create(context: Context, repository: Creatable) -> None:
    """Create ``repository``, private, with GitHub's command line program.

    Raises:
        RemoteError: It could not be created.
    """
    create_repository(repository.name, context.directory, context.environ)


def _written(context: Context, remote: str) -> str:
    """Return the address as it stands in git's configuration, before git rewrites it."""
    repo = Repo.discover(context.directory)
    return repo.config(f"remote.{remote}.pushurl") or repo.config(f"remote.{remote}.url")
