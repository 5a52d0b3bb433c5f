"""What a run measures by, and what keeps a noted evaluation from being one of the run's own."""

from __future__ import annotations

from typing import Literal

from skillgit.domain.evaluation import item_set_digest
from skillgit.domain.event import RunStarted
from skillgit.domain.untrusted.json_limits import loads
from skillgit.index import item_queries
from skillgit.index.refresh import Index
from skillgit.store.evidence import read_evidence
from skillgit.store.history_reader import read_commit

Otherwise = Literal["model", "server", "environment", "judge", "items", "configuration"]
"""What a noted evaluation differs in from the measurements of the run; `configuration` where nothing else tells why."""

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
        self._start: RunStarted | None = None
        self._evidence = ""
        for commit, evidence in index.select(_START, (run,)):
            event = read_commit(index.repo, commit).event
            self._start, self._evidence = (event if isinstance(event, RunStarted) else None), evidence or ""
        self._setup = str(self._document(_ENVIRONMENT).get("setup") or "")
        self._splits = self._document(_SPLITS)
        self._sets: dict[str, frozenset[str]] = {}

    def differing(
        self, *, split: str, item_set: str, target: str, environment: str, judge: str, served: str, setup: str
    ) -> tuple[Otherwise, ...]:
        """Return what a note with these fields measured otherwise than the run; nothing where it measured alike."""
        start, differs = self._start, list[Otherwise]()
        if start is not None:
            own, judge_name = start.served_as("target"), start.models.judge.rpartition("@")[0] or start.models.judge
            if target not in {"", start.models.target}:
                differs.append("model")
            elif own is not None and served != own.digest:
                differs.append("server")
            if environment not in {"", start.environment}:
                differs.append("environment")
            if judge not in {"", judge_name}:
                differs.append("judge")
        if not differs and self._setup and setup not in {"", self._setup}:
            differs.append("configuration")
        sets = self._item_sets(split)
        if sets and item_set not in sets:
            differs.append("items")
        return tuple(differs)

    def _item_sets(self, split: str) -> frozenset[str]:
        """Return the digests that all items of ``split`` have in this run; none where they are not known here."""
        if split not in self._sets:
            rows = self._splits.get(split)
            items = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            recorded = {str(row.get("id")): str(row.get("digest")) for row in items}
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
