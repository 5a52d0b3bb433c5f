"""What a run was started with: its event, the items that it recorded, and which notes tell of them as it measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split, item_set_digest
from skillgit.domain.event import RunStarted
from skillgit.domain.untrusted.documents import loads
from skillgit.index import item_queries, queries
from skillgit.store.evidence import read_evidence
from skillgit.store.reader import read_commit

if TYPE_CHECKING:
    from skillgit.app.noted_outcomes import NotedOutcomes
    from skillgit.app.setup import Setup
    from skillgit.app.workspace import Workspace
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_SPLITS, _ENVIRONMENT = "splits.json", "environment.json"


def started(workspace: Workspace, run: str) -> RunStarted | None:
    """Return the event that started ``run``."""
    record = start_record(workspace, run)
    return record.event if record is not None and isinstance(record.event, RunStarted) else None


def start_record(workspace: Workspace, run: str) -> Recorded | None:
    """Return the first record of ``run``; None where it is not here."""
    row = queries.row_of_version(workspace.index, run, 0)
    return read_commit(workspace.repo, row.commit) if row is not None else None


def recorded_items(workspace: Workspace, run: str, split: Split) -> dict[str, str] | None:
    """Return item to the digest of its content as ``run`` recorded them at its start; None where that is not here."""
    rows = _document(workspace.repo, _evidence(workspace, run), _SPLITS).get(split.value)
    if not isinstance(rows, list):
        return None
    return {str(row.get("id")): str(row.get("digest")) for row in rows if isinstance(row, dict)}


def recorded_setup(workspace: Workspace, run: str) -> str:
    """Return the digest of the setup of ``run``; empty where it is not here, or the run did not record it."""
    return str(_document(workspace.repo, _evidence(workspace, run), _ENVIRONMENT).get("setup") or "")


def environment_change(repo: Repo, start: Recorded, setup: Setup) -> str:
    """Return what keeps outcomes of ``setup`` from being compared with those of a run, in a sentence; empty if nothing.

    Another version of an installed package is no change where the environment's own digest is the same: that is its
    author's word for it.

    Args:
        repo: The repository.
        start: The record that started the run.
        setup: What is configured now.
    """
    event, task = start.event, setup.task
    # Runs from before sources counted have recorded the environment's own digest alone.
    if not isinstance(event, RunStarted) or event.environment in {task.digest, task.environment.digest}:
        return ""
    recorded = _document(repo, start.evidence, _ENVIRONMENT)
    plugin, now = recorded.get("plugin"), task.source
    if isinstance(plugin, dict) and now is not None:
        if plugin.get("code") != now.code:
            return f"the source of environment {task.environment.info.name} has changed since run {event.run} began"
        if not now.code and plugin.get("name") == now.name and recorded.get("own") == task.environment.digest:
            return ""
    return f"the environment is not the one that run {event.run} was trained with"


def _evidence(workspace: Workspace, run: str) -> str:
    start = queries.row_of_version(workspace.index, run, 0)
    return item_queries.evidence_of_commit(workspace.index, start.commit) if start is not None else ""


def _document(repo: Repo, evidence: str, name: str) -> dict[str, object]:
    """Return a file of a run's first event; empty where it is not here or cannot be read."""
    try:
        document = loads((read_evidence(repo, evidence, (name,)) or {}).get(name, b"null"))
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


class AsMeasured:
    """Tells which notes measured what ``run`` did: the same items, scored alike, under its target."""

    def __init__(self, workspace: Workspace, run: str) -> None:
        self._workspace = workspace
        self._run = run
        self._start = started(workspace, run)
        self._setup = recorded_setup(workspace, run)
        self._skill = workspace.index.skill_path(run)
        self._items: dict[Split, dict[str, str] | None] = {}

    def counts(self, note: NotedOutcomes) -> bool:
        """Say whether ``note`` tells of items of the run as the run measured them."""
        start = self._start
        if start is None or (note.target, note.environment) != (start.models.target, start.environment):
            return False
        if self._setup and note.setup not in {"", self._setup}:
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
