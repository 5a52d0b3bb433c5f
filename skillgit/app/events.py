"""``skillgit events``: the events of a run as they stand in git, one after another."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from skillgit.app.log import Wanted, check_wanted
from skillgit.app.span import span_of
from skillgit.app.workspace import open_workspace
from skillgit.domain.event import Event, Inherited, event_name
from skillgit.index import queries, selection
from skillgit.index.selection import Selection
from skillgit.store.reader import read_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.context import Context
    from skillgit.app.workspace import Workspace
    from skillgit.store.record import Recorded

SCHEMA = "skillgit.event/1"
_AT_ONCE = 500


def events(context: Context, words: Sequence[str] = (), *, all_runs: bool = False) -> Iterator[dict[str, object]]:
    """Yield the events of a run or of a range of versions, oldest first, each as it was read from its commit.

    Only one event is held at a time.

    Raises:
        HistoryError: A commit cannot be read.
        RevisionNotFoundError: There is no such run or revision.
        UsageError: The words make no range of one run.
    """
    check_wanted(Wanted(words=words, all_runs=all_runs))
    with open_workspace(context) as workspace:
        for wanted in _selections(workspace, words, all_runs=all_runs):
            for commit in selection.commits(workspace.index, wanted, at_once=_AT_ONCE):
                yield _told(read_commit(workspace.repo, commit))


def _selections(workspace: Workspace, words: Sequence[str], *, all_runs: bool) -> Iterator[Selection]:
    index = workspace.index
    if all_runs:
        yield from (Selection(run=run) for run in sorted(queries.run_names(index)))
        return
    span = span_of(workspace, words)
    if span.run:
        yield span.selection(index)


def _told(recorded: Recorded) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "kind": event_name(recorded.event),
        "commit": recorded.commit,
        "parents": recorded.parents,
        "tree": recorded.tree,
        "branch": recorded.branch,
        "time": recorded.time,
        "evidence_tree": recorded.evidence,
        **_fields(recorded.event),
    }


def _fields(event: Event) -> dict[str, object]:
    found = {field.name: getattr(event, field.name) for field in fields(event)}
    # by its own name, so that nobody takes it for the version of an evaluation
    if isinstance(found.get("evaluation"), Inherited):
        found["evaluation"] = {"inherited_from": found["evaluation"].version}
    return found
