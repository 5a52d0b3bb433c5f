"""Put a version's skill where an agent looks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.deliver.install_record import Layer, open_record
from skillgit.app.setup.config.error_sentences import nearest
from skillgit.app.skill_format.atomic_write import copy, put, refuse_way_out, typed_path, write_skill
from skillgit.app.skill_format.folder_contents import (
    DiffersError,
    FileChange,
    changes,
    entries_of,
    fingerprint,
    read_entries,
)
from skillgit.app.workspace.named_revision import skill_named
from skillgit.app.workspace.workspace import open_workspace
from skillgit.errors import ConflictError, UsageError

if TYPE_CHECKING:
    from skillgit.app.deliver.install_record import InstallRecord
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.named_revision import NamedSkill
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.skill import Skill


class Agent(StrEnum):
    """A program that reads skills."""

    CLAUDE = "claude"
    CODEX = "codex"
    COPILOT = "copilot"


class Scope(StrEnum):
    """For whom a skill is installed: for everything that the user does, or for the project of this repository."""

    USER = "user"
    PROJECT = "project"


_USER = {Agent.CLAUDE: ".claude/skills", Agent.CODEX: ".agents/skills", Agent.COPILOT: ".copilot/skills"}
_PROJECT = {Agent.CLAUDE: ".claude/skills", Agent.CODEX: ".agents/skills", Agent.COPILOT: ".github/skills"}
_CLAUDE_HOME = "CLAUDE_CONFIG_DIR"


def skills_folder(context: Context, workspace: Workspace, to: str, scope: Scope | None) -> Path:
    """Return the folder of skills that ``to``, an agent's name or a folder, means."""
    if to not in set(Agent):
        if scope is not None:
            raise UsageError(f"--scope goes with an agent's name, and '{to}' is a folder", hint=_NAMES)
        return _folder(context, to)
    agent = Agent(to)
    if scope is Scope.PROJECT:
        if workspace.repo.workdir is None:
            raise UsageError("a bare repository is no project that an agent works in", hint="--scope user, or --to DIR")
        return workspace.repo.workdir.resolve() / _PROJECT[agent]
    home_setting = context.environ.get(_CLAUDE_HOME, "") if agent is Agent.CLAUDE else ""
    if home_setting:
        return Path(normpath(context.directory / home_setting)) / "skills"
    home = context.environ.get("HOME", "")
    if not home:
        raise UsageError("HOME is not set, so that there is no folder of the user's skills", hint="--to DIR")
    return Path(home) / _USER[agent]


def _folder(context: Context, to: str) -> Path:
    folder = typed_path(context.directory, to)
    near = "" if "/" in to or folder.exists() else nearest(to, list(Agent))
    if near:
        raise UsageError(f"there is no agent '{to}'", hint=f"did you mean '{near}'? A new folder is --to ./{to}")
    return folder


_NAMES = f"agents are {', '.join(Agent)}"


Agreed = Callable[[Path, tuple[FileChange, ...]], bool]
"""Is asked before something is replaced that someone changed by hand, and gets the place and what would change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    """What the user asks for.

    Attributes:
        to: An agent's name, or a folder of skills.
        scope: Whose skills, for an agent; None for the user's.
        dry_run: Whether only to say what would be done.
    """

    revision: str
    to: str
    scope: Scope | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallState:
    """Something at a place.

    Attributes:
        name: What was installed there, ``<run>/v<N>``, or a commit; empty if it did not come from here.
        by_hand: Whether it is anything else than what skillgit put there.
    """

    name: str
    by_hand: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallResult:
    """What stands where now.

    Attributes:
        name: The version, ``<run>/v<N>``, a candidate, ``<run>/r<N>``, or a commit.
        before: What stood there; absent if nothing did.
        changes: How the skill differs from what stood there before.
    """

    name: str
    commit: str
    skill: str
    place: str
    before: InstallState | None
    changes: tuple[FileChange, ...]
    held: bool = False
    written: bool = False


def install(context: Context, request: InstallRequest, agrees: Agreed) -> InstallResult:
    """Put the skill of a revision where an agent looks for it, at once or not at all.

    Args:
        agrees: Is asked whether something that someone changed by hand may be replaced.

    Raises:
        DiffersError: Something is there that was changed by hand, and nobody agrees to replace it.
        RevisionNotFoundError: The revision names nothing.
        SkillError: It has no skill, or several.
    """
    with open_workspace(context) as workspace:
        skill = skill_named(workspace, request.revision)
        target = refuse_way_out(skills_folder(context, workspace, request.to, request.scope) / skill.skill.name)
        with open_record(workspace.repo) as record:
            if not request.dry_run:
                record.settle(target)
            return _Installation(context, record, skill, target).carry_out(agrees, dry_run=request.dry_run)


class _Installation:
    """One skill on its way to one place."""

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
                run, version = _event_of(self._named)
                self._record.amend(
                    self._place, name=name_of(self._named), run=run, version=version, commit=self._named.commit
                )
            return replace(state, held=True)
        if dry_run:
            return state
        if (
            state.before is not None
            and state.before.by_hand
            and state.changes
            and not agrees(self._place, state.changes)
        ):
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
            name=name_of(self._named),
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
        """Copy what is at the place, and return the name of the copy."""
        name = self._new_name()
        target = self._record.new_copy(name)
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

    def _layer(self, name: str) -> Layer:
        run, version = _event_of(self._named)
        return Layer(
            name=name_of(self._named),
            run=run,
            version=version,
            commit=self._named.commit,
            installed=self._wanted,
            found=self._now,
            kept=name,
            made=tuple(map(str, _missing(self._place.parent))),
            time=self._context.clock(),
        )


def name_of(skill: NamedSkill) -> str:
    """Return the address of the event that holds a skill; of a commit that is no event, its id."""
    return skill.commit if skill.row is None else str(skill.row.address)


def _event_of(skill: NamedSkill) -> tuple[str, int | None]:
    return ("", None) if skill.row is None else (skill.row.run, skill.row.version)


def _missing(folder: Path) -> list[Path]:
    """Return ``folder`` and those around it that are not there, the outermost first."""
    programs = []
    while not folder.exists():
        programs.append(folder)
        folder = folder.parent
    return programs[::-1]
