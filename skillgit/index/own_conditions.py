"""What a run measures by, and what keeps a noted evaluation from being one of the run's own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from skillgit.domain.evaluation import item_set_digest
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.untrusted.json_limits import loads
from skillgit.index import item_queries
from skillgit.index.refresh import Index
from skillgit.store.evidence import read_evidence
from skillgit.store.history_reader import read_commit

Otherwise = Literal["model", "server", "environment", "judge", "items", "configuration"]
"""What a noted evaluation differs in from the run's measurements; `configuration` where nothing else explains it."""

_SPLITS, _ENVIRONMENT = "splits.json", "environment.json"
_START = "SELECT e.oid, e.evidence FROM version v JOIN event e ON e.id = v.event WHERE v.run = ? AND v.version = 0"


class OwnConditions:
    """The target, server, environment, judge, configuration and items of ``run``.

    Only a note that agrees in all of them may stand for a score of the run. What one side does not record is no
    difference: notes of older versions name less.
    """

    def __init__(self, index: Index, run: str) -> None:
        self._index = index
        self._run = run
        self._start: Event | None = None
        self._evidence = ""
        for commit, evidence in index.select(_START, (run,)):
            event = read_commit(index.repo, commit).event
            self._start, self._evidence = (event if event.kind is EventKind.RUN_STARTED else None), evidence or ""
        self._setup = str(self._document(_ENVIRONMENT).get("setup") or "")
        self._splits = self._document(_SPLITS)
        self._sets: dict[str, frozenset[str]] = {}

    def differing(self, *, split: str, item_set: str, **conditions: str) -> tuple[Otherwise, ...]:
        """Return what a note with these fields measured otherwise than the run; nothing where it measured alike."""
        differs, sets = self._other_conditions(**conditions), self._item_sets(split)
        return (*differs, "items") if sets and item_set not in sets else differs

    def counts(self, *, split: str, item_set: str, skill: str, items: Collection[str], **conditions: str) -> bool:
        """Say whether outcomes of ``items`` were measured as the run measured them, be they all of its items or some.

        A line without scores names no set: its items were found to be the run's when it was written.
        """
        if self._start is None or self._other_conditions(**conditions):
            return False
        if skill not in {"", self._index.skill_path(self._run)}:
            return False
        recorded = self.recorded(split)
        if recorded and recorded.keys() >= set(items):
            own = item_set_digest({item: recorded[item] for item in items})
            return item_set in {"", own} or self.is_whole(split, item_set)
        return not item_set or self.is_whole(split, item_set)

    def is_whole(self, split: str, item_set: str) -> bool:
        """Say whether ``item_set`` is that of all items of ``split``."""
        return item_set in self._item_sets(split)

    def recorded(self, split: str) -> dict[str, str]:
        """Return item to the digest of its content as the run recorded them; empty where that is not here."""
        rows = self._splits.get(split)
        items = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return {str(row.get("id")): str(row.get("digest")) for row in items}

    def _other_conditions(
        self, *, target: str, environment: str, judge: str, served: str, setup: str
    ) -> tuple[Otherwise, ...]:
        start, differs = self._start, list[Otherwise]()
        # a line that names no server identifies it by the digest of its setup, which contains the server
        is_server_implied = not served and setup == self._setup != ""
        if start is not None:
            own, judge_name = start.served_as("target"), start.models.judge.rpartition("@")[0] or start.models.judge
            if target not in {"", start.models.target}:
                differs.append("model")
            elif own is not None and served != own.digest and not is_server_implied:
                differs.append("server")
            if environment not in {"", start.environment}:
                differs.append("environment")
            if judge not in {"", judge_name}:
                differs.append("judge")
        if not differs and self._setup and setup not in {"", self._setup}:
            differs.append("configuration")
        return tuple(differs)

    def _item_sets(self, split: str) -> frozenset[str]:
        """Return the digests that all items of ``split`` have in this run; none where they are not known here."""
        if split not in self._sets:
            recorded = self.recorded(split)
            own = {item_set_digest(recorded)} if recorded else set[str]()
            self._sets[split] = (item_queries.item_sets(self._index, self._run, split) | own) - {""}
        return self._sets[split]

    def _document(self, name: str) -> dict[str, object]:
        content = (read_evidence(self._index.repo, self._evidence, (name,)) or {}).get(name)
        try:
            document = loads(content or b"null")
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}
