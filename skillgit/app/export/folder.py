"""A version's skill written elsewhere, as a folder or as an archive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.export.archive import ENDINGS, archive
from skillgit.app.export.markers import without_markers
from skillgit.app.folders.changes import Change, DiffersError, changes
from skillgit.app.folders.entries import entries_of, fingerprint, read_entries
from skillgit.app.folders.placing import put, write_file, write_skill
from skillgit.app.folders.typed import refuse_way_out, typed_path
from skillgit.app.skill_named import skill_named
from skillgit.app.workspace import open_workspace
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import ConflictError, UsageError

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRequest:
    """What the user asks for.

    Attributes:
        revision: The version.
        place: The folder, or the archive if it ends like one.
        strip_markers: Whether to leave out the markers of regions.
        force: Whether to replace a skill folder or an archive with other content.
    """

    revision: str
    place: str
    strip_markers: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSkill:
    """What was written.

    Attributes:
        row: The event of the version; absent for a commit that is no event.
        commit: The commit.
        skill: The skill's name.
        place: The folder or the archive.
        archive: Whether it is an archive.
        files: The files of the skill.
        changes: How they differ from what stood there before; empty if nothing did.
        held: Whether exactly this stood there already, so that nothing was written.
    """

    row: LogRow | None
    commit: str
    skill: str
    place: str
    archive: bool
    files: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    held: bool = False

    @property
    def misnamed(self) -> bool:
        """Whether it is a folder that does not bear the skill's name, as agents want."""
        return not self.archive and Path(self.place).name != self.skill


def export_skill(context: Context, request: FolderRequest) -> ExportedSkill:
    """Write the skill of a revision to a folder or an archive, at once or not at all.

    Raises:
        ConflictError: The place cannot be written, or an archive with other content stands there.
        DiffersError: A folder with other content stands there.
        RevisionNotFoundError: The revision names nothing.
        SkillError: It has no skill, or several.
        UsageError: The place cannot be what is asked for.
    """
    with open_workspace(context) as workspace:
        named = skill_named(workspace, request.revision)
    skill = without_markers(named.skill) if request.strip_markers else named.skill
    place = refuse_way_out(typed_path(context.directory, request.place))
    exported = ExportedSkill(
        row=named.row,
        commit=named.commit,
        skill=skill.name,
        place=str(place),
        archive=place.name.endswith(ENDINGS),
        files=tuple(skill.files),
    )
    return (_to_archive if exported.archive else _to_folder)(exported, place, skill, force=request.force)


def _to_archive(exported: ExportedSkill, file: Path, skill: Skill, *, force: bool) -> ExportedSkill:
    content = archive(skill)
    if file.is_dir():
        raise UsageError(f"{file} is a folder", hint=f"--to {file / f'{skill.name}.skill'}")
    if file.exists() or file.is_symlink():
        if file.is_file() and file.read_bytes() == content:
            return replace(exported, held=True)
        if not force:
            raise ConflictError(f"{file} exists and holds something else", hint="--force replaces it")
    write_file(file, content)
    return exported


def _to_folder(exported: ExportedSkill, folder: Path, skill: Skill, *, force: bool) -> ExportedSkill:
    _check_is_skill(folder, exported.skill)
    there, new = read_entries(folder), entries_of(skill)
    if fingerprint(there) == fingerprint(new):
        return replace(exported, held=True)
    if len(there) > 1:
        exported = replace(exported, changes=changes(there, new))
        if not force:
            raise DiffersError(
                f"{folder} holds another skill or another version, and {len(exported.changes)} of its files would"
                " change",
                hint="--force replaces it",
                changes=exported.changes,
            )
    put(folder, lambda beside: write_skill(beside, skill))
    return exported


def _check_is_skill(folder: Path, name: str) -> None:
    """Refuse a place that is no folder, or that holds something else than a skill: it may be large, and precious."""
    if folder.is_symlink() or folder.is_file():
        raise UsageError(f"{folder} is no folder", hint=f"archives end in {' or '.join(ENDINGS)}")
    try:
        inside = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    except OSError as error:
        raise ConflictError(f"{folder} cannot be read: {error.strerror}", hint=f"ls -ld {folder}") from error
    if inside and (DOCUMENT not in inside or ".git" in inside):
        raise UsageError(f"{folder} holds something else than a skill", hint=f"--to {folder / name}")
