"""``skillgit status``: where things stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.diagnosis import Diagnosis, of_run
from skillgit.app.revision import default_run
from skillgit.app.unfinished import Unfinished, unfinished
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.domain.event import RunFinished
from skillgit.index import queries
from skillgit.store.exchange.unpushed import unpushed
from skillgit.store.promotion import last_change
from skillgit.store.reader import read_commit

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.app.context import Context
    from skillgit.domain.placebo import Placebo
    from skillgit.index.rows import LogRow, RunRow
    from skillgit.store.exchange.unpushed import Unpushed

_SHORT = 12
_LOOKED_BACK = 500
"""Commits of ``main`` that are looked through for a promotion: few enough not to be waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Where things stand.

    Attributes:
        repository: The work tree, or the repository itself if it has none.
        run: The default run; absent if there is no run.
        head: Its newest version.
        best: Its best version.
        runs: Number of runs.
        checked_out: What the work tree holds: a branch, ``<run>/v<N>`` or a short commit id; empty without commits.
        live: The runs that are being trained on this machine now.
        broken: Names of the runs whose history cannot be read; nothing else here speaks of them.
        index_fresh: Whether the index on disk is up to date; otherwise a stand-in in memory answered.
        promoted: The version whose text ``main`` holds since it was promoted; empty without one, and in the past.
        diagnosis: Why the default run gets nowhere; None if it does, or is finished.
        placebo: What the gate of the default run made of candidates that change nothing; None if there were none.
        unfinished: What the default run spent on events that are not recorded yet; None where that is not known.
        unpushed: The runs with work that the usual remote does not have; empty without a remote, and in the past.
    """

    repository: Path
    run: RunRow | None
    head: LogRow | None
    best: LogRow | None
    runs: int
    checked_out: str
    live: tuple[RunRow, ...]
    broken: tuple[str, ...] = ()
    index_fresh: bool
    promoted: str = ""
    placebo: Placebo | None = None
    diagnosis: Diagnosis | None = None
    unfinished: tuple[Unfinished, ...] | None = None
    unpushed: tuple[Unpushed, ...] = ()


def status(context: Context) -> Status:
    """Return where things stand.

    Raises:
        RepositoryNotFoundError: There is no repository.
    """
    with open_workspace(context) as workspace:
        live = workspace.live()
        runs = queries.run_rows(workspace.index, live)
        chosen = default_run(workspace)
        run = next((run for run in runs if run.name == chosen), None)
        return Status(
            repository=workspace.repo.workdir or workspace.repo.common_dir,
            run=run,
            head=queries.head_row(workspace.index, chosen) if chosen else None,
            best=queries.best_row(workspace.index, chosen) if chosen else None,
            runs=len(runs),
            checked_out=_checked_out(workspace),
            live=tuple(run for run in runs if run.running_pid is not None),
            broken=tuple(sorted(workspace.index.broken)),
            index_fresh=workspace.index.on_disk,
            promoted=_promoted(workspace, run.skill) if run is not None and not workspace.past else "",
            placebo=_placebo(workspace, chosen) if chosen else None,
            diagnosis=of_run(workspace, chosen) if chosen else None,
            unfinished=unfinished(workspace, [chosen]) if chosen else None,
            unpushed=() if workspace.past else unpushed(workspace.repo),
        )


def _promoted(workspace: Workspace, skill: str) -> str:
    last = last_change(workspace.repo, skill, _LOOKED_BACK)
    return last.promoted if last is not None else ""


def _placebo(workspace: Workspace, run: str) -> Placebo | None:
    rows = queries.log_rows(workspace.index, run, kinds=frozenset({"run-finished"}), limit=1)
    event = read_commit(workspace.repo, rows[0].commit).event if rows else None
    return event.placebo if isinstance(event, RunFinished) else None


def _checked_out(workspace: Workspace) -> str:
    branch, commit = workspace.repo.head()
    if branch or not commit:
        return branch
    row = queries.row_of_commit(workspace.index, commit)
    return commit[:_SHORT] if row is None else str(row.address)
