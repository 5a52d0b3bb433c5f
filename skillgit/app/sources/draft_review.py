"""Drafts of tasks that were harvested from use: they become tasks of the work tree, or are dropped.

Drafts are private until ``skillgit tasks review --skill`` accepts them. Each answer is one replacement of
``drafts.jsonl``: of a draft that was accepted it holds the row and where it goes, so that a review that was cut off
behind the answer is finished by the next one. The row of an answer also holds, as ``undo``, the line that it replaced,
and the draft's files stay, so that the answer can be taken back; a day later both are deleted.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import cast

import yaml

from skillgit.app.sources.tasks import ALL, DRAFT, REVIEWED, Row, TaskEntry, TaskFile, check_new, reader_of_tasks
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.skills_here import reviewed_tasks
from skillgit.domain.credentials.detector import Certainty, is_guess
from skillgit.domain.ids import digest
from skillgit.domain.leaks import words
from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.file_names import file_name, git_fault, path_fault
from skillgit.domain.untrusted.model_text import escaped_json
from skillgit.errors import ConflictError, DataError, NotFoundError, SkillgitError, UnsafeNameError, UsageError
from skillgit.files import locked, open_plain, read_plain, write_file
from skillgit.plugin.data_rows import read_rows
from skillgit.plugin.likeness import alike, alike_to
from skillgit.plugin.redaction import Redactor
from skillgit.plugin.seed_folder import write_files
from skillgit.store.repo import Repo

DRAFTS = "drafts"  # the folder in the repository's private one, with a folder for each skill
DRAFT_ROWS, DRAFT_FILES = "drafts.jsonl", "files"  # in that of a skill; of the files, a folder for each draft
DROPPED, ACCEPTED, RETURNED = "dropped", "accepted", "returned"
_DID: dict[object, str] = {DRAFT: "edited", DROPPED: DROPPED}  # by the status of a draft; any other was accepted
_KEPT = timedelta(days=1)  # for how long an answer can be taken back
_LARGEST = 64 << 20  # bytes of a file that a task may have
_OURS = ("id", "group", "status", "origin", "reviewed", "undo")  # fields that a review does not edit
_WITH_FILES = ("files", "images", "check", "checks")  # fields that name files
_BINARY = 8000  # bytes in which git looks for NUL to see that a file is not text
_PUBLIC = ("agent", "version", "date", "use", "tree", "signals")  # of an origin; the rest stays private
_HINT = "skillgit tasks review --skill {} shows what there is"


@contextmanager
def drafts_lock(drafts: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the lock that protects drafts, which are in the folder ``drafts``; ``kind`` is that of ``flock``."""
    with locked(open_plain(drafts / "lock", os.O_RDWR | os.O_CREAT, mode=0o600), kind):
        yield


def harvested_skills(context: Context) -> dict[str, int]:
    """Return the skills with drafts, or with answers that can be taken back, and how many wait for an answer."""
    files = sorted((Repo.discover(context.directory).private_dir / DRAFTS).glob(f"*/{DRAFT_ROWS}"))
    rows = {path.parent.name: [dict(row.fields) for row in read_rows(path)] for path in files}
    counts = {skill: sum(row.get("status") == DRAFT for row in own) for skill, own in rows.items()}
    return {skill: count for skill, count in counts.items() if count or any(map(_undo_of, rows[skill]))}


def inside(path: Path, root: Path) -> Path:
    """Return ``path``, by way of no link, below ``root``; a UsageError if it leads elsewhere, or to what git keeps."""
    path, root = path.parent.resolve() / path.name, root.resolve()
    is_gits = path.is_relative_to(root) and any(map(git_fault, path.relative_to(root).parts))
    if not path.is_relative_to(root) or is_gits or path.is_symlink():
        raise UsageError(f"{path} is not in the work tree {root}", hint="name a file in it with --into")
    return path


