"""Put a version's skill where an agent looks for it, list what was put where, and take it back to what was before."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from os.path import normpath
from pathlib import Path
from shlex import quote
from typing import Any

from skillgit.app.deliver.install_record import InstalledFolder, InstallRecord, Layer, known_places, open_record
from skillgit.app.skill_format.atomic_write import copy, put, refuse_way_out, take_away, typed_path, write_skill
from skillgit.app.skill_format.folder_contents import (
    DiffersError,
    FileChange,
    changes,
    entries_of,
    fingerprint,
    read_entries,
)
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import NamedSkill, skill_named
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.did_you_mean import nearest
from skillgit.domain.skill import Skill
from skillgit.errors import ConflictError, NotFoundError, UsageError
from skillgit.index import queries


class Agent(StrEnum):
    CLAUDE = "claude"
    CODEX = "codex"
    COPILOT = "copilot"
    AMP = "amp"
    CURSOR = "cursor"
    GEMINI = "gemini"
    GOOSE = "goose"
    KIRO = "kiro"
    OPENCODE = "opencode"
    QWEN = "qwen"
    ROO = "roo"
    WINDSURF = "windsurf"


class Scope(StrEnum):
    """For whom a skill is installed: for everything that the user does, or for the project of this repository."""

    USER = "user"
    PROJECT = "project"


SHARED = ".agents/skills"
"""The folder of a project that several agents read."""
FOLDERS = {
    Agent.CLAUDE: (".claude/skills", ".claude/skills"),
    Agent.CODEX: (SHARED, SHARED),
    Agent.COPILOT: (".copilot/skills", ".github/skills"),
    Agent.AMP: (".config/agents/skills", SHARED),
    Agent.CURSOR: (".cursor/skills", SHARED),
    Agent.GEMINI: (".gemini/skills", SHARED),
    Agent.GOOSE: (".config/goose/skills", ".goose/skills"),
    Agent.KIRO: (".kiro/skills", ".kiro/skills"),
    Agent.OPENCODE: (".config/opencode/skills", SHARED),
    Agent.QWEN: (".qwen/skills", ".qwen/skills"),
    Agent.ROO: (".roo/skills", ".roo/skills"),
    Agent.WINDSURF: (".codeium/windsurf/skills", ".windsurf/skills"),
}
"""Each agent to its folder of the user's skills, below HOME, and to that of a project, as they document them."""
USUAL_AGENTS = (Agent.CLAUDE, Agent.CODEX, Agent.COPILOT)
"""Agents whose folder is made where it is missing; of the others it says whether the agent is on this machine."""


def skills_folder(context: Context, workspace: Workspace, to: str, scope: Scope | None) -> Path:
    """Return the folder of skills that ``to``, an agent's name or a folder, means."""
    if to not in set(Agent):
        if scope is not None:
            hint = f"agents are {', '.join(Agent)}"
            raise UsageError(f"--scope goes with an agent's name, and '{to}' is a folder", hint=hint)
        folder = typed_path(context.directory, to)
        if re.fullmatch(r"[\w][\w.+-]*", to) and not folder.is_dir():
            near = nearest(to, list(Agent))
            guess = f"did you mean '{near}'? " if near else ""
            hint = f"{guess}Agents are {', '.join(Agent)}; a new folder is --to {quote(f'./{to}')}"
            raise UsageError(f"there is no agent and no folder '{to}'", hint=hint)
        return folder
    agent = Agent(to)
    if scope is Scope.PROJECT:
        if workspace.repo.workdir is None:
            raise UsageError("a bare repository is no project that an agent works in", hint="--scope user, or --to DIR")
        return workspace.repo.workdir.resolve() / FOLDERS[agent][1]
    home_setting = context.environ.get("CLAUDE_CONFIG_DIR", "") if agent is Agent.CLAUDE else ""
    if home_setting:
        return Path(normpath(context.directory / home_setting)) / "skills"
    home = context.environ.get("HOME", "")
    if not home:
        raise UsageError("HOME is not set, so that there is no folder of the user's skills", hint="--to DIR")
    folder = Path(home) / FOLDERS[agent][0]
    if agent not in USUAL_AGENTS and not folder.parent.is_dir():
        raise UsageError(
            f"{agent} is not on this machine: there is no folder {folder.parent}",
            hint=f"--scope project, or --to {quote(str(folder))} makes it",
        )
    return folder


