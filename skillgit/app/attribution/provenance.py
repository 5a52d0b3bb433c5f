"""Which event brought a line of a skill, and what it did to the items; ``skillgit blame`` says it of each line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from skillgit.app.attribution.line_tracer import TracedLine, Tracer
from skillgit.app.recorded.step_evidence import AppliedEdit, StepEvidence
from skillgit.app.workspace.revision import Resolved, default_run, resolve
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import Address
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.edit import normalised
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import NotFoundError, RevisionNotFoundError, SkillError, UsageError
from skillgit.index import rule_queries
from skillgit.index.rule_queries import OriginRow
from skillgit.store import tree
from skillgit.store.history_reader import read_commit
from skillgit.store.repo import author_of

_STEPS = frozenset({EventKind.ACCEPTED, EventKind.REJECTED})
_SOURCES = {
    EventKind.RUN_STARTED: "seed",
    EventKind.SLOW_PROPOSED: "slow",
    EventKind.SLOW_MERGED: "slow",
    EventKind.EDITED: "human",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What a line rests on."""

    source: str  # failure, success, mixed, meta, slow, human or seed; else what the event is; empty if unknown
    support: int | None = None  # how many trajectories its edit rests on; absent where that is not known
    edit: int | None = None  # the place of its edit among those of its event, from 0; absent where that is not known
    op: str = ""
    items: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()  # selection items that its version solves better than the version's base
    broken: tuple[str, ...] = ()


class Credits:
    """Credits the lines of one skill; every event is looked up once. What came before ``start`` is the seed."""

    def __init__(self, workspace: Workspace, skill: str, start: str | None) -> None:
        self._workspace, self._skill, self._start = workspace, skill, start
        self.evidence, self.edits, self.flips = cache(self._evidence), cache(self._edits), cache(self._flips)
        self._lines_of, self._is_seed = cache(self._brought_lines), cache(self._precedes)

    @classmethod
    def of(cls, workspace: Workspace, spot: SkillFile) -> Credits:
        """Return what credits the lines of the skill at ``spot``."""
        start = rule_queries.commit_of_version(workspace.index, spot.run, 0) if spot.run else None
        return cls(workspace, spot.skill, start)

    def credit(self, line: TracedLine) -> Credit:
        """Return what ``line`` rests on."""
        origin = line.origin
        if origin is None:
            return Credit(source="seed" if self._is_seed(line.commit) else "human")
        fixes, breaks = self.flips(origin)
        if origin.kind not in _STEPS:
            items = tuple(attempt.item for attempt in self.evidence(origin).compared())
            return Credit(source=_SOURCES.get(origin.kind, ""), items=items, fixed=fixes, broken=breaks)
        edit = self._lines_of(origin, line.original_path.removeprefix(f"{self._skill}/")).edit_of(line.text)
        if edit is None:
            sources = {edit.source for edit in self.edits(origin)}
            common = "mixed" if sources else (origin.origin if origin.origin != "step" else "")
            return Credit(source=sources.pop() if len(sources) == 1 else common, fixed=fixes, broken=breaks)
        return Credit(
            source=edit.source,
            support=edit.support,
            edit=edit.position,
            op=edit.op,
            items=edit.items,
            fixed=fixes,
            broken=breaks,
        )

    def _evidence(self, origin: OriginRow) -> StepEvidence:
        return StepEvidence(self._workspace.repo, origin.evidence)

    def _edits(self, origin: OriginRow) -> tuple[AppliedEdit, ...]:
        """Return the edits of an event; without its evidence they have neither text nor items."""
        return self.evidence(origin).edits() or tuple(
            AppliedEdit(
                position=index,
                op=row.op,
                file=row.file,
                anchor="",
                content="",
                support=row.support,
                source=row.source,
                items=(),
            )
            for index, row in enumerate(rule_queries.edits(self._workspace.index, origin.commit))
        )

    def _flips(self, origin: OriginRow) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the items that an event's text fixed, and those that it broke, as far as that is known."""
        rows = rule_queries.flipped(self._workspace.index, origin.commit)
        if any(rows):
            return rows
        event = read_commit(self._workspace.repo, origin.commit).event  # in a clone nothing else names them
        return tuple(getattr(event, "fixed", ())), tuple(getattr(event, "broken", ()))

    def _brought_lines(self, origin: OriginRow, file: str) -> BroughtLines:
        return BroughtLines([edit for edit in self.edits(origin) if edit.file == file])

    def _precedes(self, commit: str) -> bool:
        return self._start is not None and self._workspace.repo.reaches(self._start, commit)


class BroughtLines:
    """The lines that the edits of one event, in the order of their application, brought to one file."""

    def __init__(self, edits: Sequence[AppliedEdit]) -> None:
        self._only = edits[0] if len(edits) == 1 else None
        self._last: dict[str, AppliedEdit] = {}
        for edit in reversed(edits):
            for line in filter(None, map(normalised, edit.content.splitlines())):
                self._last.setdefault(line, edit)

    def edit_of(self, text: str) -> AppliedEdit | None:
        """Return the last edit with the line ``text``, or one that holds it or is held by it, or else the only one."""
        text_key = normalised(text)
        if not text_key:
            return self._only
        part = (edit for line, edit in self._last.items() if line in text_key or text_key in line)
        return self._last.get(text_key) or next(part, self._only)


