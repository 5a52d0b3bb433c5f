"""A version's skill put into the work tree, a folder, or an archive whose bytes depend on nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from dataclasses import dataclass, replace
from os.path import normpath, relpath
from pathlib import Path

from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path, write_file, write_skill
from skillgit.app.skill_format.folder_contents import (
    DiffersError,
    EntryKind,
    FileChange,
    changes,
    entries_of,
    fingerprint,
    read_entries,
    tree_id,
)
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import NO_SKILL, is_address, resolve, skill_named
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.protected_regions import MARKER, frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import ConflictError, SkillError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.lazy import loaded_on_use
from skillgit.plugin.seed_folder import write_files
from skillgit.store import work_tree
from skillgit.store.history_reader import skill_at

with loaded_on_use():  # it loads yaml, which a checkout does not need
    from skillgit.app.skill_format import frontmatter as frontmatter_fields

ENDINGS = (".zip", ".skill")  # how the names of archives end
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip archive can hold
_UNIX = 3
_FILE, _PROGRAM = 0o100644, 0o100755


def archive(skill: Skill, folder: str | None = None) -> bytes:
    """Return a zip archive of ``skill``, in a ``folder`` of its name or another, for which an empty one is none.

    It is stored, since compressors differ and equal skills have to give equal bytes.
    """
    prefix = f"{skill.name}/" if folder is None else folder
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as target:
        for path, content in skill.files.items():
            member = zipfile.ZipInfo(f"{prefix}{path}", _EPOCH)
            member.create_system = _UNIX
            member.external_attr = (_PROGRAM if path in skill.executable else _FILE) << 16
            target.writestr(member, content)
    return buffer.getvalue()


_MARKER_LINE = re.compile(rf"^[ \t]*(?:{MARKER.pattern}[ \t]*)+(?:\n|\Z)", re.MULTILINE)


def without_markers(skill: Skill) -> Skill:
    """Return ``skill`` with no region marker in its Markdown; what is between markers stays, frontmatter too."""
    for path, text in list(skill.text_files()):
        if path.endswith(".md"):
            head = frontmatter(text) if path == DOCUMENT else ""
            bare = head + _bare(text[len(head) :])
            if bare != text:
                skill = skill.with_text(path, bare)
    return skill


def _bare(text: str) -> str:
    """Return ``text`` without markers; a line that holds nothing else is removed too."""
    while True:
        # Of a marker inside a marker, removing the inner one leaves the outer.
        bare = MARKER.sub("", _MARKER_LINE.sub("", text))
        if bare == text:
            return text
        text = f"{bare.rstrip()}\n" if bare.strip() else ""


def skill_of(workspace: Workspace, revision: str) -> Skill:
    """Return the skill of a revision as it would be exported."""
    return skill_named(workspace, revision).skill


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSkill:
    row: LogRow | None  # the event of the version; absent for a commit outside of runs
    commit: str
    skill: str
    place: str
    archive: bool
    files: tuple[str, ...]
    changes: tuple[FileChange, ...] = ()  # how they differ from what was there before; empty for nothing
    held: bool = False  # whether exactly this was there already, so that nothing was written

    @property
    def misnamed(self) -> bool:
        """Whether it is a folder that does not bear the skill's name, as agents want."""
        return not self.archive and Path(self.place).name != self.skill


def export_skill(
    workspace: Workspace, revision: str, path: str, *, strip_markers: bool = False, force: bool = False
) -> ExportedSkill:
    """Write the skill of a revision to a folder or an archive; a DiffersError if a folder with others is there.

    Only with ``force`` is a skill folder or an archive with other content replaced.
    """
    source = skill_named(workspace, revision)
    skill = without_markers(source.skill) if strip_markers else source.skill
    target = refuse_way_out(typed_path(workspace.context.directory, path))
    result = ExportedSkill(
        row=source.row,
        commit=source.commit,
        skill=skill.name,
        place=str(target),
        archive=target.name.endswith(ENDINGS),
        files=tuple(skill.files),
    )
    if result.archive:
        content = archive(skill)
        if target.is_dir():
            raise UsageError(f"{target} is a folder", hint=f"write to {target / f'{skill.name}.skill'}")
        if target.is_file() and target.read_bytes() == content:
            return replace(result, held=True)
        if not force and (target.exists() or target.is_symlink()):
            raise ConflictError(f"{target} exists and holds something else", hint="--force replaces it")
        write_file(target, content)
        return result
    _check_is_skill(target, skill.name)
    there, new = read_entries(target), entries_of(skill)
    if fingerprint(there) == fingerprint(new):
        return replace(result, held=True)
    if len(there) > 1:
        result = replace(result, changes=changes(there, new))
        if not force:
            raise DiffersError(
                f"{target} holds another skill or another version, and {len(result.changes)} of its files would change",
                hint="--force replaces it",
                changes=result.changes,
            )
    put(target, lambda beside: write_skill(beside, skill))
    return result


def _check_is_skill(folder: Path, name: str) -> None:
    """Refuse a place that is not a folder, or that holds something else than a skill: it may be large, and precious."""
    if folder.is_symlink() or folder.is_file():
        raise UsageError(f"{folder} is not a folder", hint=f"archives end in {' or '.join(ENDINGS)}")
    try:
        inside = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    except OSError as error:
        raise ConflictError(f"{folder} cannot be read: {error.strerror}", hint=f"ls -ld {folder}") from error
    if inside and (DOCUMENT not in inside or ".git" in inside):
        raise UsageError(f"{folder} holds something else than a skill", hint=f"write to {folder / name}")


