"""``skillgit tasks review``: the drafts in a file, and accepting them; no run uses a file that has some left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.tasks.file import TaskFile
from skillgit.app.tasks.reading import reader_of_tasks
from skillgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.app.context import Context
    from skillgit.app.tasks.file import Entry

ALL = "all"
DRAFT, REVIEWED = "draft", "reviewed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A task that a model wrote and nobody has accepted.

    Attributes:
        id: Its id.
        line: The number of its line.
        prompt: The task.
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
        path: The file.
        accepted: Ids of the drafts that were accepted now.
        drafts: The drafts that are left.
        count: How many tasks there are, drafts included.
    """

    path: Path
    accepted: tuple[str, ...]
    drafts: tuple[Draft, ...]
    count: int


def review(context: Context, path: Path, accept: Sequence[str] = ()) -> Reviewed:
    """Accept drafts and return those that are left.

    Args:
        context: Where relative paths begin.
        path: The file.
        accept: Ids of drafts, or ``all``.

    Raises:
        UsageError: There is no such file, or it cannot be written.
        DataError: A line of the file is no task.
        NotFoundError: There is no draft of that id.
    """
    file = TaskFile(path=context.directory / path)
    if not file.path.is_file():
        raise UsageError(f"there is no file {path}", hint="check the path")
    entries = file.read(reader_of_tasks(context))
    drafts = [entry for entry in entries if entry.row.get("status") == DRAFT]
    stranger = next((name for name in accept if name != ALL and name not in {one.item.id for one in drafts}), None)
    if stranger is not None:
        raise NotFoundError(f"there is no draft {stranger} in {path}", hint=f"skillgit tasks review {path} lists them")
    chosen = [entry for entry in drafts if ALL in accept or entry.item.id in accept]
    if chosen:
        file.replace({entry.line: {**entry.row, "status": REVIEWED} for entry in chosen})
    return Reviewed(
        path=file.path,
        accepted=tuple(entry.item.id for entry in chosen),
        drafts=tuple(_draft(entry) for entry in drafts if entry not in chosen),
        count=len(entries),
    )


def _draft(entry: Entry) -> Draft:
    left_out = {"id", "status", "prompt"}
    expected = {name: value for name, value in entry.row.items() if name not in left_out}
    return Draft(id=entry.item.id, line=entry.line, prompt=str(entry.item.content["prompt"]), expected=expected)
