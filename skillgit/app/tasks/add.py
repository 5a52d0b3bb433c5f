"""``skillgit tasks add``: one more task at the end of a file, after it has been checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.tasks.file import TaskFile, check_new
from skillgit.app.tasks.reading import reader_of_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillgit.app.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A task that was added.

    Attributes:
        path: The file.
        id: The task's id, made from its content if none was given.
        count: How many tasks the file has now.
    """

    path: Path
    id: str
    count: int


def add(context: Context, path: Path, row: Mapping[str, object]) -> Added:
    """Add the task ``row`` to the file at ``path``, which is made if it is missing.

    Raises:
        UsageError: The file is no ``*.jsonl`` file, or cannot be written.
        DataError: The row is no task, or stands there already.
    """
    file, reader = TaskFile(path=context.directory / path), reader_of_tasks(context)
    entries = file.read(reader)
    item = reader.task("the new task", row, file.path)
    check_new(entries, item, str(path))
    file.append([{"id": item.id, **row}])
    return Added(path=file.path, id=item.id, count=len(entries) + 1)