WELL_KNOWN = ".well-known/agent-skills"
_DISCOVERY = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSkills:
    folder: str  # that of the index
    commit: str
    skills: tuple[str, ...]  # their names
    files: int


def export_well_known(workspace: Workspace, revision: str, root: str) -> PublishedSkills:
    """Write the skills of a revision as static files under ``root``, that of a web space, with their index.

    The index has the fields of both drafts of Agent Skills discovery: a list of files, and one artefact with a digest.
    """
    resolution = resolve(workspace, revision)
    own = workspace.index.skill_path(resolution.run) if resolution.row is not None and resolution.run else ""
    there = work_tree.skills_at(workspace.repo, resolution.commit)
    chosen_path = own or (workspace.skill if workspace.skill in there else "")
    paths = [chosen_path] if chosen_path else there
    skills = [skill_at(workspace.repo, resolution.commit, path) for path in paths]
    if not skills:
        raise SkillError(f"there is no skill at {revision}", hint=NO_SKILL)
    files: dict[str, bytes] = {}
    entries = []
    for skill in skills:
        fields = frontmatter_fields.read(skill.document)
        if fields is None:
            raise SkillError(f"{DOCUMENT} of {skill.name} has no frontmatter", hint="skillgit lint")
        files |= {f"{skill.name}/{path}": content for path, content in skill.files.items()}
        is_one_file = len(skill.files) == 1
        address = f"{skill.name}/{DOCUMENT}" if is_one_file else f"{skill.name}.zip"
        if not is_one_file:
            files[address] = archive(skill, folder="")
        entries.append(
            {
                "name": skill.name,
                "description": fields["description"],
                "type": "skill-md" if is_one_file else "archive",
                "url": address,
                "digest": sha256_digest(files[address]),
                "files": [*skill.files],
                "digests": {path: sha256_digest(content) for path, content in skill.files.items()},
                "gitTree": tree_id(entries_of(skill)),
            }
        )
    index = {"$schema": _DISCOVERY, "skills": entries}
    files["index.json"] = f"{json.dumps(index, indent=2, ensure_ascii=False)}\n".encode()
    web_root = typed_path(workspace.context.directory, root)
    folder = refuse_way_out(web_root / WELL_KNOWN)
    _check_replaceable(web_root, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    put(folder, lambda beside: write_files(beside, files))
    names = tuple(skill.name for skill in skills)
    return PublishedSkills(folder=str(folder), commit=resolution.commit, skills=names, files=len(files))


def _check_replaceable(root: Path, folder: Path) -> None:
    """Refuse a folder that a link below ``root`` leads to, or with a file that its index does not list."""
    link = next((path for path in (folder, folder.parent) if path != root and path.is_symlink()), None)
    there = {path: entry.content for path, entry in read_entries(folder).items() if entry.kind is not EntryKind.FOLDER}
    index = there.get("index.json", b"")
    listing = {"index.json": sha256_digest(index)}
    try:
        document = loads(index)
        for entry in document["skills"] if document["$schema"] == _DISCOVERY else ():
            listing |= {f"{entry['name']}/{path}": digest for path, digest in entry["digests"].items()}
            listing[entry["url"]] = entry["digest"]
        is_ours = link is None and document["$schema"] == _DISCOVERY
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        is_ours = False
    stranger = link or next(
        (path for path in there if not is_ours or sha256_digest(there[path]) != listing.get(path)), None
    )
    if stranger is not None:
        raise ConflictError(
            f"{folder} holds something that was not published there, {stranger}",
            hint="name another root, or remove it",
        )


def sha256_digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOut:
    row: LogRow | None  # the event that was checked out; absent for a commit outside of runs
    commit: str
    files: tuple[str, ...]  # the files that were written, relative to the work tree
    branch: str = ""  # the branch that HEAD is on now; empty if it is detached, or stayed where it was
    back: str = ""  # the branch that it was on before, or last if it was detached; empty if there is none to go back to


def checkout(context: Context, revision: str, paths: tuple[str, ...] = ()) -> CheckedOut:
    """Put ``paths`` of the revision into the work tree; or all, with HEAD on the branch that it names or detached."""
    with Workspace(context) as workspace:
        resolution = resolve(workspace, revision)
        if paths:
            inside = [_inside(workspace, path) for path in paths]
            files = work_tree.write_paths(workspace.repo, resolution.commit, inside)
            return CheckedOut(row=resolution.row, commit=resolution.commit, files=files)
        # What names a version or a run never means a branch, even if there is one of that name.
        is_ours = is_address(revision) or revision in queries.run_names(workspace.index)
        branch = revision if not is_ours and work_tree.is_branch(workspace.repo, revision) else ""
        back = work_tree.last_branch(workspace.repo)
        files = work_tree.checkout(workspace.repo, resolution.commit, branch)
        branch_left = "" if back == branch else back
        return CheckedOut(row=resolution.row, commit=resolution.commit, files=files, branch=branch, back=branch_left)


def _inside(workspace: Workspace, path: str) -> str:
    """Return ``path`` as the repository calls it; links are not followed, as in git."""
    top = workspace.repo.workdir
    if top is None:
        return path
    inside = relpath(normpath(workspace.context.directory / path), top.resolve())
    if inside == ".." or inside.startswith("../"):
        raise UsageError(f"{path} is outside of the repository", hint=f"the work tree is {top}")
    return "" if inside == "." else inside
