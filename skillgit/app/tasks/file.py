"""Owns task files as text: rows are appended and replaced, and every other line stays as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import DataError, UsageError
from skillgit.plugin.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.app.tasks.reading import ReadsTasks
    from skillgit.domain.trajectory import Item

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A task in a file.

    Attributes:
        line: The number of its line, from 1.
        row: What stands there.
        item: What it means.
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

    def read(self, reader: ReadsTasks) -> list[Entry]:
        """Return the tasks in the file; none if there is no file yet.

        Raises:
            DataError: A line is no task.
        """
        if not self.path.exists():
            return []
        rows = read_rows(self.path)
        lines = [number for number, line in enumerate(self._lines(), start=1) if line.strip()]
        return [
            Entry(line=line, row=dict(row.fields), item=reader.task(row.where, row.fields, self.path))
            for line, row in zip(lines, rows, strict=True)
        ]

    def append(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Write further rows at the end.

        Raises:
            UsageError: The file cannot be written.
        """
        text = self._text() if self.path.exists() else ""
        gap = "\n" if text and not text.endswith("\n") else ""
        self._write(f"{text}{gap}{''.join(_line(row) for row in rows)}")

    def replace(self, rows: Mapping[int, Mapping[str, object]]) -> None:
        """Write the rows with these line numbers anew.

        Raises:
            UsageError: The file cannot be written.
        """
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
            new.unlink(missing_ok=True)  # a link that somebody left there leads elsewhere
            new.write_bytes(text.encode())
            new.replace(self.path)
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror}", hint="check the path and its permissions"
            ) from error


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def check_new(entries: Sequence[Entry], item: Item, where: str) -> None:
    """Check that a task is none of ``entries``.

    Raises:
        DataError: Its id or its content stands there already.
    """
    same = next((entry for entry in entries if item.id == entry.item.id or item.digest == entry.item.digest), None)
    if same is not None:
        raise DataError(f"the task is there already: {where}:{same.line}, {same.item.id}", hint="change it there")
