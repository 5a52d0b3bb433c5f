"""``skillgit tasks``: files of tasks, checked rows added to them, drafts reviewed; other lines stay as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Protocol, runtime_checkable

from skillgit.app.workspace.context import Context
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError, NotFoundError, UsageError
from skillgit.plugin.data_rows import read_rows
from skillgit.plugin.registry import load_environment


@runtime_checkable
class ReadsTasks(Protocol):
    def task(self, where: str, row: Mapping[str, object], path: Path) -> Item:
        """Return the item that ``row`` of the file ``path`` describes, a draft or not."""
        ...


def reader_of_tasks(context: Context) -> ReadsTasks:
    plugin = load_environment("tasks", context.directory)
    environment = plugin({option.name: option.default for option in plugin.info.options}, context.directory)
    if not isinstance(environment, ReadsTasks):
        raise UsageError("the environment 'tasks' that is installed reads no task files", hint="remove it")
    return environment


Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    line: int  # the number of its line, from 1
    row: Row
    item: Item


_MARK = "\ufeff"  # the byte order mark


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """A file of tasks, one JSON object a line."""

    path: Path

    def __post_init__(self) -> None:
        if self.path.suffix != ".jsonl":
            problem = f"{self.path} is not a *.jsonl file"
            raise UsageError(problem, hint="tasks are added to files with one JSON object a line")

    def read(self, reader: ReadsTasks) -> list[TaskEntry]:
        """Return the tasks in the file; none if there is no file yet."""
        if not self.path.exists():
            return []
        rows = read_rows(self.path)
        lines = [number for number, line in enumerate(self._lines()[1], start=1) if line.strip()]
        return [
            TaskEntry(line=line, row=dict(row.fields), item=reader.task(row.where, row.fields, self.path))
            for line, row in zip(lines, rows, strict=True)
        ]

    def append(self, rows: Sequence[Mapping[str, object]]) -> None:
        text = self._text() if self.path.exists() else ""
        gap = "\n" if text and not text.endswith("\n") else ""
        lines = (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        self._write(f"{text}{gap}{''.join(lines)}")

    def replace(self, rows: Mapping[int, Mapping[str, object]]) -> None:
        mark, lines = self._lines()
        for number, row in rows.items():
            lines[number - 1] = json.dumps(row, ensure_ascii=False)
        self._write(mark + "\n".join(lines))

    @property
    def size(self) -> int:
        """Bytes of the file; -1 if there is none."""
        return self.path.stat().st_size if self.path.exists() else -1

    def has(self, line: str) -> bool:
        return self.path.exists() and f"{line}\n" in self._text()

    def remove(self, line: str, size: int) -> None:
        """Take out ``line``, if it is there, which was appended when the file had ``size`` bytes."""
        if not self.has(line):
            return
        head, _, tail = self._text().partition(f"{line}\n")
        if not tail and len(head.encode()) == size + 1 > 0:  # the end of the last line was missing
            head = head[:-1]
        if head + tail or size >= 0:
            self._write(head + tail)
        else:
            self.path.unlink()

    def _lines(self) -> tuple[str, list[str]]:
        """Return the mark that some editors put before a text, empty without one, and the lines behind it."""
        text = self._text()
        return _MARK * text.startswith(_MARK), text.removeprefix(_MARK).split("\n")

    def _text(self) -> str:
        """Return the text of the file with its byte order mark, so that it stays."""
        return self.path.read_bytes().decode("utf-8")

    def _write(self, text: str) -> None:
        """Put the whole file in place at once, so that no reader sees half of it."""
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            self.path.parent.mkdir(exist_ok=True)
            new.unlink(missing_ok=True)  # a link that someone left there leads elsewhere
            new.write_bytes(text.encode())
            new.replace(self.path)
        except OSError as error:
            problem = f"{self.path} cannot be written: {error.strerror}"
            raise UsageError(problem, hint="check the path and its permissions") from error


def check_new(entries: Sequence[TaskEntry], item: Item, where: str) -> None:
    same = next((entry for entry in entries if item.id == entry.item.id or item.digest == entry.item.digest), None)
    if same is not None:
        raise DataError(f"the task is there already: {where}:{same.line}, {same.item.id}", hint="change it there")


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    path: Path
    id: str  # the task's id, made from its content if none was given
    count: int


def add(context: Context, path: Path, row: Mapping[str, object]) -> Added:
    """Add the task ``row`` to the file at ``path``, which is made if it is missing, and so is its folder."""
    file, reader = TaskFile(path=context.directory / path), reader_of_tasks(context)
    entries = file.read(reader)
    item = reader.task("the new task", row, file.path)
    check_new(entries, item, str(path))
    file.append([{"id": item.id, **row}])
    return Added(path=file.path, id=item.id, count=len(entries) + 1)


ALL = "all"
DRAFT, REVIEWED = "draft", "reviewed"
SETUP = ("scaffold_script", "history_file")  # what an eval case may begin with, and no task does
STAND_IN = "The case was graded by "  # how a rubric begins that says what no check equals, and not what is right


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A task that a model wrote and that has not been accepted."""

    id: str
    line: int
    prompt: str
    expected: dict[str, object]  # what counts as right, as the file has it: answers, check or criteria
    warning: str  # why ``all`` leaves it out; empty if it does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    path: Path
    accepted: tuple[str, ...]  # ids of the drafts that were accepted now
    drafts: tuple[TaskDraft, ...]
    count: int  # how many tasks there are, drafts included


