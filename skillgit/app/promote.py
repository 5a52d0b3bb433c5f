"""``skillgit promote``: a version becomes what ``main`` holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.evaluations import known_evaluations
from skillgit.app.version_named import version_in
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.domain.evaluation import Metric, Scored, Split
from skillgit.errors import ConflictError
from skillgit.index import queries
from skillgit.store import promotion
from skillgit.store.lock import RunLock

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.index.queries import Gauge
    from skillgit.index.rows import LogRow

_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """What ``main`` holds now.

    Attributes:
        run: The run.
        version: The version.
        skill: The skill folder.
        score: Its score on the selection split under the run's metric; absent if nobody has measured it.
        test: Its newest score on the test split under the same metric; absent if nobody has looked.
        before: What ``main`` held until now, as ``<run>/v<N>``; empty if that was no promotion.
        commit: The merge commit; empty if nothing was written.
        held: Whether ``main`` held the version's text already.
    """

    run: str
    version: int
    skill: str
    score: float | None
    test: float | None
    before: str = ""
    commit: str = ""
    held: bool = False


def promote(context: Context, revision: str, *, force: bool = False, dry_run: bool = False) -> Promoted:
    """Bring a version to ``main`` with a merge commit.

    Args:
        context: Where to look.
        revision: The version.
        force: Whether to replace a text that somebody changed on ``main`` by hand.
        dry_run: Whether only to say what would be done.

    Raises:
        ConflictError: Somebody changed the skill on ``main`` by hand, or a work tree has changes that would be lost.
        RevisionNotFoundError: The revision names nothing, or there is no ``main``.
        RunLockedError: A live process writes the run.
        UsageError: It names no version.
    """
    with open_workspace(context) as workspace:
        row = version_in(workspace, revision)
        with RunLock(workspace.repo, row.run, context.clock):
            return _promote(context, workspace, row, force=force, dry_run=dry_run)


def _promote(context: Context, workspace: Workspace, row: LogRow, *, force: bool, dry_run: bool) -> Promoted:
    repo, path = workspace.repo, workspace.index.skill_path(row.run)
    promotion.main_tip(repo)
    last = promotion.last_change(repo, path)
    held = promotion.holds(repo, path, row.commit)
    gauge = queries.gauge(workspace.index, row.run)
    test = _test_score(workspace, row, gauge)
    if not held and not force:
        _check_not_by_hand(workspace, row, path, last)
    commit = ""
    if dry_run and not held:
        promotion.check_work_trees(repo, path, row.commit)
    elif not held:
        name = f"{row.run}/v{row.version}"
        commit = promotion.promote(
            repo,
            path,
            row.commit,
            _message(row, path, gauge, test),
            time=context.clock(),
            reason=f"skillgit: promote {name}",
        )
        workspace.index.refresh()
    return Promoted(
        run=row.run,
        version=row.version or 0,
        skill=path,
        score=row.score,
        test=test,
        before=last.promoted if last is not None else "",
        commit=commit,
        held=held,
    )


def _check_not_by_hand(workspace: Workspace, row: LogRow, path: str, last: promotion.LastChange | None) -> None:
    """Refuse to replace what somebody wrote on ``main`` after the version's line left it."""
    if last is None or last.promoted or workspace.repo.reaches(row.commit, last.commit):
        return
    seed = queries.row_of_version(workspace.index, row.run, 0)
    if seed is not None and promotion.holds(workspace.repo, path, seed.commit):
        return
    raise ConflictError(
        f"{path} was changed on main by hand since: {last.commit[:_SHORT]} {last.subject}",
        hint=f"git diff {row.commit[:_SHORT]} main -- {path} shows the difference; --force replaces it",
    )


def _test_score(workspace: Workspace, row: LogRow, gauge: Gauge) -> float | None:
    """Return the newest score of the version on the test split, from the end of its run or from a note."""
    known = [found for found in known_evaluations(workspace, row.commit, row) if found.split == Split.TEST.value]
    if not known:
        return None
    return Scored(known[-1].hard, known[-1].soft).value(gauge.metric, gauge.soft_weight)


def _message(row: LogRow, path: str, gauge: Gauge, test: float | None) -> str:
    name = f"{row.run}/v{row.version}"
    metric = gauge.metric.value if gauge.metric is not Metric.MIXED else f"mixed ({gauge.soft_weight:g} soft)"
    scores = [
        f"{split}: {metric} {score:.4f}"
        for split, score in (("selection", row.score), ("test", test))
        if score is not None
    ]
    told = "\n".join(scores) or "Nobody has measured it."
    return (
        f"promote {name}: {row.title}\n\n{path} is that of version {row.version} of run {row.run}.\n\n{told}\n\n"
        f"Skillgit-{promotion.TRAILER}: {name}\n"
    )