def folder_of_drafts(private_dir: Path, skill: str) -> Path:
    """Return the folder with the drafts of ``skill``; a UsageError if that cannot be a name."""
    try:
        return private_dir / DRAFTS / file_name(skill)
    except UnsafeNameError as error:
        raise UsageError(error.message, hint="give the skill by its name, as SKILL.md has it") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFile:
    name: str  # next to the file of tasks, once it is accepted
    size: int  # in bytes
    path: Path  # where it is now

    def text(self, most: int = _LARGEST) -> str:
        """Return its first ``most`` bytes as text; what is not UTF-8 is replaced."""
        return read_plain(self.path, most=_LARGEST)[:most].decode(errors="replace")


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

    @property
    def editable(self) -> str:
        """What can be edited of it, as YAML."""
        fields = {name: value for name, value in json.loads(self.line).items() if name not in _OURS}
        is_shown = escaped_json(self.line) == self.line  # invisible characters are edited as escapes
        return yaml.dump(fields, Dumper=_Dumper, allow_unicode=is_shown, sort_keys=False, width=10_000)


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

    return {name: rename(value) if name in (*_WITH_FILES, "context") else value for name, value in row.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftAnswer:
    """An answer that can be taken back."""

    id: str  # of the draft
    did: str  # accepted, dropped or edited
    state: str  # a digest of the answer
    command: int  # the same of all answers of one command

    def __str__(self) -> str:
        return f"{self.did} {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestReview:
    skill: str
    path: Path  # the file of reviewed tasks
    accepted: tuple[str, ...]
    dropped: tuple[str, ...]
    undo: tuple[str, ...]  # the answers that were taken back, as "dropped ID"
    stays: tuple[str, ...]  # those that were not, because their drafts or tasks have changed since
    drafts: tuple[PendingDraft, ...]  # those that are left
    tasks: int  # in the file


def review_harvest(
    context: Context,
    skill: str,
    *,
    into: Path | None = None,
    accept: Sequence[str] = (),
    drop: Sequence[str] = (),
    undo: bool = False,
) -> HarvestReview:
    """Accept and drop the drafts with these ids, or ``all``, or ``undo`` the last command; return the drafts left.

    Accepting all leaves out what has a warning. Nothing takes effect if one of the ids is refused.
    """
    with open_drafts(context, skill, into) as folder:
        answers, stays = folder.undo_command() if undo else ([], [])
        drafts = {draft.id: draft for draft in folder.drafts()}
        safe = [name for name, draft in drafts.items() if not draft.obstacles and not draft.warnings]
        to_accept, to_drop = (
            dict.fromkeys(choice for name in names for choice in (every if name == ALL else [name]))
            for names, every in ((accept, safe), (drop, drafts))
        )
        if missing := next((name for name in (*to_accept, *to_drop) if name not in drafts), ""):
            raise NotFoundError(f"there is no draft {missing} of {skill}", hint=_HINT.format(skill))
        if both := to_accept.keys() & to_drop.keys():
            raise UsageError(f"draft {min(both)} is accepted and dropped at once", hint="say one of them")
        for name in to_accept:
            _check_acceptable(drafts[name], skill)
        folder.check_different(to_accept)
        command = folder.next_number
        for name in to_accept:
            folder.accept(drafts[name], command)
        for name in to_drop:
            folder.drop(drafts[name], command)
        return HarvestReview(
            skill=skill,
            path=folder.tasks.path,
            accepted=tuple(to_accept),
            dropped=tuple(to_drop),
            undo=tuple(map(str, answers)),
            stays=tuple(map(str, stays)),
            drafts=tuple(draft for name, draft in drafts.items() if name not in to_accept and name not in to_drop),
            tasks=folder.count(),
        )


@contextmanager
def open_drafts(context: Context, skill: str, into: Path | None = None) -> Iterator[DraftFolder]:
    """Open the drafts of a skill, and finish an acceptance that was cut off; a NotFoundError if there are none."""
    repo = Repo.discover(context.directory)
    folder = folder_of_drafts(repo.private_dir, skill)
    if not (folder / DRAFT_ROWS).is_file():
        raise NotFoundError(f"nothing was harvested for {skill}", hint=f"skillgit tasks draft {skill} --from sessions")
    if repo.workdir is None:
        raise UsageError("this repository has no work tree, where tasks would go", hint="review in one that has")
    into = context.directory / into if into is not None else reviewed_tasks(repo.workdir, skill)
    drafts = DraftFolder(context, repo, folder, inside(into, repo.workdir))
    if drafts.is_cut_off:
        with drafts.alone():
            drafts.finish()
    yield drafts


class DraftFolder:
    """The drafts of one skill; every answer takes effect at once. ``tasks`` is where accepted ones go."""

    def __init__(self, context: Context, repo: Repo, folder: Path, into: Path) -> None:
        self._folder, self._redactor = folder, Redactor.now(Certainty.LIKELY)
        self._clock = context.clock
        self._reader = reader_of_tasks(context)
        self._root = cast("Path", repo.workdir).resolve()
        self.tasks = TaskFile(path=into)
        self._known: tuple[bytes, list[TaskEntry]] | None = None
        self._read: tuple[bytes, list[Row]] | None = None

    @property
    def skill(self) -> str:
        return self._folder.name

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock that a harvest holds, too; a ConflictError if another process has it."""
        try:
            with drafts_lock(self._folder.parent, fcntl.LOCK_EX | fcntl.LOCK_NB):
                yield
        except BlockingIOError:
            hint = "answer again when the harvest or the other review is done"
            raise ConflictError("another process is writing drafts", hint=hint) from None

    @property
    def is_cut_off(self) -> bool:
        """Whether an answer that is written down was not carried out, or can no longer be taken back."""
        statuses = (ACCEPTED, RETURNED)
        return any(row.get("status") in statuses or self._is_final(row) or self._leftovers(row) for row in self._rows())

    def _is_final(self, row: Row) -> bool:
        undo = _undo_of(row)
        return bool(undo) and self._clock() - datetime.fromisoformat(str(undo["time"])) >= _KEPT

    def _leftovers(self, row: Row) -> Path | None:
        """Return the folder with files of a draft whose answer is final; None if there is none."""
        name = str(row["id"])
        is_over = row.get("status") != DRAFT and not _undo_of(row) and not path_fault(name)
        return self._own(name) if is_over and self._own(name).exists() else None

    def count(self) -> int:
        return len(read_rows(self.tasks.path)) if self.tasks.path.exists() else 0

    def pending_ids(self) -> list[str]:
        """Return the names of the drafts that wait for an answer."""
        return [str(row["id"]) for row in self._rows() if _waits(row)]

    def drafts(self, names: Sequence[str] | None = None) -> Iterator[PendingDraft]:
        """Yield the drafts that wait for an answer, or those of them called ``names``."""
        for name in self.pending_ids() if names is None else names:
            with suppress(NotFoundError, ConflictError):
                yield self.pending(name)

    def pending(self, name: str, state: str | None = None) -> PendingDraft:
        """Return the draft that is called ``name``, which must be in ``state`` if that is given.

        A NotFoundError if there never was one; a ConflictError if it was answered, or has changed.
        """
        return self._draft(self._waiting(name, state)[1])

    def _waiting(self, name: str, state: str | None) -> tuple[int, Row]:
        position, row = next(((at, row) for at, row in enumerate(self._rows()) if row["id"] == name), (0, None))
        if row is None:
            raise NotFoundError(f"there is no draft {name} of {self.skill}", hint=_HINT.format(self.skill))
        if not _waits(row) or (state is not None and state != self._state(row)):
            problem = f"{name} was {_DID.get(row.get('status'), ACCEPTED)} in another window"
            raise ConflictError(problem, hint="look again before you answer")
        return position, row

    def waiting_from(self, name: str) -> str:
        """Return ``name`` if that draft waits for an answer, else the next one that does; empty if none does."""
        rows = self._rows()
        at = next((number for number, row in enumerate(rows) if row["id"] == name), 0)
        return next((str(row["id"]) for row in (*rows[at:], *rows[:at]) if _waits(row)), "")

    def check_different(self, names: Iterable[str]) -> None:
        """Refuse, by a ConflictError, drafts that are one task: the second could not be accepted behind the first."""
        first = dict[str, str]()
        for name in names:
            same = first.setdefault(self._item(self._waiting(name, None)[1]).digest, name)
            if same != name:
                hint = f"accept {same}, and drop {name}"
                raise ConflictError(f"drafts {same} and {name} are the same task", hint=hint)

    def accept(self, draft: PendingDraft, command: int = 0) -> None:
        """Make a task of ``draft``; nothing is committed. The answers of one ``command`` are taken back together."""
        _check_acceptable(draft, self.skill)
        self._answer(
            draft,
            {"id": draft.id, "group": draft.group, "status": ACCEPTED},
            command,
            task=draft.line,
            into=self.tasks.path.relative_to(self._root).as_posix(),
            size=self.tasks.size,
        )

    def drop(self, draft: PendingDraft, command: int = 0) -> None:
        """Forget ``draft``, once the answer is final, but for its id and group, by which the next harvest knows it."""
        self._answer(draft, {"id": draft.id, "group": draft.group, "status": DROPPED}, command)

    def edit(self, draft: PendingDraft, text: str) -> PendingDraft:
        """Return ``draft`` with the fields that ``text`` has as YAML or JSON; a DataError says what is wrong."""
        fields = renamed(_fields_of(text), self._public(draft.id), f"{DRAFT_FILES}/{draft.id}")
        _, row = self._waiting(draft.id, draft.state)
        edited_row = {name: value for name, value in row.items() if name in _OURS} | fields
        if fault := self._fault(edited_row):
            raise DataError(f"this is not a task: {fault}", hint="the README of the environment tasks lists its fields")
        return self._draft(self._answer(draft, edited_row))

    def decisions(self) -> list[DraftAnswer]:
        """Return the last answer to each draft that has one, in their order."""
        rows = sorted((row for row in self._rows() if _undo_of(row)), key=_number)
        return [
            DraftAnswer(
                id=str(row["id"]),
                did=_DID.get(row.get("status"), ACCEPTED),
                state=digest(row),
                command=cast("int", _undo_of(row).get("command")) or _number(row),
            )
            for row in rows
        ]

    def last(self) -> tuple[DraftAnswer | None, list[DraftAnswer]]:
        """Return the last answer that can be taken back, and later ones whose draft or task has changed since."""
        rows = {row["id"]: row for row in self._rows()}
        later: list[DraftAnswer] = []
        for answer in reversed(self.decisions()):
            if self._is_as_left(rows[answer.id]):
                return answer, later
            later.append(answer)
        return None, later

    def undo(self, state: str = "") -> DraftAnswer:
        """Take back the last answer that can be, which must be the one of ``state`` if that is given, and return it.

        A NotFoundError if there is none; a ConflictError if its draft or its task has changed since.
        """
        with self.alone():
            last, later = self.last()
            if stuck := next((answer for answer in later if last is None or answer.state == state), None):
                problem = f"{stuck.id} has changed since it was {stuck.did}, so that cannot be taken back"
                raise ConflictError(problem, hint="change the draft or the task by hand")
            if last is None:
                raise NotFoundError("there is no answer to take back", hint="answers become final after a day")
            if state and state != last.state:
                raise ConflictError(f"the last answer is another one now: {last}", hint="look again, then take it back")
            position, row = next((at, row) for at, row in enumerate(self._rows()) if row["id"] == last.id)
            self._put(position, json.dumps({**row, "status": RETURNED}, ensure_ascii=False))
            self.finish()
            return last

    def undo_command(self) -> tuple[list[DraftAnswer], list[DraftAnswer]]:
        """Take back the last answer and the others of its command; return them, and those since that have changed."""
        answers = [self.undo()]
        while (last := self.last()[0]) is not None and last.command == answers[0].command:
            answers.append(self.undo(last.state))
        return answers, [answer for answer in self.decisions() if answer.command >= answers[0].command]

    @property
    def next_number(self) -> int:
        return max(map(_number, self._rows())) + 1

    def _answer(self, draft: PendingDraft, row: Row, command: int = 0, **more: str | int) -> Row:
        with self.alone():
            position, _ = self._waiting(draft.id, draft.state)
            row["undo"] = {
                "number": self.next_number,
                "command": command,
                "time": self._clock().isoformat(),
                "line": [line for line in self._lines() if line.strip()][position],
                "before": draft.state,
                "after": self._state({**row, "status": REVIEWED} if row["status"] == ACCEPTED else row),
                **more,
            }
            self._put(position, json.dumps(row, ensure_ascii=False))
            self.finish()
            return row

    def finish(self) -> None:
        """Carry out what is written down, and delete what final answers left; the caller holds the lock."""
        for position, row in enumerate(self._rows()):
            undo, new_row = _undo_of(row), dict(row)
            if row.get("status") == ACCEPTED:
                self._bring(undo)
                new_row["status"] = REVIEWED
            elif row.get("status") == RETURNED:
                if "task" in undo:
                    self._remove(undo)
                self._put(position, str(undo["line"]))
                continue
            if self._is_final(row):
                del new_row["undo"]
            if new_row != row:
                self._put(position, json.dumps(new_row, ensure_ascii=False))
            if folder := self._leftovers(new_row):
                shutil.rmtree(folder, ignore_errors=True)

    def _place(self, undo: Row) -> tuple[TaskFile, Path, dict[str, Path]]:
        """Return the file of an accepted task, the folder of its files, and these as the draft has them."""
        task = json.loads(str(undo["task"]))
        tasks = TaskFile(path=inside(self._root / str(undo["into"]), self._root))
        name = str(task["id"])
        own = {path.relative_to(self._own(name)).as_posix(): path for path in self._paths(task, self._public(name))}
        return tasks, inside(tasks.path.parent / self.skill / file_name(name), self._root), own

    def _bring(self, undo: Row) -> None:
        """Put the files of an accepted draft in place, and then its row, if they are not there yet."""
        tasks, target, files = self._place(undo)
        task = json.loads(str(undo["task"]))
        if files and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            young = target.with_name(f".{target.name}.new")
            shutil.rmtree(young, ignore_errors=True)
            write_files(young, {path: read_plain(source, most=_LARGEST) for path, source in files.items()})
            young.rename(target)
        tasks.path.parent.mkdir(parents=True, exist_ok=True)
        if not tasks.path.exists() or all(entry.fields.get("id") != task["id"] for entry in read_rows(tasks.path)):
            tasks.append([task])

    def _is_as_left(self, row: Row) -> bool:
        """Say whether an answered draft and its task are what the answer left."""
        undo = _undo_of(row)
        old_row = json.loads(str(undo["line"]))
        is_same = [self._state(row), self._state(old_row)] == [undo["after"], undo["before"]]
        try:
            return is_same and ("task" not in undo or self._is_as_brought(undo))
        except SkillgitError:  # a link is where its task was
            return False

    def _is_as_brought(self, undo: Row) -> bool:
        """Say whether the task and its files are what ``_bring`` left."""
        tasks, target, files = self._place(undo)
        paths = {path.relative_to(target).as_posix(): path for path in target.rglob("*") if files and path.is_file()}
        now, before = (
            {name: read_plain(path, most=None, follow=True) for name, path in each.items()} for each in (paths, files)
        )
        return tasks.has(str(undo["task"])) and now == before

    def _remove(self, undo: Row) -> None:
        """Undo ``_bring``."""
        tasks, target, files = self._place(undo)
        tasks.remove(str(undo["task"]), cast("int", undo["size"]))
        if files:
            shutil.rmtree(target, ignore_errors=True)
        for folder in (target.parent, tasks.path.parent):
            with suppress(OSError):  # it is in use
                folder.rmdir()

    def _rows(self) -> list[Row]:
        """Return the rows of all drafts, read again when their file has changed."""
        content = read_plain(self._folder / DRAFT_ROWS, most=None)
        if self._read is None or self._read[0] != content:
            self._read = (content, self._read_rows())
        return self._read[1]

    def _read_rows(self) -> list[Row]:
        rows = [dict(row.fields) for row in read_rows(self._folder / DRAFT_ROWS)]
        if position := next((number for number, row in enumerate(rows, start=1) if not row.get("id")), 0):
            raise DataError(f"{self._folder / DRAFT_ROWS}:{position} has no id", hint="harvest again into a new file")
        return rows

    def _lines(self) -> list[str]:
        """Return the lines of the file of drafts, with those that are blank."""
        return read_plain(self._folder / DRAFT_ROWS, most=None).decode("utf-8-sig").split("\n")

    def _put(self, position: int, line: str) -> None:
        """Replace the line of a row."""
        lines = self._lines()
        lines[[number for number, old_line in enumerate(lines) if old_line.strip()][position]] = line
        write_file(self._folder / DRAFT_ROWS, "\n".join(lines).encode(), mode=0o600)

    def _own(self, name: str) -> Path:
        return self._folder.resolve() / DRAFT_FILES / name

    def _public(self, name: str) -> str:
        return f"{self.skill}/{name}"

    def _paths(self, row: Row, prefix: str) -> list[Path]:
        """Return the files that a row names, whose names in it begin with ``prefix``; none that are elsewhere."""
        own = self._own(str(row["id"]))
        texts = [text for field in _WITH_FILES for _, text in places(row.get(field))]
        names = [text for text in texts if text == prefix or text.startswith(f"{prefix}/")]
        paths = [own / name.removeprefix(prefix).lstrip("/") for name in names]
        files = {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])}
        # A command may have any path as an argument, or a link may lead out of the folder.
        return sorted(file for file in files if file.is_file() and file.resolve() == file and file.is_relative_to(own))

    def _state(self, row: Row) -> str:
        """Return what changes with the row of a draft, except how to take it back, and every byte of its files."""
        own = self._own(str(row["id"]))
        paths = self._paths(row, f"{DRAFT_FILES}/{row['id']}") if row.get("status") == DRAFT else []
        contents = {path.relative_to(own).as_posix(): sha256(read_plain(path, most=None)).hexdigest() for path in paths}
        return digest([{name: value for name, value in row.items() if name != "undo"}, contents])

    def _draft(self, row: Row) -> PendingDraft:
        name, fault = str(row["id"]), self._fault(row)
        paths = [] if fault else self._paths(row, f"{DRAFT_FILES}/{name}")
        public = {path: f"{self._public(name)}/{path.relative_to(self._own(name)).as_posix()}" for path in paths}
        files = tuple(DraftFile(name=public[path], size=path.stat().st_size, path=path) for path in paths)
        origin = cast("Row", row["origin"]) if isinstance(row.get("origin"), dict) else {}
        task: Row = {"id": row["id"], "group": row.get("group", ""), "status": REVIEWED}
        task["reviewed"] = self._clock().date().isoformat()
        task |= {field: value for field, value in row.items() if field not in _OURS}
        task["origin"] = {field: origin[field] for field in _PUBLIC if field in origin}
        task = renamed(task, f"{DRAFT_FILES}/{name}", self._public(name))
        context = {"context": task["context"]} if "context" in task else {}
        line = json.dumps(task, ensure_ascii=False)
        suspects = [*self._suspects(task, line, files)]
        return PendingDraft(
            id=name,
            group=str(row.get("group", "")),
            prompt=str(row.get("prompt", "") if fault else self._item(row | context).content["prompt"]),
            # What is asked begins with the context.
            expected={
                name: value
                for name, value in task.items()
                if name not in (*_OURS, "prompt") and (fault or name != "context")
            },
            files=files,
            origin=dict(origin),
            line=line,
            obstacles=tuple(filter(None, [fault, *(text for text, is_random in suspects if not is_random)])),
            warnings=() if fault else (*self._warnings(row), *(text for text, is_random in suspects if is_random)),
            state=self._state(row),
        )

    def _item(self, row: Row) -> Item:
        task = {name: value for name, value in row.items() if name != "undo"}
        return self._reader.task(f"draft {row['id']}", task, self._folder / DRAFT_ROWS)

    def _fault(self, row: Row) -> str:
        """Say why ``row`` cannot be a task; empty if it can."""
        try:
            name, item = file_name(str(row["id"])), self._item(row)
            check_new(self._entries(), item, self.tasks.path.name)
        except SkillgitError as error:
            return error.message
        entries = [*cast("Sequence[Row]", item.content["files"]), *cast("Sequence[Row]", item.content["images"])]
        entries += [entry for check in _checks(item) for entry in cast("Sequence[Row]", check.get("files", ()))]
        strange = next(
            (entry for entry in entries if not str(entry["name"]).startswith(f"{DRAFT_FILES}/{name}/")), None
        )
        if strange is not None:
            return f"it names {strange['name']}, which is not among its own files"
        target = self.tasks.path.parent / self.skill / name
        return f"there are files at {self._public(name)} already" if entries and target.exists() else ""

    def _entries(self) -> list[TaskEntry]:
        """Return the tasks that are there already, read again when their file has changed."""
        content = self.tasks.path.read_bytes() if self.tasks.path.exists() else b""
        if self._known is None or self._known[0] != content:
            self._known = (content, self.tasks.read(self._reader))
        return self._known[1]

    def _suspects(self, task: Row, line: str, files: Sequence[DraftFile]) -> Iterator[tuple[str, bool]]:
        """Yield where what would be committed may hold a credential, never which, and whether it only looks random."""
        is_suspected = False
        for position, text in [*places(task), *((f"{file.name}:", file.text()) for file in files)]:
            for number, kinds in self._kinds(text).items():
                is_suspected = is_suspected or not all(kinds.values())
                yield f"{position}{number} may hold a secret ({', '.join(kinds)})", all(kinds.values())
        rows = self._kinds(line).values()
        if not is_suspected and (kinds := next(iter(rows), {})) and not all(kinds.values()):
            yield f"its line may hold a secret ({', '.join(kinds)})", False

    def _kinds(self, text: str) -> dict[int, dict[str, bool]]:
        """Return by line, 0 for a file that is not text, what kinds of secrets it may hold, and which are guesses."""
        is_plain = "\0" not in text[:_BINARY] and len(text) <= _LARGEST // 16
        redactor = self._redactor if is_plain else Redactor.now()
        rows: dict[int, dict[str, bool]] = {}
        for credential in redactor.find(text):
            number = text.count("\n", 0, credential.start) + 1 if is_plain else 0
            rows.setdefault(number, {})[credential.kind] = is_guess(credential)
        return rows

    def _warnings(self, row: Row) -> Iterator[str]:
        item = self._item(row)
        if any(check["type"] in ("python", "command") for check in _checks(item)):
            yield "its check runs a program"
        tasks = self._entries()
        texts = [_question(entry.item, entry.row) for entry in tasks]
        names = [tasks[position].item.id for position in alike_to(_question(item, row), texts)]
        drafts = ((str(draft["id"]), str(draft.get("prompt", ""))) for draft in self._rows() if _waits(draft))
        names += [f"draft {name}" for name in _repeats(tuple(drafts)).get(str(row["id"]), ())]
        yield from (f"it asks nearly the same as {name}" for name in names)


def _undo_of(row: Row) -> Row:
    """Return what takes the answer to a draft back; empty if nothing does."""
    return cast("Row", row.get("undo", {}))


def _waits(row: Row) -> bool:
    return row.get("status") == DRAFT


@lru_cache(maxsize=1)
def _repeats(drafts: tuple[tuple[str, str], ...]) -> dict[str, list[str]]:
    """Return which earlier ones each draft asks nearly the same as; a draft is a name and what is asked."""
    texts, first, repeats = [" ".join(words(text)) for _, text in drafts], dict[str, int](), dict[str, list[str]]()
    same = ((first.setdefault(text, at), at) for at, text in enumerate(texts) if text)
    for earlier, later in sorted({(min(pair), max(pair)) for pair in (*same, *alike(texts))}):
        if earlier != later:
            repeats.setdefault(drafts[later][0], []).append(drafts[earlier][0])
    return repeats


def _number(row: Row) -> int:
    """Return the position of a draft's answer among all; 0 without one."""
    return cast("int", _undo_of(row).get("number", 0))


def _question(item: Item, row: Row) -> str:
    """Return the folded words of what is asked, without the context where the row has them apart."""
    return " ".join(words(str(row.get("prompt") or item.content["prompt"])))


def _checks(item: Item) -> Sequence[Row]:
    return cast("Sequence[Row]", item.content["checks"])


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, as people edit them."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _fields_of(text: str) -> Row:
    try:
        fields = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        mark = getattr(error, "problem_mark", None)
        raise DataError(
            f"line {mark.line + 1 if mark else 1} is not valid YAML: {problem}", hint="check the quotes"
        ) from error
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        raise DataError("this is not a mapping of fields to values", hint="begin with prompt:")
    if strange := next((name for name in fields if name in _OURS), ""):
        raise DataError(f"'{strange}' cannot be edited", hint="leave it out")
    return cast("Row", fields)


def _check_acceptable(draft: PendingDraft, skill: str) -> None:
    if draft.obstacles:
        hint = f"edit it first: skillgit tasks review --skill {skill}, or the page of drafts in skillgit serve"
        raise DataError(f"draft {draft.id} cannot be accepted: {'; '.join(draft.obstacles)}", hint=hint)
