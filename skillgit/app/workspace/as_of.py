"""``--as-of``: a workspace as it stood right after an event."""

from __future__ import annotations

from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.index.as_of_views import PastIndex


def cut_off(workspace: Workspace, revision: str) -> Workspace:
    """Return ``workspace`` as it stood right after the event that ``revision`` names."""
    index = PastIndex(workspace.index, event_in(workspace, revision).commit)
    return Workspace(repo=index.repo, index=index, past=True)
