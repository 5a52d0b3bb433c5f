"""The outcomes of items that a run recorded for one of its versions, split by split, as far as they are here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.app.noted_outcomes import noted_outcomes
from skillgit.app.run_start import AsMeasured
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Scored, Split
from skillgit.errors import SkillgitError
from skillgit.index import artefacts, item_queries, known, queries, score_queries
from skillgit.store.evidence import read_evidence
from skillgit.store.gates import version_outcomes
from skillgit.store.reader import read_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.workspace import Workspace
    from skillgit.domain.evaluation import Outcome
    from skillgit.index.rows import ItemRow, LogRow


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


def item_rows(workspace: Workspace, row: LogRow) -> tuple[ItemRow, ...]:
    """Return the outcomes of items behind an event's score, by name; of items that failed, what is known by now.

    An item of a version that failed at first may have been measured again when a candidate was compared with it.
    """
    rows = queries.item_rows(workspace.index, row)
    if row.version is None or not any(found.failed for found in rows):
        return rows
    try:
        again = version_outcomes(workspace.repo, read_run(workspace.repo, row.run)).of(row.version) or {}
    except SkillgitError:  # what cannot be read tells nothing; fsck says why
        return rows
    return tuple(
        replace(found, hard=outcome.hard, soft=outcome.soft, failed="")
        if found.failed and isinstance(outcome := again.get(found.item), Scored)
        else found
        for found in rows
    )


def _selection(workspace: Workspace, row: LogRow) -> dict[str, Outcome]:
    return {
        found.item: FailedToEvaluate(found.failed or "failed")
        if found.hard is None or found.soft is None
        else Scored(found.hard, found.soft)
        for found in item_rows(workspace, row)
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
    lines = known.note_lines(workspace.index, row.commit)
    run = AsMeasured(workspace, row.run) if lines else None
    for told in filter(None, map(noted_outcomes, lines)):
        if run is not None and told.split == split.value and run.counts(told):
            return dict(told.outcomes)
    return {}
