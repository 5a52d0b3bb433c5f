"""Bring in history of another repository: pull and clone; nothing of this repository is overwritten."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from skillgit.app.exchange.connection import Listener, check_address, line_for
from skillgit.app.exchange.requests import PullRequest
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.errors import ConflictError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.plugin.redaction import redact
from skillgit.store import refs
from skillgit.store.exchange.merging import Joined as Joined  # noqa: PLC0414 - what a pull returns
from skillgit.store.exchange.merging import Joining, MergeTerms, adopt, adopt_trunk
from skillgit.store.exchange.remotes import FetchedRef as FetchedRef  # noqa: PLC0414 - as above
from skillgit.store.exchange.remotes import fetch, fetch_releases, find_remote, join_notes, pack, tracked
from skillgit.store.exchange.sending import RejectedMode, by_run
from skillgit.store.exchange.transport import check_out_trunk
from skillgit.store.exchange.transport import clone as clone_repository
from skillgit.store.history import run_names
from skillgit.store.repo import Repo
from skillgit.store.seals import note_asked
from skillgit.store.trunk import trunk

_TAKEN_IN = {Joining.NEW, Joining.FORWARD, Joining.UP_TO_DATE, Joining.AHEAD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    remote: str
    url: str  # its address, without credentials
    dry_run: bool
    main: Joined | None  # what happened to the trunk; absent if the remote has none
    runs: tuple[Joined, ...]
    notes: bool  # whether there are new notes, or would be
    heads: dict[str, int]  # run to its newest version here, for runs that diverged
    releases: tuple[str, ...] = ()  # the tags of releases that are new here, or would be
    trunk: str = "main"  # the branch that `main` speaks of
    fetched: tuple[FetchedRef, ...] = ()  # the remote's refs that are new, or have moved, since the last time

    @property
    def error(self) -> SkillgitError | None:
        """The error to end with: that of the first run, or of the trunk, which was left where it is."""
        for run in self.runs:
            if run.state is Joining.DIVERGED:
                return ConflictError(
                    f"run {run.run} has diverged, and was left as it is: {run.reason}",
                    hint=f"skillgit fork {run.run}/{version_label(self.heads.get(run.run, 0))} NAME keeps your line"
                    " as a run of its own; docs/sharing.md says how to take theirs then",
                )
        for run in (*self.runs, *([self.main] if self.main is not None else [])):
            if run.state in {Joining.REFUSED, Joining.DIVERGED}:
                name = f"run {run.run}" if run.run else self.trunk
                return ConflictError(f"{name} was left as it is: {run.reason}", hint="skillgit pull, once that is done")
        return None


def pull(context: Context, request: PullRequest, listener: Listener | None = None) -> Pulled:
    """Fetch, make runs that are unknown here, and fast-forward the others. What prevents it is reported."""
    with Workspace(context) as workspace:
        remote = find_remote(workspace.repo, request.remote)  # of CI, with a token in it
        with_rejected = RejectedMode(request.rejected_mode) is not RejectedMode.NONE
        line = line_for(context, listener or Listener())
        evidence = request.evidence
        fetched = fetch(workspace.repo, line, remote.name, with_rejected=with_rejected, evidence=evidence)
        result = take_in(workspace, request, name=remote.name, url=remote.url)
        main = tracked(workspace.repo, remote.name).get(trunk(workspace.repo))
        tags = fetch_releases(workspace.repo, line, remote.name, main, dry_run=request.dry_run)
        return replace(result, fetched=fetched, releases=tuple(map(refs.short, tags)))


def take_in(workspace: Workspace, request: PullRequest, *, name: str, url: str) -> Pulled:
    """Fast-forward what is here to what was fetched from the remote ``name``."""
    repo, there = workspace.repo, tracked(workspace.repo, name)
    terms = MergeTerms(
        remote=name,
        rejected_mode=RejectedMode(request.rejected_mode),
        clock=workspace.context.clock,
        dry_run=request.dry_run,
    )
    bulk = frozenset() if request.evidence else frozenset({refs.RefKind.EVIDENCE, refs.RefKind.DROPPED})
    theirs = {name: oid for name, oid in there.items() if (ref := refs.parse(name)) is None or ref.kind not in bulk}
    branch = trunk(repo)
    main = adopt_trunk(repo, name, branch, there.get(branch), dry_run=request.dry_run)
    mine, groups = by_run(repo.tips()), by_run(theirs)
    runs = tuple(adopt(repo, run, groups[run], mine.get(run, {}), terms) for run in run_names(there))
    if request.evidence:
        lack = "its evidence was not pushed there"
        runs = tuple(
            run if run.note or refs.evidence_ref(run.run) in groups[run.run] else replace(run, note=lack)
            for run in runs
        )
        for run in runs:
            if run.state in _TAKEN_IN and not request.dry_run:
                note_asked(repo, run.run, there[refs.run_branch(run.run)])
    notes = there.get(refs.NOTES)
    if request.dry_run:
        own = repo.tip(refs.NOTES)
        fresh = notes is not None and (own is None or not repo.reaches(own, notes))
    else:
        fresh = join_notes(repo, notes, time=workspace.context.clock())
        pack(repo, sum(run.moved for run in runs))
    workspace.index.refresh()
    names = [run.run for run in runs if run.state is Joining.DIVERGED]
    rows = {run: queries.head_row(workspace.index, run) for run in names}
    heads = {run: row.version or 0 for run, row in rows.items() if row is not None}
    return Pulled(
        remote=name,
        url=redact(url),
        dry_run=request.dry_run,
        main=main,
        runs=runs,
        notes=fresh,
        heads=heads,
        trunk=refs.short(branch),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloned:
    path: Path
    pulled: Pulled


def clone(
    context: Context,
    url: str,
    directory: Path | None = None,
    *,
    evidence: bool = False,
    listener: Listener | None = None,
) -> Cloned:
    """Clone ``url`` into ``directory`` or one named after it, or leave nothing; its configurations stay strangers'."""
    check_address(url)
    listener = listener or Listener()
    folder = (context.directory / (directory or folder_of(url))).resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} exists already and is not empty",
            hint="skillgit clone URL DIR names another folder; skillgit -C DIR pull finishes one that was cut short",
        )
    was_there = folder.exists()
    try:
        clone_repository(line_for(context, listener), context.directory, url, folder, redact(url))
        inside = replace(context, directory=folder)
        result = pull(inside, PullRequest(remote="origin", evidence=evidence), listener)
        check_out_trunk(Repo.discover(folder), redact(url))
    except BaseException:
        _remove(folder, itself=not was_there)
        raise
    return Cloned(path=folder, pulled=result)


def _remove(folder: Path, *, itself: bool) -> None:
    """Remove what ``folder`` holds, and the folder ``itself`` where the copy made it."""
    for path in [folder] if itself else list(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def folder_of(url: str) -> str:
    """Return the folder that git would clone ``url`` into."""
    path = re.sub(r"^[a-z][a-z0-9+.-]*://[^/]*", "", url)
    name = re.sub(r"(?:/\.git|\.git)?/*$", "", path.rstrip("/")).replace(":", "/").rpartition("/")[2]
    if not name or name in {".", ".."}:
        raise UsageError(f"'{redact(url)}' does not say how to call the folder", hint="skillgit clone URL DIR")
    return name
