"""``skillgit tasks``: files of tasks, checked rows added to them, drafts reviewed; other lines stay as they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from skillgit.errors import DataError, NotFoundError, UsageError
from skillgit.plugin.data_rows import read_rows
from skillgit.plugin.registry import load_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.app.workspace.context import Context
    from skillgit.domain.trajectory import Item


ENVIRONMENT = "tasks"


@runtime_checkable
class ReadsTasks(Protocol):
    """An environment that reads tasks from rows."""

    def task(self, where: str, row: Mapping[str, object], path: Path) -> Item:
        """Return the item that ``row`` of the file ``path`` stands for, be it a draft or not."""
        ...


def reader_of_tasks(context: Context) -> ReadsTasks:
    """Return the environment ``tasks``."""
    plugin = load_environment(ENVIRONMENT, context.directory)
    environment = plugin({option.name: option.default for option in plugin.info.options}, context.directory)
    if not isinstance(environment, ReadsTasks):
        raise UsageError(f"the environment '{ENVIRONMENT}' that is installed reads no task files", hint="remove it")
    return environment


Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task in a file.

    Attributes:
        line: The number of its line, from 1.
    """

    line: int
    row: Row
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """A file of tasks, one JSON object a line."""

    path: Path

    def __post_init__(self) -> None:
        if self.path.suffix != ".jsonl":
            raise UsageError(
                f"{self.path} is no *.jsonl file", hint="tasks are added to files with one JSON object a line"
            )

    def read(self, reader: ReadsTasks) -> list[TaskEntry]:
        """Return the tasks in the file; none if there is no file yet."""
        if not self.path.exists():
            return []
        rows = read_rows(self.path)
        lines = [number for number, line in enumerate(self._lines(), start=1) if line.strip()]
        return [
            TaskEntry(line=line, row=dict(row.fields), item=reader.task(row.where, row.fields, self.path))
            for line, row in zip(lines, rows, strict=True)
        ]

    def append(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Write further rows at the end."""
        text = self._text() if self.path.exists() else ""
        gap = "\n" if text and not text.endswith("\n") else ""
        self._write(f"{text}{gap}{''.join(_line(row) for row in rows)}")

    def replace(self, rows: Mapping[int, Mapping[str, object]]) -> None:
        """Write the rows with these line numbers anew."""
        lines = self._lines()
        for number, row in rows.items():
            lines[number - 1] = _line(row).rstrip("\n")
        self._write("\n".join(lines))

    def _text(self) -> str:
        return self.path.read_bytes().decode("utf-8-sig")

    def _lines(self) -> list[str]:
        return self._text().split("\n")

    def _write(self, text: str) -> None:
        """Put the whole file in place at once, so that no reader sees half of it."""
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            new.unlink(missing_ok=True)  # a link that someone left there leads elsewhere
            new.write_bytes(text.encode())
            new.replace(self.path)
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror}", hint="check the path and its permissions"
            ) from error


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def check_new(entries: Sequence[TaskEntry], item: Item, where: str) -> None:
    """Check that a task is none of ``entries``."""
    same = next((entry for entry in entries if item.id == entry.item.id or item.digest == entry.item.digest), None)
    if same is not None:
        raise DataError(f"the task is there already: {where}:{same.line}, {same.item.id}", hint="change it there")


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A task that was added.

    Attributes:
        id: The task's id, made from its content if none was given.
    """

    path: Path
    id: str
    count: int


def add(context: Context, path: Path, row: Mapping[str, object]) -> Added:
    """Add the task ``row`` to the file at ``path``, which is made if it is missing."""
    file, reader = TaskFile(path=context.directory / path), reader_of_tasks(context)
    entries = file.read(reader)
    item = reader.task("the new task", row, file.path)
    check_new(entries, item, str(path))
    file.append([{"id": item.id, **row}])
    return Added(path=file.path, id=item.id, count=len(entries) + 1)


ALL = "all"
DRAFT, REVIEWED = "draft", "reviewed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A task that a model wrote and nobody has accepted.

    Attributes:
        expected: What counts as right, as the file has it: answers, check or criteria.
    """

    id: str
    line: int
    prompt: str
    expected: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A file after a review.

    Attributes:
        accepted: Ids of the drafts that were accepted now.
        count: How many tasks there are, drafts included.
    """

    path: Path
    accepted: tuple[str, ...]
    drafts: tuple[TaskDraft, ...]
    count: int


def review(context: Context, path: Path, accept: Sequence[str] = ()) -> Reviewed:
    """Accept drafts and return those that are left.

    Args:
        context: Where relative paths begin.
        accept: Ids of drafts, or ``all``.

    Raises:
        NotFoundError: There is no draft of that id.
    """
    file = TaskFile(path=context.directory / path)
    if not file.path.is_file():
        raise UsageError(f"there is no file {path}", hint="check the path")
    entries = file.read(reader_of_tasks(context))
    drafts = [entry for entry in entries if entry.row.get("status") == DRAFT]
    stranger = next((name for name in accept if name != ALL and name not in {draft.item.id for draft in drafts}), None)
    if stranger is not None:
        raise NotFoundError(
            f"there is no draft {stranger} in {path}", hint=f"skillgit tasks review {quote(str(path))} lists them"
        )
    selection = [entry for entry in drafts if ALL in accept or entry.item.id in accept]
    if selection:
        file.replace({entry.line: {**entry.row, "status": REVIEWED} for entry in selection})
    return Reviewed(
        path=file.path,
        accepted=tuple(entry.item.id for entry in selection),
        drafts=tuple(_draft(entry) for entry in drafts if entry not in selection),
        count=len(entries),
    )


def _draft(entry: TaskEntry) -> TaskDraft:
    left_out = {"id", "status", "prompt"}
    expectation = {name: value for name, value in entry.row.items() if name not in left_out}
    return TaskDraft(id=entry.item.id, line=entry.line, prompt=str(entry.item.content["prompt"]), expected=expectation)
