"""Skills as a server serves them (SEP-2640): an entry with digests, and files that are byte for byte what it lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from mimetypes import guess_type
from typing import Final
from urllib.parse import quote, unquote

from skillgit.app.deliver.export.folder import sha256_digest
from skillgit.app.deliver.requests import SCHEME
from skillgit.app.skill_format import frontmatter
from skillgit.app.workspace.revision import find_run, is_address, skill_named, version_in
from skillgit.app.workspace.skill_choice import labels
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.file_names import shown
from skillgit.domain.untrusted.model_text import hidden_in, name_of
from skillgit.errors import NotFoundError, RepositoryNotFoundError, SkillError, SkillgitError
from skillgit.plugin.redaction import credentials
from skillgit.store import promotion
from skillgit.store.history_reader import skill_at

_LOOKED_BACK: Final = 500
"""Commits of the trunk that are looked through for a promotion."""
_FILES, _BYTES = 512, 16 << 20
"""How many files, and bytes in them, every client takes of a skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSkill:
    path: str  # below ``skill://``: the skill's name, behind a revision where one was asked for
    skill: Skill
    fields: dict[str, object]  # the frontmatter, with every field that its author wrote
    file: str = DOCUMENT  # the file that was asked for

    def address(self, file: str) -> str:
        return f"{SCHEME}{quote(self.path)}/{quote(file)}"

    @property
    def entry(self) -> dict[str, object]:
        """The skill in an answer to ``skills/list`` and ``skills/get``."""
        files = [
            {"uri": self.address(path), "digest": sha256_digest(content), "size": len(content)}
            for path, content in self.skill.files.items()
        ]
        return {"uri": self.address(DOCUMENT), "frontmatter": self.fields, "resources": files}

    @property
    def resource(self) -> dict[str, object]:
        """The skill in an answer to ``resources/list``."""
        facts = {name: self.fields[name] for name in ("name", "description")}
        size = len(self.skill.files[DOCUMENT])
        return {"uri": self.address(DOCUMENT), **facts, "mimeType": "text/markdown", "size": size}

    @property
    def kind(self) -> str | None:
        """The media type of the file; None if its name says none."""
        return "text/markdown" if self.file.endswith(".md") else guess_type(self.file)[0]

    @property
    def content(self) -> str | bytes:
        """The file: text where it is UTF-8, in which every byte of it is kept."""
        try:
            return self.skill.files[self.file].decode()
        except UnicodeDecodeError:
            return self.skill.files[self.file]


def served_skills(workspace: Workspace) -> tuple[ServedSkill, ...]:
    """Return each skill that runs train, as it was promoted last, else its best version; without those that may not be.

    Where there is no repository there are no skills: agents start their servers everywhere.
    """
    skills = []
    with suppress(RepositoryNotFoundError):
        for label, path in _trained(workspace):
            with suppress(SkillgitError):
                skills.append(_served(label, _current(workspace, path)))
    return tuple(skills)


def served_file(workspace: Workspace, uri: str) -> ServedSkill:
    """Return the skill with the file that ``uri`` names; an error says why there is none.

    A skill is called by its name, and a version of it with the revision before that: ``skill://RUN/v7/NAME/SKILL.md``.
    """
    address = unquote(uri.removeprefix(SCHEME))
    for label, path in _trained(workspace):
        file = address.removeprefix(f"{label}/")
        if file != address and file in (skill := _current(workspace, path)).files:
            return replace(_served(label, skill), file=file)
    parts = address.split("/")
    for length in (1, 2):
        revision, folder = "/".join(parts[:length]), "/".join(parts[length : length + 1])
        file = "/".join(parts[length + 1 :])
        if not file or not is_address(revision):
            continue
        version_in(workspace, revision)  # a rejected candidate is not for use
        skill = skill_named(workspace, revision).skill
        if skill.name == folder and file in skill.files:
            return replace(_served(f"{revision}/{folder}", skill), file=file)
    raise NotFoundError(f"no file of a skill is served at {shown(uri)}", hint="skills/list names the skills")


def _trained(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Yield the skills that runs train: what each is called, and its folder."""
    for path, label in labels(workspace.index.column("SELECT DISTINCT skill FROM run ORDER BY skill")).items():
        yield label, path


def _current(workspace: Workspace, path: str) -> Skill:
    promoted = (
        change.commit for change in promotion.changes_on_trunk(workspace.repo, path, _LOOKED_BACK) if change.version
    )
    if commit := next(promoted, ""):
        return skill_at(workspace.repo, commit, path)
    return skill_named(workspace, f"{find_run(workspace.of_skill(path), None)}/best").skill


def _served(path: str, skill: Skill) -> ServedSkill:
    """Return ``skill`` under its address; a SkillError if a client could not load it, or should not."""
    fields, size = frontmatter.verbatim(skill.document), sum(map(len, skill.files.values()))
    if fields.get("name") != skill.name:
        sentence = f"{DOCUMENT} in the folder {skill.name} has the name {shown(str(fields.get('name')))}"
        raise SkillError(sentence, hint=f"name it {skill.name}")
    if len(skill.files) > _FILES or size > _BYTES:
        sentence = f"{skill.name} has {len(skill.files)} files with {size:,} bytes, more than clients take"
        raise SkillError(sentence, hint=f"the most are {_FILES} files and {_BYTES >> 20} MiB")
    for file, text in skill.text_files():
        if hidden := hidden_in(text):
            sentence = f"{file} of {skill.name} holds the hidden character {name_of(hidden[0][1])}"
            raise SkillError(sentence, hint="skillgit lint finds it")
        if credentials(text):
            sentence = f"{file} of {skill.name} holds what looks like a credential"
            raise SkillError(sentence, hint="skillgit lint --secrets finds it")
    return ServedSkill(path=path, skill=skill, fields=fields)
