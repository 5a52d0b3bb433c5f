"""Put a version's skill where an agent looks for it, list what was put where, and take it back to what was before."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from os.path import normpath
from pathlib import Path
from shlex import quote
from typing import Final

from skillgit.app.deliver.install_record import InstalledFolder, Layer, open_record
from skillgit.app.deliver.requests import USUAL_AGENTS, Agent, InstallRequest, Placed, Scope, UninstallRequest
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
from skillgit.app.workspace.revision import skill_named
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.did_you_mean import nearest
from skillgit.errors import ConflictError, NotFoundError, UsageError

SHARED: Final = ".agents/skills"
"""The folder of a project that several agents read."""
FOLDERS: Final = {
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


def skills_folder(workspace: Workspace, to: str, scope: Scope | None) -> Path:
    """Return the folder of skills that ``to``, an agent's name or a folder, means."""
    if to not in set(Agent):
        if scope is not None:
            hint = f"agents are {', '.join(Agent)}"
            raise UsageError(f"--scope needs an agent's name, and '{to}' is a folder", hint=hint)
        folder = typed_path(workspace.context.directory, to)
        if re.fullmatch(r"[\w][\w.+-]*", to) and not folder.is_dir():
            near = nearest(to, list(Agent))
            guess = f"did you mean '{near}'? " if near else ""
            hint = f"{guess}Agents are {', '.join(Agent)}; a new folder is --to {quote(f'./{to}')}"
            raise UsageError(f"there is no agent and no folder '{to}'", hint=hint)
        return folder
    agent = Agent(to)
    if scope is Scope.PROJECT:
        if workspace.repo.workdir is None:
            raise UsageError("an agent cannot work in a bare repository", hint="--scope user, or --to DIR")
        return workspace.repo.workdir.resolve() / FOLDERS[agent][1]
    home_setting = workspace.context.environ.get("CLAUDE_CONFIG_DIR", "") if agent is Agent.CLAUDE else ""
    if home_setting:
        return Path(normpath(workspace.context.directory / home_setting)) / "skills"
    home = workspace.context.environ.get("HOME", "")
    if not home:
        raise UsageError("HOME is not set; cannot locate your skills folder", hint="--to DIR")
    folder = Path(home) / FOLDERS[agent][0]
    if agent not in USUAL_AGENTS and not folder.parent.is_dir():
        raise UsageError(
            f"{agent} is not on this machine: there is no folder {folder.parent}",
            hint=f"--scope project, or --to {quote(str(folder))} makes it",
        )
    return folder


