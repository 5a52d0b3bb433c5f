"""Tables as CSV, as RFC 4180 has it: UTF-8, a head row, quotes where they are needed; what is absent is empty."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING

from skillgit.app.export.table_rows import EditRow, EventRow, ItemRow, VersionRow
from skillgit.app.export.tables import TABLES
from skillgit.app.folders.placing import put, write_file
from skillgit.app.folders.typed import refuse_way_out, typed_path
from skillgit.errors import ConflictError
from skillgit.plugin.skill_folder import write_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.app.context import Context
    from skillgit.app.export.tables import RunData

_ROWS = {"events": EventRow, "versions": VersionRow, "items": ItemRow, "edits": EditRow}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTables:
    """What was written.

    Attributes:
        run: The run.
        place: The folder or the file.
        rows: Table to the number of its rows.
    """

    run: str
    place: str
    rows: dict[str, int]


def table_text(data: RunData, table: str) -> str:
    """Return one of the tables as CSV."""
    names = [field.name for field in fields(_ROWS[table])]
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow(names)
    rows: Sequence[object] = getattr(data, table)
    writer.writerows([_cell(getattr(row, name)) for name in names] for row in rows)
    return written.getvalue()


def export_tables(context: Context, data: RunData, place: str, table: str | None = None) -> ExportedTables:
    """Write one table to the file ``place``, or all of them to the folder ``place``, at once or not at all.

    Raises:
        ConflictError: Something else stands there.
        UsageError: The place cannot be written.
    """
    path = refuse_way_out(typed_path(context.directory, place))
    chosen = TABLES if table is None else (table,)
    texts = {name: table_text(data, name) for name in chosen}
    if table is not None:
        if path.is_dir():
            raise ConflictError(f"{path} is a folder", hint="name a file, or leave out --table")
        _check_file(path, texts[table])
        write_file(path, texts[table].encode("utf-8", "replace"))
    else:
        _check_folder(path)
        files = {f"{name}.csv": text.encode("utf-8", "replace") for name, text in texts.items()}
        put(path, lambda beside: write_files(beside, files))
    return ExportedTables(run=data.run, place=str(path), rows={name: len(getattr(data, name)) for name in chosen})


def _check_folder(path: Path) -> None:
    """Refuse to take the place of anything but tables that were exported before."""
    ours = {f"{name}.csv" for name in TABLES}
    if path.exists() and (not path.is_dir() or {found.name for found in path.iterdir()} - ours):
        raise ConflictError(f"{path} exists and holds something else", hint="name a new folder with --to")


def _check_file(path: Path, text: str) -> None:
    """Refuse to replace anything but a table of the same kind, which has the same first line."""
    head = text.partition("\n")[0].encode()
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(head)):
        raise ConflictError(f"{path} exists and holds something else", hint="name a new file with --to")


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
