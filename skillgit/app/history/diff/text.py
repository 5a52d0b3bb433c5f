"""How the texts of two versions differ: as git prints it, and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillgit.app.workspace.revision import Resolved, resolve
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.lazy import loaded_on_use
from skillgit.store import diff as store_diff
from skillgit.store import tree

with loaded_on_use():  # a pipe does not need it
    from skillgit.domain import text_diff

_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    a: Resolved
    b: Resolved
    skills: tuple[str, str]  # the skill folder of each side, the same one twice as a rule; empty where no run names it
    paths: tuple[str, ...]  # what of the repository to compare; nothing for all of it


def sides(workspace: Workspace, a: str, b: str | None, paths: Sequence[str] = ()) -> Sides:
    """Return what ``a`` and ``b``, or what ``a`` was made from, name, and the ``paths`` or skill folders to compare."""
    if b is None:
        newer = resolve(workspace, a)
        older = _origin(workspace, newer, a)
    else:
        older, newer = (_standing(workspace, resolve(workspace, name)) for name in (a, b))
    before, after = (
        str(workspace.index.value("SELECT skill FROM run WHERE name = ?", (side.run,)) or "") for side in (older, newer)
    )
    skills = (before or after, after or before)
    folders = tuple(sorted({folder for folder in skills if folder}))
    path_filter = tuple(_place(workspace, path, folders, (older, newer)) for path in paths)
    return Sides(a=older, b=newer, skills=skills, paths=path_filter or folders)


_TEXTLESS = (EventKind.SKIPPED, EventKind.RUN_FINISHED, EventKind.SLOW_PROPOSED)


def _standing(workspace: Workspace, side: Resolved) -> Resolved:
    """Return the version at which an event is that brought no text to measure, as the end of a run."""
    row = side.row
    if row is None or row.kind not in _TEXTLESS or row.known is not None:
        return side
    version = queries.row_of_version(workspace.index, row.run, row.at)
    return side if version is None else Resolved(commit=version.commit, row=version, run=version.run)


def _origin(workspace: Workspace, newer: Resolved, name: str) -> Resolved:
    """Return what ``newer`` was made from: the version that it rests on, or the commit before it."""
    row = newer.row
    base = None if row is None or row.base is None else queries.row_of_version(workspace.index, row.run, row.base)
    if base is not None:
        return Resolved(commit=base.commit, row=base, run=base.run)
    parents = workspace.repo.commit(newer.commit).parent_ids
    before = resolve(workspace, str(parents[0])) if parents else None
    # what a run starts from is the seed itself, unless it is a fork: then it is a version of another run
    if before is None or (row is not None and row.version == 0 and before.row is None):
        raise RevisionNotFoundError(
            f"{name} was made from no other version", hint=f"skillgit show {name}, or name two versions"
        )
    return before


def _place(workspace: Workspace, path: str, folders: Sequence[str], revisions: Sequence[Resolved]) -> str:
    """Return the path in the repository that ``path`` means: one in the skill folder goes first."""
    tail = path.removeprefix("./").rstrip("/")
    trees = [workspace.repo.commit(revision.commit).tree for revision in revisions]
    for candidate in (*(f"{folder}/{tail}" for folder in folders), tail):
        if tail and any(candidate in entries for entries in trees):
            return candidate
    names = sorted(
        {
            name
            for folder in folders
            for entries in trees
            if folder in entries
            for name in tree.read_texts(workspace.repo, entries, folder)
        }
    )
    hint = f"there are {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}" if names else "git ls-files"
    raise NotFoundError(f"neither side has a file '{path}'", hint=hint)


_SETTING = "diff.context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffed:
    a: LogRow | None  # the older side's event; absent if the commit is not an event
    b: LogRow | None  # the newer side's event; absent if the commit is not an event
    text: bytes  # the bytes that `git diff A B` prints for the skill folder
    files: tuple[text_diff.FileDiff, ...] = ()  # the same as data; empty where only the text was asked for


def diff(
    workspace: Workspace,
    a: str,
    b: str | None = None,
    paths: Sequence[str] = (),
    *,
    lines: int | None = None,
    words: bool = False,
    colour: bool = False,
    as_data: bool = False,
) -> Diffed:
    """Return how the skill's text differs between two revisions; ``a``, ``b`` and ``paths`` are those of :func:`sides`.

    ``lines`` is how many unchanged lines surround a change (None for what the user has set for git); ``words`` marks
    changed words, as ``git diff --word-diff`` does.
    """
    options = (
        *([] if lines is None else [f"-U{lines}"]),
        *(["--word-diff=plain"] if words else []),
        *(["--color=always"] if colour else []),
    )
    both = sides(workspace, a, b, paths)
    return Diffed(
        a=both.a.row,
        b=both.b.row,
        text=store_diff.diff(workspace.repo, both.a.commit, both.b.commit, *both.paths, options=options),
        files=_files(workspace, both, lines) if as_data else (),
    )


def _files(workspace: Workspace, both: Sides, lines: int | None) -> tuple[text_diff.FileDiff, ...]:
    for side, folder in zip((both.a, both.b), both.skills, strict=True):
        if folder:
            tree.read_texts(
                workspace.repo, workspace.repo.commit(side.commit).tree, folder
            )  # refuses what takes no end to compare
    setting, usual = workspace.repo.config(_SETTING), text_diff.CONTEXT
    if lines is None and setting and not setting.isdecimal():
        raise UsageError(f"{_SETTING} is '{setting}', not a number of lines", hint=f"git config {_SETTING} {usual}")
    text = store_diff.whole(workspace.repo, both.a.commit, both.b.commit, *both.paths)
    context = lines if lines is not None else int(setting) if setting else usual
    return text_diff.detailed(text_diff.read_patch(text), context)