Stretch = tuple[int, int | None]
"""The first and the last line of a part of a file; None for the file's end."""

HEAD = "head"


_OF_EVENT = ("address", "run", "version", "kind", "origin", "step", "epoch", "title", "score", "delta")
_OF_CREDIT = ("source", "support", "items", "fixed", "broken")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    """One line with the event that brought it, and what it rests on."""

    line: int  # its number in the file, from 1
    text: str
    commit: str
    author: str  # who made that commit, where a person did
    address: Address | None = None  # what the event that brought it is called; absent if none did
    run: str = ""  # the run whose event brought it; empty if none did
    version: int | None = None  # the version that brought it; absent for rejected candidates and other commits
    kind: str = ""  # the event's name in trailers; empty for commits that are not events
    origin: str = ""  # where the event's candidate comes from; empty for commits that are not events
    step: int | None = None  # absent for commits that are not events
    epoch: int | None = None  # likewise
    title: str = ""
    source: str  # failure, success, mixed, meta, slow, human or seed
    support: int | None  # how many trajectories its edit rests on; absent where that is not known
    items: tuple[str, ...]
    fixed: tuple[str, ...]  # selection items that its version solves better than the version's base
    broken: tuple[str, ...]
    score: float | None = None
    delta: float | None = None  # how much its version scores above what it was compared with
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


def blame(workspace: Workspace, revision: str = "", path: str = "", lines: Sequence[Stretch] = ()) -> Blame:
    """Return where each line of a file of a skill, by default ``SKILL.md`` of the newest version, comes from.

    ``path`` is inside the skill folder or as the repository calls it; ``lines`` are the stretches to return, else all.
    """
    spot = find_place(workspace, revision, path)
    credits_, rows, present = Credits.of(workspace, spot), [], True
    trace = Tracer(workspace).trace(spot.resolution.commit, spot.path)
    for first, _ in lines:
        if first > max(1, len(trace)):
            raise UsageError(f"{spot.path} has {len(trace)} lines, and none at {first}", hint=f"-L 1,{len(trace)}")
    for line in trace:
        if lines and not any(first <= line.line and (last is None or line.line <= last) for first, last in lines):
            continue
        origin, credit = line.origin, credits_.credit(line)
        present = present and (origin is None or not origin.evidence or credits_.evidence(origin).present)
        facts = {name: getattr(origin, name) for name in _OF_EVENT} if origin else {}
        row = BlameRow(
            line=line.line,
            text=line.text,
            commit=line.commit,
            author=author(workspace, line.commit) if credit.source == "human" else "",
            restored=line.restored_by.version if line.restored_by else None,
            **facts,
            **{name: getattr(credit, name) for name in _OF_CREDIT},
        )
        rows.append(row)
    return Blame(
        run=spot.run or "",
        version=spot.resolution.row.version if spot.resolution.row else None,
        commit=spot.resolution.commit,
        path=spot.path,
        lines=tuple(rows),
        absent=not present,
    )


def author(workspace: Workspace, commit: str) -> str:
    return author_of(workspace.repo.commit(commit))


def find_place(workspace: Workspace, revision: str, path: str) -> SkillFile:
    """Return the file ``path`` of the skill at ``revision``; a single word may be either."""
    try:
        resolution = resolve(workspace, revision or HEAD)
    except RevisionNotFoundError as error:
        if path or not revision:
            raise
        # one word, and no revision: a file, as `blame SKILL.md` is written
        try:
            return _place(workspace, resolve(workspace, HEAD), revision)
        except NotFoundError as missing:
            if missing.hint.startswith("did you mean"):
                message = f"there is neither a revision nor a file '{revision}'"
                raise NotFoundError(message, hint=missing.hint) from missing
            raise error from missing
    return _place(workspace, resolution, path)


def _place(workspace: Workspace, resolution: Resolved, path: str) -> SkillFile:
    run = resolution.run or default_run(workspace)
    skill = workspace.index.skill_path(run) if run else ""
    root = workspace.repo.commit(resolution.commit).tree
    file = str(PurePosixPath(path or DOCUMENT))
    for name in ([f"{skill}/{file}"] if skill else []) + [file]:
        if tree.read_file(workspace.repo, root, name) is not None:
            return SkillFile(resolution=resolution, run=run, skill=skill, path=name)
    raise NotFoundError(
        f"there is no file '{file}' at {resolution.commit[:12]}", hint=_near(workspace, resolution.commit, skill, file)
    )


def _near(workspace: Workspace, commit: str, skill: str, name: str) -> str:
    try:
        names = list(tree.read_skill(workspace.repo, workspace.repo.commit(commit).tree, skill).files)
    except (NotFoundError, SkillError):
        return "git ls-tree -r --name-only HEAD"
    return did_you_mean(name, names, otherwise=f"the skill has {', '.join(names[:8])}")
