"""``skillgit install --list`` and ``uninstall``: what was installed where, and back to what was there before."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.app.deliver.install import InstallState, skills_folder
from skillgit.app.deliver.install_record import known_places, open_record
from skillgit.app.skill_format.atomic_write import copy, put, refuse_way_out, take_away, typed_path
from skillgit.app.skill_format.folder_contents import DiffersError, FileChange, changes, fingerprint, read_entries
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.errors import NotFoundError, UsageError
from skillgit.index import queries

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.app.deliver.install import Agreed, Scope
    from skillgit.app.deliver.install_record import InstalledFolder, InstallRecord, Layer
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace

UNCHANGED, CHANGED, GONE = "unchanged", "changed by hand", "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A skill that was installed, and what happened to it.

    Attributes:
        name: The version that was put there, ``<run>/v<N>``, or a commit.
        state: ``unchanged``, ``changed by hand`` or ``gone``.
        newer: The best version of its run, ``<run>/v<N>``, if that came later; empty if the skill is up to date.
    """

    place: str
    skill: str
    name: str
    commit: str
    time: datetime
    state: str
    newer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallRequest:
    """What the user asks for.

    Attributes:
        to: An agent's name, a folder of skills, or a skill's folder; None for the only place there is.
        scope: Whose skills, for an agent; None for the user's.
        skill: The skill's name; None for the only one there is at that place.
        dry_run: Whether only to say what would be done.
    """

    to: str | None = None
    scope: Scope | None = None
    skill: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallResult:
    """What stands where now.

    Attributes:
        restored: What is there again; absent if nothing is.
    """

    skill: str
    place: str
    name: str
    restored: InstallState | None
    changes: tuple[FileChange, ...]
    written: bool = False


def list_installed(context: Context) -> tuple[Installed, ...]:
    """Return what was installed from the repository, by place.

    Raises:
        HistoryError: The record cannot be read.
    """
    with open_workspace(context) as workspace:
        return tuple(_installed(workspace, location) for location in known_places(workspace.repo))


def uninstall(context: Context, request: UninstallRequest, agrees: Agreed) -> UninstallResult:
    """Bring back what stood at a place before the last skill was installed there: bytes, permissions and links.

    Args:
        agrees: Is asked whether something that someone changed by hand since may be replaced.

    Raises:
        DiffersError: Someone changed it by hand since, and nobody agrees to replace it.
        NotFoundError: Nothing was installed there.
    """
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
    result = UninstallResult(
        skill=location.skill,
        place=location.path,
        name=top.name,
        restored=_beneath(location) if before else None,
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
    _remove_made(top)
    return replace(result, written=True)


def _beneath(location: InstalledFolder) -> InstallState:
    """Return what the newest layer of ``location`` covers."""
    below = location.layers[-2] if len(location.layers) > 1 else None
    if below is None:
        return InstallState(name="", by_hand=True)
    return InstallState(name=below.name, by_hand=below.installed != location.top.found)


def _remove_made(layer: Layer) -> None:
    """Remove the folders that were made for the place, as far as nothing else came into them."""
    for folder in reversed(layer.made):
        with suppress(OSError):
            Path(folder).rmdir()


def _candidates(
    context: Context, workspace: Workspace, record: InstallRecord, request: UninstallRequest
) -> list[InstalledFolder]:
    locations = [record.places[path] for path in sorted(record.places)]
    if request.to is not None:
        folder = skills_folder(context, workspace, request.to, request.scope)
        itself = str(typed_path(context.directory, request.to))
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
