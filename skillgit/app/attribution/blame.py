"""``skillgit blame``: each line of a skill with the step, the support and the gain that brought it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from skillgit.app.attribution.provenance import Credit, Credits, TracedLine, Tracer
from skillgit.app.workspace.revision import Resolved, default_run, resolve_in
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import NotFoundError, RevisionNotFoundError, SkillError, UsageError
from skillgit.index import rule_queries
from skillgit.store import tree
from skillgit.store.repo import author_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.workspace.context import Context
    from skillgit.domain.address import Address

Stretch = tuple[int, int | None]
"""The first and the last line of a part of a file; None for the file's end."""

HEAD = "head"
_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    """One line with what it rests on."""

    line: int  # its number in the file, from 1
    text: str
    commit: str
    author: str  # who made that commit, where a person did
    address: Address | None  # what the event that brought it is called; absent if none did
    run: str  # the run whose event brought it; empty if none did
    version: int | None  # the version that brought it; absent for a rejected candidate and for what is no event
    kind: str  # the event's name in trailers; empty for what is no event
    origin: str  # where the event's candidate comes from; empty for what is no event
    step: int | None  # absent for what is no event
    epoch: int | None  # likewise
    title: str
    source: str  # failure, success, mixed, meta, slow, human or seed
    support: int | None  # how many trajectories its edit rests on; absent where that is not known
    items: tuple[str, ...]
    fixed: tuple[str, ...]  # selection items that its version solves better than the version's base
    broken: tuple[str, ...]
    score: float | None
    delta: float | None  # how much its version scores above what it was compared with
    restored: int | None  # the version that restored it; absent if it always stayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    run: str  # that of the revision; for a commit that belongs to none the default run, if there is one
    version: int | None  # the version of the revision; absent if it is none
    commit: str
    path: str
    lines: tuple[BlameRow, ...]
    absent: bool  # whether evidence that some columns are made of is not here, as in a clone


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    resolution: Resolved
    run: str | None  # that of the revision; for a commit that belongs to none the default run
    skill: str
    path: str


def blame(context: Context, revision: str = "", path: str = "", lines: Sequence[Stretch] = ()) -> Blame:
    """Return where each line of a file of a skill, by default ``SKILL.md`` of the newest version, comes from.

    ``path`` is inside the skill folder or as the repository calls it; ``lines`` are the stretches to return, else all.
    """
    with open_workspace(context) as workspace:
        spot = find_place(workspace, revision, path)
        trace = _cut(Tracer(workspace).trace(spot.resolution.commit, spot.path), lines, spot.path)
        creditor = credits_of(workspace, spot)
        rows = tuple(_row(workspace, line, creditor.credit(line)) for line in trace)
        behind = {line.origin.commit: line.origin for line in trace if line.origin and line.origin.evidence}
        return Blame(
            run=spot.run or "",
            version=spot.resolution.row.version if spot.resolution.row else None,
            commit=spot.resolution.commit,
            path=spot.path,
            lines=rows,
            absent=not all(creditor.evidence(origin).present for origin in behind.values()),
        )


def credits_of(workspace: Workspace, spot: SkillFile) -> Credits:
    """Return what credits the lines of the skill at ``spot``."""
    start = rule_queries.commit_of_version(workspace.index, spot.run, 0) if spot.run else None
    return Credits(workspace, spot.skill, start)


def find_place(workspace: Workspace, revision: str, path: str) -> SkillFile:
    """Return the file ``path`` of the skill at ``revision``; a single word may be either."""
    try:
        resolution = resolve_in(workspace, revision or HEAD)
    except RevisionNotFoundError as error:
        if path or not revision:
            raise
        # one word, and no revision: a file, as `blame SKILL.md` is written
        return _place_of_file(workspace, revision, error)
    return _place(workspace, resolution, path)


def _place_of_file(workspace: Workspace, word: str, unknown: RevisionNotFoundError) -> SkillFile:
    try:
        return _place(workspace, resolve_in(workspace, HEAD), word)
    except NotFoundError as error:
        if error.hint.startswith("did you mean"):
            raise NotFoundError(f"there is neither a revision nor a file '{word}'", hint=error.hint) from error
        raise unknown from error


def _place(workspace: Workspace, resolution: Resolved, path: str) -> SkillFile:
    run = resolution.run or default_run(workspace)
    skill = workspace.index.skill_path(run) if run else ""
    root = workspace.repo.commit(resolution.commit).tree
    file = str(PurePosixPath(path or DOCUMENT))
    for name in ([f"{skill}/{file}"] if skill else []) + [file]:
        if tree.read_file(root, name) is not None:
            return SkillFile(resolution=resolution, run=run, skill=skill, path=name)
    raise NotFoundError(
        f"there is no file '{file}' at {resolution.commit[:12]}", hint=_near(workspace, resolution.commit, skill, file)
    )


def _near(workspace: Workspace, commit: str, skill: str, name: str) -> str:
    try:
        names = list(tree.read_skill(workspace.repo.commit(commit).tree, skill).files)
    except (NotFoundError, SkillError):
        return "git ls-tree -r --name-only HEAD"
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return f"did you mean '{near[0]}'?" if near else f"the skill has {', '.join(names[:_NAMED])}"


def _cut(lines: tuple[TracedLine, ...], stretches: Sequence[Stretch], path: str) -> tuple[TracedLine, ...]:
    for first, _ in stretches:
        if first > max(1, len(lines)):
            raise UsageError(f"{path} has {len(lines)} lines, and none at {first}", hint=f"-L 1,{len(lines)}")
    return tuple(
        line
        for line in lines
        if not stretches or any(first <= line.line and (last is None or line.line <= last) for first, last in stretches)
    )


def _row(workspace: Workspace, line: TracedLine, credit: Credit) -> BlameRow:
    origin = line.origin
    return BlameRow(
        line=line.line,
        text=line.text,
        commit=line.commit,
        author=author(workspace, line.commit) if credit.source == "human" else "",
        address=origin.address if origin else None,
        run=origin.run if origin else "",
        version=origin.version if origin else None,
        kind=origin.kind if origin else "",
        origin=origin.origin if origin else "",
        step=origin.step if origin else None,
        epoch=origin.epoch if origin else None,
        title=origin.title if origin else "",
        source=credit.source,
        support=credit.support,
        items=credit.items,
        fixed=credit.fixed,
        broken=credit.broken,
        score=origin.score if origin else None,
        delta=origin.delta if origin else None,
        restored=line.restored_by.version if line.restored_by else None,
    )


def author(workspace: Workspace, commit: str) -> str:
    """Return who made ``commit``."""
    return author_of(workspace.repo.commit(commit))