Agreed = Callable[[Path, tuple[FileChange, ...]], bool]
"""Is asked before manual changes are replaced, and gets the place and what would change."""


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
    """Put a skill where an agent looks for it; a DiffersError unless ``agrees`` lets it replace manual changes."""
    with Workspace(context) as workspace:
        source = skill_named(workspace, request.revision)
        name, new_entries = source.skill.name, entries_of(source.skill)
        path = refuse_way_out(skills_folder(workspace, request.to or "", request.scope) / name)
        with open_record(workspace.repo) as record:
            if not request.dry_run:
                record.settle(path)
            there, location = read_entries(path), record.at(path)
            is_ours = location is not None and location.top.installed == fingerprint(there)
            before = InstallState(name=location.top.name if location is not None else "", by_hand=not is_ours)
            row, commit = source.row, source.commit
            identity = {
                "name": commit if row is None else str(row.address),
                "run": "" if row is None else row.run,
                "version": None if row is None else row.version,
                "commit": commit,
            }
            result = InstallResult(
                name=str(identity["name"]),
                commit=commit,
                skill=name,
                place=str(path),
                before=before if there else None,
                changes=changes(there, new_entries) if there else (),
            )
            if is_ours and fingerprint(there) == fingerprint(new_entries):
                if not request.dry_run:
                    record.amend(path, **identity)
                return replace(result, held=True)
            if request.dry_run:
                return result
            if there and not is_ours and result.changes and not agrees(path, result.changes):
                raise DiffersError(
                    f"{path} holds something that skillgit did not put there, and it was left as it is",
                    hint="--yes replaces it; skillgit uninstall brings it back",
                    changes=result.changes,
                )

            def new_copy() -> str:
                return f"{context.clock():%Y%m%dT%H%M%SZ}-{context.entropy(4).hex()}"

            copy_name = new_copy() if there else ""
            if there:
                target = record.kept(copy_name)
                target.parent.mkdir(parents=True)
                copy(path, target)
                if read_entries(target) != there:
                    raise ConflictError(
                        f"{path} changed while it was read", hint="stop the program that writes it, then try again"
                    )
            layer = Layer(
                **identity,  # type: ignore[arg-type]
                installed=fingerprint(new_entries),
                found=fingerprint(there),
                kept=copy_name,
                made=tuple(str(folder) for folder in reversed(path.parents) if not folder.exists()),
                time=context.clock(),
            )
            record.push(path, name, layer)

            def keep_again(old: Path) -> None:
                """Copy what was displaced if someone changed it after the first copy was made."""
                if (entries := read_entries(old)) != there:
                    again = copy_name or new_copy()
                    put(record.kept(again), lambda beside: copy(old, beside))
                    record.amend(path, kept=again, found=fingerprint(entries))

            put(path, lambda beside: write_skill(beside, source.skill), keep_again)
            if fingerprint(read_entries(path)) != fingerprint(new_entries):
                raise ConflictError(
                    f"{path} does not hold what was written there: another program writes it now",
                    hint="skillgit install --list",
                )
            return replace(result, written=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallResult:
    skill: str
    place: str
    name: str
    restored: InstallState | None  # what is there again; absent if nothing is
    changes: tuple[FileChange, ...]
    written: bool = False


def uninstall(context: Context, request: UninstallRequest, agrees: Agreed) -> UninstallResult:
    """Bring back what a skill replaced; a DiffersError unless ``agrees`` gives manual changes up."""
    with Workspace(context) as workspace, open_record(workspace.repo) as record:
        if not request.dry_run:
            for known_path in tuple(record.places):
                record.settle(Path(known_path))
        locations = [record.places[path] for path in sorted(record.places)]
        location = _chosen(workspace, locations, request, request.skill_name)
        path, top = refuse_way_out(Path(location.path)), location.top
        there = read_entries(path)
        copy_path = record.kept(top.kept) if top.kept else None
        before = read_entries(copy_path) if copy_path is not None else {}
        if copy_path is not None and not before:
            raise NotFoundError(
                f"the copy of what was at {path} is missing from {copy_path}",
                hint="skillgit install REV --to DIR installs another version there",
            )
        beneath = location.layers[-2] if len(location.layers) > 1 else None
        name = beneath.name if beneath is not None else ""
        is_changed = beneath is None or not name or beneath.installed != top.found
        result = UninstallResult(
            skill=location.skill,
            place=location.path,
            name=top.name,
            restored=InstallState(name=name, by_hand=is_changed) if before else None,
            changes=changes(there, before),
        )
        if request.dry_run:
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


def _chosen(
    workspace: Workspace, locations: list[InstalledFolder], request: Placed, skill: str | None
) -> InstalledFolder:
    if request.to is not None:
        itself = str(typed_path(workspace.context.directory, request.to))
        paths = {path for location in locations for path in (location.path, str(Path(location.path).parent))}
        is_path = request.to not in set(Agent) and itself in paths
        folder = Path(itself) if is_path else skills_folder(workspace, request.to, request.scope)
        locations = [row for row in locations if Path(row.path).parent == folder or row.path == itself]
    if skill is not None:
        locations = [row for row in locations if row.skill == skill]
    if not locations:
        raise NotFoundError("nothing that was installed is left there", hint="skillgit install --list")
    if len(locations) > 1:
        raise UsageError(
            f"skills were installed at {len(locations)} such places: {', '.join(row.path for row in locations)}",
            hint=f"skillgit uninstall --to {quote(locations[0].path)}",
        )
    return locations[0]