Agreed = Callable[[Path, tuple[FileChange, ...]], bool]
"""Is asked before something is replaced that someone changed by hand, and gets the place and what would change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    revision: str
    to: str  # an agent's name, or a folder of skills
    scope: Scope | None = None  # whose skills, for an agent; None for the user's
    dry_run: bool = False  # whether only to say what would be done


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallState:
    name: str  # what was installed there, ``<run>/v<N>``, or a commit; empty if it did not come from here
    by_hand: bool  # whether it is anything else than what skillgit put there


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallResult:
    name: str  # the version, ``<run>/v<N>``, a candidate, ``<run>/r<N>``, or a commit
    commit: str
    skill: str
    place: str
    before: InstallState | None  # what was there; absent for nothing
    changes: tuple[FileChange, ...]  # how the skill differs from what was there
    held: bool = False
    written: bool = False


def install(context: Context, request: InstallRequest, agrees: Agreed) -> InstallResult:
    """Put a skill where an agent looks for it; a DiffersError if nobody ``agrees`` to replace changes by hand."""
    with open_workspace(context) as workspace:
        skill = skill_named(workspace, request.revision)
        target = refuse_way_out(skills_folder(context, workspace, request.to, request.scope) / skill.skill.name)
        with open_record(workspace.repo) as record:
            if not request.dry_run:
                record.settle(target)
            return _Installation(context, record, skill, target).carry_out(agrees, dry_run=request.dry_run)


class _Installation:
    def __init__(self, context: Context, record: InstallRecord, skill: NamedSkill, target: Path) -> None:
        self._context, self._record, self._named, self._place = context, record, skill, target
        self._there = read_entries(target)
        self._now, self._wanted = fingerprint(self._there), fingerprint(entries_of(skill.skill))
        location = record.at(target)
        self._top = location.top if location is not None else None

    def carry_out(self, agrees: Agreed, *, dry_run: bool) -> InstallResult:
        ours = self._top is not None and self._top.installed == self._now
        state = self._found(by_hand=not ours)
        if ours and self._now == self._wanted:
            if not dry_run:
                self._record.amend(self._place, **self._identity())
            return replace(state, held=True)
        if dry_run:
            return state
        by_hand = state.before is not None and state.before.by_hand
        if by_hand and state.changes and not agrees(self._place, state.changes):
            raise DiffersError(
                f"{self._place} holds something that skillgit did not put there, and it was left as it is",
                hint="--yes replaces it; skillgit uninstall brings it back",
                changes=state.changes,
            )
        self._install(self._named.skill)
        return replace(state, written=True)

    def _found(self, *, by_hand: bool) -> InstallResult:
        before = InstallState(name=self._top.name if self._top is not None else "", by_hand=by_hand)
        return InstallResult(
            name=self._identity()["name"],
            commit=self._named.commit,
            skill=self._named.skill.name,
            place=str(self._place),
            before=before if self._there else None,
            changes=changes(self._there, entries_of(self._named.skill)) if self._there else (),
        )

    def _install(self, skill: Skill) -> None:
        name = self._keep() if self._there else ""
        self._record.push(self._place, skill.name, self._layer(name))
        put(self._place, lambda beside: write_skill(beside, skill), lambda old: self._keep_again(old, name))
        if fingerprint(read_entries(self._place)) != self._wanted:
            raise ConflictError(
                f"{self._place} does not hold what was written there: someone else writes it now",
                hint="skillgit install --list",
            )

    def _keep(self) -> str:
        name = self._new_name()
        target = self._record.kept(name)
        target.parent.mkdir(parents=True)
        copy(self._place, target)
        if read_entries(target) != self._there:
            raise ConflictError(f"{self._place} changed while it was read", hint="stop who writes it, then try again")
        return name

    def _keep_again(self, old: Path, copy_name: str) -> None:
        """Copy what was displaced if someone changed it after the first copy was made."""
        entries = read_entries(old)
        if entries == self._there:
            return
        name = copy_name or self._new_name()
        put(self._record.kept(name), lambda beside: copy(old, beside))
        self._record.amend(self._place, kept=name, found=fingerprint(entries))

    def _new_name(self) -> str:
        return f"{self._context.clock():%Y%m%dT%H%M%SZ}-{self._context.entropy(4).hex()}"

    def _identity(self) -> dict[str, Any]:
        """Return what a layer says of the version: the address of its event, or the id of a commit that is no event."""
        row, commit = self._named.row, self._named.commit
        if row is None:
            return {"name": commit, "run": "", "version": None, "commit": commit}
        return {"name": str(row.address), "run": row.run, "version": row.version, "commit": commit}

    def _layer(self, name: str) -> Layer:
        return Layer(
            **self._identity(),
            installed=self._wanted,
            found=self._now,
            kept=name,
            made=tuple(str(folder) for folder in reversed(self._place.parents) if not folder.exists()),
            time=self._context.clock(),
        )


UNCHANGED, CHANGED, GONE = "unchanged", "changed by hand", "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    place: str
    skill: str
    name: str  # the version that was put there, ``<run>/v<N>``, or a commit
    commit: str
    time: datetime
    state: str  # ``unchanged``, ``changed by hand`` or ``gone``
    newer: str  # the best version of its run, ``<run>/v<N>``, if that came later; empty if the skill is up to date


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallRequest:
    to: str | None = None  # an agent's name, a folder of skills, or a skill's folder; None for the only place there is
    scope: Scope | None = None  # whose skills, for an agent; None for the user's
    skill: str | None = None  # the skill's name; None for the only one there is at that place
    dry_run: bool = False  # whether only to say what would be done


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallResult:
    skill: str
    place: str
    name: str
    restored: InstallState | None  # what is there again; absent if nothing is
    changes: tuple[FileChange, ...]
    written: bool = False


def list_installed(context: Context) -> tuple[Installed, ...]:
    with open_workspace(context) as workspace:
        return tuple(_installed(workspace, location) for location in known_places(workspace.repo))


def uninstall(context: Context, request: UninstallRequest, agrees: Agreed) -> UninstallResult:
    """Bring back what a skill replaced; a DiffersError if nobody ``agrees`` to give up changes by hand."""
    with open_workspace(context) as workspace, open_record(workspace.repo) as record:
        if not request.dry_run:
            for path in tuple(record.places):
                record.settle(Path(path))
        location = _meant(_candidates(context, workspace, record, request))
        return _uninstall(record, location, agrees, dry_run=request.dry_run)


def _uninstall(record: InstallRecord, location: InstalledFolder, agrees: Agreed, *, dry_run: bool) -> UninstallResult:
    path, top = refuse_way_out(Path(location.path)), location.top
    there = read_entries(path)
    copy_path = record.kept(top.kept) if top.kept else None
    before = read_entries(copy_path) if copy_path is not None else {}
    if copy_path is not None and not before:
        raise NotFoundError(
            f"the copy of what stood at {path} is gone from {copy_path}",
            hint="skillgit install REV --to DIR puts another there",
        )
    name, beneath = ("", "") if len(location.layers) == 1 else (location.layers[-2].name, location.layers[-2].installed)
    result = UninstallResult(
        skill=location.skill,
        place=location.path,
        name=top.name,
        restored=InstallState(name=name, by_hand=not name or beneath != top.found) if before else None,
        changes=changes(there, before),
    )
    if dry_run:
        return result
    by_hand = bool(there) and fingerprint(there) != top.installed
    if by_hand and result.changes and not agrees(path, result.changes):
        raise DiffersError(
            f"{path} was changed by hand since {top.name} was installed, and it was left as it is",
            hint="--yes gives these changes up",
            changes=result.changes,
        )
    if copy_path is not None:
        put(path, lambda beside: copy(copy_path, beside))
    elif there:
        take_away(path)
    record.pop(path)
    for folder in reversed(top.made):  # those that were made for the place, as far as nothing else came into them
        with suppress(OSError):
            Path(folder).rmdir()
    return replace(result, written=True)


def _candidates(
    context: Context, workspace: Workspace, record: InstallRecord, request: UninstallRequest
) -> list[InstalledFolder]:
    locations = [record.places[path] for path in sorted(record.places)]
    if request.to is not None:
        itself = str(typed_path(context.directory, request.to))
        places = {place for location in locations for place in (location.path, str(Path(location.path).parent))}
        is_place = request.to not in set(Agent) and itself in places
        folder = Path(itself) if is_place else skills_folder(context, workspace, request.to, request.scope)
        locations = [
            location for location in locations if Path(location.path).parent == folder or location.path == itself
        ]
    if request.skill is not None:
        locations = [location for location in locations if location.skill == request.skill]
    return locations


def _meant(locations: list[InstalledFolder]) -> InstalledFolder:
    if not locations:
        raise NotFoundError("nothing that was installed is left there", hint="skillgit install --list")
    if len(locations) > 1:
        paths = ", ".join(location.path for location in locations)
        raise UsageError(
            f"skills were installed at {len(locations)} such places: {paths}",
            hint=f"skillgit uninstall --to {quote(locations[0].path)}",
        )
    return locations[0]


def _installed(workspace: Workspace, location: InstalledFolder) -> Installed:
    top, now = location.top, fingerprint(read_entries(Path(location.path)))
    return Installed(
        place=location.path,
        skill=location.skill,
        name=top.name,
        commit=top.commit,
        time=top.time,
        state=UNCHANGED if now == top.installed else CHANGED if now else GONE,
        newer=_newer(workspace, top),
    )


def _newer(workspace: Workspace, layer: Layer) -> str:
    """Return the best version of the layer's run, if it was made after what is installed."""
    if layer.version is None or layer.run not in queries.run_names(workspace.index):
        return ""
    best = queries.best_row(workspace.index, layer.run)
    later = best is not None and best.version is not None and best.version > layer.version
    return f"{layer.run}/{version_label(best.version)}" if later and best is not None else ""
