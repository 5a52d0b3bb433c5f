"""``skillgit gc``: fold the branches of refused candidates into an attic, and drop old evidence."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from skillgit.app.upkeep.requests import GcRequest
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ConflictError, UsageError
from skillgit.index import queries
from skillgit.store import evidence, git_binary, history_reader, refs
from skillgit.store import history as attic
from skillgit.store.lock import RunLock

_DAYS = re.compile(r"(?P<days>\d+)\s*(?:d|days?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidied:
    """What was done to a run, or would be."""

    run: str
    folded: int = 0
    unfolded: int = 0
    attic: int = 0
    dropped: int = 0
    freed: int = 0  # bytes of that evidence before compression; git frees them when it prunes
    left: str = ""  # why nothing was done to it; empty if something was, or nothing had to be


def gc(context: Context, request: GcRequest) -> tuple[Tidied, ...]:
    """Tidy up finished runs and return what was done to each."""
    if not (request.fold or request.unfold or request.evidence_older):
        raise UsageError("choose what to tidy up: --fold, --unfold or --evidence-older", hint="skillgit gc --fold")
    if request.fold and request.unfold:
        raise UsageError("--fold and --unfold undo each other", hint="choose one of them")
    with Workspace(context) as workspace:
        before = _moment(workspace, request.evidence_older) if request.evidence_older else None
        names = [find_run(workspace, run) for run in request.runs] or list(queries.run_names(workspace.index))
        return tuple(_tidied(workspace, run, request, before) for run in names)


def _tidied(workspace: Workspace, run: str, request: GcRequest, before: datetime | None) -> Tidied:
    repo, dry = workspace.repo, request.dry_run
    if reason := _unfit(workspace, run):
        if request.runs:
            raise ConflictError(f"run {run} {reason}", hint="skillgit train goes on with it; then fold it")
        return Tidied(run=run, left=f"it {reason}")
    fold_count = unfold_count = drop_count = byte_count = 0
    with nullcontext() if dry else RunLock(repo, run, workspace.context.clock):
        if request.fold:
            fold_count = len(attic.foldable(run, repo.tips()) if dry else attic.fold(repo, run))
        if request.unfold:
            unfold_count = _attic(workspace, run) if dry else len(attic.unfold(repo, run))
        if before is not None:
            records = history_reader.read_run(repo, run)
            old, byte_count = evidence.droppable(repo, run, records, before=before, exempt=evidence.spared(records))
            if old and not dry:
                evidence.drop(repo, run, records, old, workspace.context.clock)
            drop_count = len(old)
    return Tidied(
        run=run,
        folded=fold_count,
        unfolded=unfold_count,
        attic=_attic(workspace, run),
        dropped=drop_count,
        freed=byte_count,
    )


def _unfit(workspace: Workspace, run: str) -> str:
    if refs.run_branch(run) not in workspace.repo.tips():
        return "is another repository's, fetched from there"
    row = queries.run_row(workspace.index, run, {})
    return "" if row is not None and row.outcome else "has not finished"


def _attic(workspace: Workspace, run: str) -> int:
    tip = workspace.repo.tip(refs.attic_ref(run))
    return len(attic.read_attic(workspace.repo, tip)) if tip else 0


def _moment(workspace: Workspace, text: str) -> datetime:
    if text.strip().startswith("-"):
        raise UsageError(f"'{text}' is not a valid age", hint="write it like 30, which are days, or 2026-11-21")
    days = _DAYS.fullmatch(text.strip())
    if days is not None:
        return workspace.context.clock() - timedelta(days=int(days["days"]))
    return datetime.fromtimestamp(git_binary.moment(workspace.repo, text, workspace.context.clock()), UTC)