def review(context: Context, path: Path, accept: Sequence[str] = ()) -> Reviewed:
    """Accept the drafts with these ids, or ``all`` of those without a warning, and return those that are left.

    Nothing is accepted if one of the ids is of a draft that says no judge what is right.
    """
    file = TaskFile(path=context.directory / path)
    if not file.path.is_file():
        raise UsageError(f"there is no file {path}", hint="check the path")
    entries = file.read(reader_of_tasks(context))
    drafts = [entry for entry in entries if entry.row.get("status") == DRAFT]
    stranger = next((name for name in accept if name != ALL and name not in {draft.item.id for draft in drafts}), None)
    if stranger is not None:
        problem = f"there is no draft {stranger} in {path}"
        raise NotFoundError(problem, hint=f"skillgit tasks review {quote(str(path))} lists them")
    selection = [entry for entry in drafts if entry.item.id in accept or (ALL in accept and not _warning_of(entry.row))]
    for entry in selection:
        if entry.row.get("unmatched") and str(entry.row.get("rubric")).startswith(STAND_IN):
            problem = f"draft {entry.item.id} cannot be accepted: {_warning_of(entry.row)}"
            raise DataError(problem, hint=f"write a rubric or a check into {path}:{entry.line}")
    if selection:
        file.replace({entry.line: {**entry.row, "status": REVIEWED} for entry in selection})
    rest = []
    for entry in (entry for entry in drafts if entry not in selection):
        expectation = {name: value for name, value in entry.row.items() if name not in {"id", "status", "prompt"}}
        text = str(entry.item.content["prompt"])
        warning = _warning_of(entry.row)
        rest.append(TaskDraft(id=entry.item.id, line=entry.line, prompt=text, expected=expectation, warning=warning))
    ids = tuple(entry.item.id for entry in selection)
    return Reviewed(path=file.path, accepted=ids, drafts=tuple(rest), count=len(entries))


def _warning_of(row: Row) -> str:
    """Return why a person should look at a draft of an eval case; empty for any other."""
    graders, case = row.get("unmatched"), row.get("eval")
    if isinstance(graders, list) and graders:
        kinds = dict.fromkeys(str(grader.get("type")) if isinstance(grader, dict) else "?" for grader in graders)
        return f"no check equals what its case is graded by: {', '.join(kinds)}"
    setting = case.get("context") if isinstance(case, dict) else None
    needs = [name for name in SETUP if isinstance(setting, dict) and name in setting]
    return f"its case needs a {' and a '.join(needs)}, which a task has not" if needs else ""
