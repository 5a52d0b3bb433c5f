"""The outcomes of items that a run recorded for one of its versions, split by split, as far as they are here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.app.item_history import started
from skillgit.app.noted_outcomes import noted_outcomes
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Scored, Split
from skillgit.index import artefacts, item_queries, known, queries, score_queries
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.workspace import Workspace
    from skillgit.domain.evaluation import Outcome
    from skillgit.index.rows import LogRow

_SPLITS = "splits.json"


def recorded_outcomes(workspace: Workspace, row: LogRow, split: Split) -> Evaluation | None:
    """Return what the run's own target did on the items of ``split`` under the version or candidate in ``row``.

    Selection outcomes are those of its event, test outcomes those of the run's end; where there are none, a note may
    tell them. None is returned where they are not here, or were inherited and so are those of another text.
    """
    found = event_outcomes(workspace, row, split) or _noted(workspace, row, split)
    return Evaluation(split=split, item_set="", outcomes=found, seed=0) if found else None


def event_outcomes(workspace: Workspace, row: LogRow, split: Split) -> Mapping[str, Outcome]:
    """Return what events of the run tell of the very text in ``row``; nothing where they tell of another one's."""
    if split is Split.SELECTION and is_own(row):
        return _selection(workspace, row)
    if split is Split.TEST and row.version is not None:
        return _test(workspace, row.run, row.version)
    return {}


def is_own(row: LogRow) -> bool:
    """Say whether the score of ``row`` is that of its very text: it was measured, or was taken over with the text."""
    return row.measured or row.kind in item_queries.SAME_TEXT


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


def _selection(workspace: Workspace, row: LogRow) -> dict[str, Outcome]:
    return {
        found.item: FailedToEvaluate(found.failed or "failed")
        if found.hard is None or found.soft is None
        else Scored(found.hard, found.soft)
        for found in queries.item_rows(workspace.index, row)
    }


def _test(workspace: Workspace, run: str, version: int) -> dict[str, Outcome]:
    name = f"test-v{version}.json"
    for commit in score_queries.finished_commits(workspace.index, run):
        tree = item_queries.evidence_of_commit(workspace.index, commit)
        files = read_evidence(workspace.repo, tree, (name,)) or {}
        if name in files:
            rows = artefacts.outcomes({artefacts.SELECTION: files[name]})
            return {
                item: FailedToEvaluate(why or "failed") if hard is None or soft is None else Scored(hard, soft)
                for item, _, hard, soft, why in rows
            }
    return {}


def _noted(workspace: Workspace, row: LogRow, split: Split) -> dict[str, Outcome]:
    start = started(workspace, row.run)
    for line in known.note_lines(workspace.index, row.commit):
        told = noted_outcomes(line)
        if told is None or start is None or told.split != split.value:
            continue
        if (told.target, told.environment) == (start.models.target, start.environment):
            return dict(told.outcomes)
    return {}
