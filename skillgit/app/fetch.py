"""``skillgit fetch``: bring in what another repository has, beside what is here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.connection import Listener, line_for, shown_address
from skillgit.app.workspace import open_workspace
from skillgit.store.exchange.fetching import FetchedRef
from skillgit.store.exchange.fetching import fetch as fetch_refs
from skillgit.store.exchange.remotes import find_remote

if TYPE_CHECKING:
    from skillgit.app.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came in.

    Attributes:
        remote: The remote.
        url: Its address, without credentials.
        refs: The refs that are new there or have moved since the last time.
    """

    remote: str
    url: str
    refs: tuple[FetchedRef, ...]


def fetch(
    context: Context,
    remote: str | None = None,
    *,
    rejected: bool = False,
    evidence: bool = False,
    listener: Listener | None = None,
) -> Fetched:
    """Bring in the runs of a remote as tracking copies; nothing of this repository's own moves.

    Args:
        context: Where to look.
        remote: The remote; None for ``origin``, or the only one.
        rejected: Whether its rejected candidates come too.
        evidence: Whether evidence comes too.
        listener: Who hears of it.

    Raises:
        NotFoundError: There is no such remote.
        RemoteError: It could not be reached, or refused.
    """
    with open_workspace(context) as workspace:
        repo = workspace.repo
        found = find_remote(repo, remote)
        moved = fetch_refs(
            repo, line_for(context, listener or Listener()), found.name, rejected=rejected, evidence=evidence
        )
        workspace.index.refresh()
        return Fetched(remote=found.name, url=shown_address(found.url), refs=moved)
