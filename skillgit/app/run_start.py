"""What a run was started with: its event, the items that it recorded, and which notes tell of them as it measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split, item_set_digest
from skillgit.domain.event import RunStarted
from skillgit.index import item_queries, queries
from skillgit.store.evidence import read_evidence
from skillgit.store.reader import read_commit

if TYPE_CHECKING:
    from skillgit.app.noted_outcomes import NotedOutcomes
    from skillgit.app.workspace import Workspace

_SPLITS = "splits.json"


def started(workspace: Workspace, run: str) -> RunStarted | None:
    """Return the event that started ``run``."""
    row = queries.row_of_version(workspace.index, run, 0)
    event = read_commit(workspace.repo, row.commit).event if row is not None else None
    return event if isinstance(event, RunStarted) else None


def recorded_items(workspace: Workspace, run: str, split: Split) -> dict[str, str] | None:
    """Return item to the digest of its content as ``run`` recorded them at its start; None where that is not here."""
    start = queries.row_of_version(workspace.index, run, 0)
    tree = item_queries.evidence_of_commit(workspace.index, start.commit) if start is not None else ""
    content = (read_evidence(workspace.repo, tree, (_SPLITS,)) or {}).get(_SPLITS, b"null")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    rows = document.get(split.value) if isinstance(document, dict) else None
    if not isinstance(rows, list):
        return None
    return {str(row.get("id")): str(row.get("digest")) for row in rows if isinstance(row, dict)}


class AsMeasured:
    """Tells which notes measured what ``run`` did: the same items, scored alike, under its target."""

    def __init__(self, workspace: Workspace, run: str) -> None:
        self._workspace = workspace
        self._run = run
        self._start = started(workspace, run)
        self._skill = workspace.index.skill_path(run)
        self._items: dict[Split, dict[str, str] | None] = {}

    def counts(self, note: NotedOutcomes) -> bool:
        """Say whether ``note`` tells of items of the run as the run measured them."""
        start = self._start
        if start is None or (note.target, note.environment) != (start.models.target, start.environment):
            return False
        if note.judge not in {"", start.models.judge.rpartition("@")[0]} or note.skill not in {"", self._skill}:
            return False
        # a line without scores stands on the commit because its items were found to be the run's
        return note.item_set in {"", self._set_of(note)} or self.is_whole(note)

    def is_whole(self, note: NotedOutcomes) -> bool:
        """Say whether ``note`` tells of all items of its split, of which some may have failed to evaluate."""
        known = self._recorded(note.split)
        if known:
            return note.item_set == item_set_digest(known)
        return note.item_set in item_queries.item_sets(self._workspace.index, self._run, note.split)

    def _set_of(self, note: NotedOutcomes) -> str | None:
        known = self._recorded(note.split)
        if known is None or not note.outcomes.keys() <= known.keys():
            return None
        return item_set_digest({item: known[item] for item in note.outcomes})

    def _recorded(self, name: str) -> dict[str, str] | None:
        try:
            split = Split(name)
        except ValueError:
            return None
        if split not in self._items:
            self._items[split] = recorded_items(self._workspace, self._run, split)
        return self._items[split]
