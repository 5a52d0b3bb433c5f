"""A draft that was harvested from use: what a reviewer sees of it, and what of it can be edited."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

from skillgit.app.sources.tasks import DRAFT, Row
from skillgit.app.workspace.context import Context
from skillgit.domain.untrusted.file_names import file_name, git_fault
from skillgit.errors import DataError, UnsafeNameError, UsageError
from skillgit.files import locked, open_plain, read_plain
from skillgit.plugin.data_rows import read_rows
from skillgit.store.repo import Repo

LARGEST = 64 << 20  # bytes of a file that a task may have
OURS = ("id", "group", "status", "origin", "reviewed", "into")  # fields that a review does not edit
WITH_FILES = ("files", "images", "check", "checks")  # fields that name files


DRAFTS = "drafts"  # the folder in the repository's private one, with a folder for each skill
DRAFT_ROWS, DRAFT_FILES = "drafts.jsonl", "files"  # in that of a skill; of the files, a folder for each draft


@contextmanager
def drafts_lock(drafts: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the lock of whoever writes drafts, which are in the folder ``drafts``; ``kind`` is that of ``flock``."""
    with locked(open_plain(drafts / "lock", os.O_RDWR | os.O_CREAT, mode=0o600), kind):
        yield


def harvested_skills(context: Context) -> dict[str, int]:
    """Return the skills of which there are drafts, with their number."""
    folders = sorted((Repo.discover(context.directory).private_dir / DRAFTS).glob(f"*/{DRAFT_ROWS}"))
    counts = {path.parent.name: sum(row.fields.get("status") == DRAFT for row in read_rows(path)) for path in folders}
    return {skill: count for skill, count in counts.items() if count}


def inside(path: Path, root: Path) -> Path:
    """Return ``path``, by way of no link, below ``root``; a UsageError if it leads elsewhere, or to what git keeps."""
    path, root = path.parent.resolve() / path.name, root.resolve()
    is_gits = path.is_relative_to(root) and any(map(git_fault, path.relative_to(root).parts))
    if not path.is_relative_to(root) or is_gits or path.is_symlink():
        raise UsageError(f"{path} is not in the work tree {root}", hint="name a file in it with --into")
    return path


def folder_of_drafts(private_dir: Path, skill: str) -> Path:
    """Return the folder with the drafts of ``skill``; a UsageError if that is no name."""
    try:
        return private_dir / DRAFTS / file_name(skill)
    except UnsafeNameError as error:
        raise UsageError(error.message, hint="give the skill by its name, as SKILL.md has it") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFile:
    name: str  # beside the file of tasks, once it is accepted
    size: int  # in bytes
    path: Path  # where it is now

    def text(self, most: int = LARGEST) -> str:
        """Return its first ``most`` bytes as text; what is no UTF-8 is replaced."""
        return read_plain(self.path, most=LARGEST)[:most].decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDraft:
    """A draft as it would be committed and sent to a model."""

    id: str
    group: str
    prompt: str  # what the target is asked, behind its files
    expected: dict[str, object]  # the proposed check, rubric or answers, and the other fields of the row
    files: tuple[DraftFile, ...]
    origin: dict[str, object]  # agent, version, date, use, signals and follow-up, as the harvest wrote them
    line: str  # the line of the file of tasks that it becomes
    obstacles: tuple[str, ...]  # why it cannot be accepted as it is: suspected secrets with their places, faults
    warnings: tuple[str, ...]  # what a person should look at; ``all`` leaves such a draft out
    state: str  # a digest of the stored row, by which a change in between is noticed


def places(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in JSON values, each with where it is, as ``check.files[0]:``."""
    if isinstance(value, str):
        yield f"{path}:", value
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from places(entry, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from places(entry, f"{path}[{number}]")


def renamed(row: Row, old: str, new: str) -> Row:
    """Return a row in which files below ``old`` are below ``new``, also where its context or check speaks of them."""
    path = re.compile(rf"(?<![\w./-]){re.escape(old)}(?![\w.-])")

    def rename(value: object) -> object:
        match value:
            case str():
                return path.sub(lambda _: new, value)
            case dict():
                return {name: rename(entry) for name, entry in value.items()}
            case list():
                return [rename(entry) for entry in value]
            case _:
                return value

    return {name: rename(value) if name in (*WITH_FILES, "context") else value for name, value in row.items()}


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, as people edit them."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def editable(draft: PendingDraft) -> str:
    """Return what of a draft can be edited, as YAML."""
    row = json.loads(draft.line)
    fields = {name: value for name, value in row.items() if name not in OURS}
    return yaml.dump(fields, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=10_000)


def fields_of(text: str) -> Row:
    try:
        fields = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        mark = getattr(error, "problem_mark", None)
        raise DataError(
            f"line {mark.line + 1 if mark else 1} is no YAML: {problem}", hint="check the quotes"
        ) from error
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        raise DataError("this is no mapping of fields to values", hint="begin with prompt:")
    if strange := next((name for name in fields if name in OURS), ""):
        raise DataError(f"'{strange}' cannot be edited", hint="leave it out")
    return cast("Row", fields)


def check_acceptable(draft: PendingDraft, skill: str) -> None:
    if draft.obstacles:
        hint = f"edit it first: skillgit tasks review --skill {skill}, or the page of drafts in skillgit serve"
        raise DataError(f"draft {draft.id} cannot be accepted: {'; '.join(draft.obstacles)}", hint=hint)
