"""Owns how data files are taken apart into rows: JSON, JSON lines and CSV, for every environment alike.

A ``*.json`` file holds one value: an array, ``{"data": [...]}``, an object of name to row, or a single row. A file that
is called so and holds one value on each line is read as JSON lines. A ``*.csv`` file has its column names, each once,
in the first line.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from skillgit.domain.untrusted.file_names import shown
from skillgit.domain.untrusted.model_text import unstorable_place
from skillgit.errors import DataError
from skillgit.files import read_plain

Thing = TypeVar("Thing")

_BEYOND = "has a number of thousands of digits, or values nested a thousand deep"
_BEYOND_HINT = "no item is like this: check where the file comes from"
_JSONL_HINT = "a *.json file holds one JSON value, a *.jsonl file holds one on each line"
_EXTRA = "Extra data"  # what the parser says of a second value behind the first one


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a data file; a DataError if it holds text that no encoding can hold."""

    where: str
    value: object  # JSON values; a CSV row is a mapping of column to text
    name: str = ""  # the key that an object gives it, or the name of a file of one row

    def __post_init__(self) -> None:
        check_storable(self.where, self.value)

    @property
    def fields(self) -> Mapping[str, object]:
        """The row as a mapping; a DataError if it is something else."""
        if not isinstance(self.value, dict):
            raise DataError(f"{self.where} is not an object", hint="every row is an object of field to value")
        return self.value


def check_storable(where: str, value: object) -> None:
    """Refuse, by a DataError, a value with half of a surrogate pair, which JSON can escape and no encoding can hold."""
    path = unstorable_place(value)
    if path is not None:
        key = f" in {shown(path)}" if path else ""
        hint = "write the whole character, or leave it out; no file and no model can take half of one"
        raise DataError(f"{where} has half of a surrogate pair{key}, such as a cut emoji leaves", hint=hint)


def text_field(where: str, fields: Mapping[str, object], *names: str) -> str:
    """Return the first of the fields ``names`` that is not empty, stripped; a DataError unless text or number."""
    for name in names:
        value = fields.get(name)
        if kind := next((words for wrong_type, words in _NO_TEXT.items() if isinstance(value, wrong_type)), ""):
            raise DataError(f"{where} has {kind} as its '{name}'", hint="write a text or a number")
        if value is not None and (text := str(value).strip()):
            return text
    return ""


def text_or_blanks(where: str, fields: Mapping[str, object], name: str) -> str:
    """Return what :func:`text_field` does, but a text of blanks alone, as some published data have, as it is."""
    # It is for what is asked with a picture or a workbook, which is an item without it.
    value = fields.get(name)
    return text_field(where, fields, name) or (value if isinstance(value, str) else "")


_NO_TEXT: Mapping[type, str] = {bool: "true or false", list: "a list", dict: "an object"}


def read_each(files: Sequence[Path], things_of: Callable[[Row, Path], Iterable[Thing]]) -> list[Thing]:
    """Return what ``things_of`` makes of every row of ``files``; one DataError names all that cannot be used."""
    # A DataError of ``things_of`` is given the place of the row where it does not name it.
    things: list[Thing] = []
    faults: list[DataError] = []
    for path in files:
        try:
            rows = read_rows(path)
        except DataError as fault:
            faults.append(fault)
            continue
        for row in rows:
            try:
                things.extend(things_of(row, path))
            except DataError as fault:
                is_located = fault.message.startswith(row.where)
                faults.append(
                    fault
                    if is_located
                    else DataError(f"{row.where}: {fault.message}", hint=fault.hint, faults=fault.faults)
                )
    raise_all(faults)
    return things


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a data file in their order; a DataError if it is unreadable, or is not what its name says."""
    try:
        text = read_plain(path, most=None, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8", hint="save it as UTF-8") from error
    except OSError as error:
        hint = "check the path and its permissions"
        raise DataError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    if path.suffix == ".csv":
        return _csv(path, text)
    if path.suffix != ".jsonl":
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            if error.msg != _EXTRA:
                raise DataError(f"{path}:{error.lineno} is not JSON: {error.msg}", hint=_JSONL_HINT) from error
        except (ValueError, RecursionError):
            raise DataError(f"{path} {_BEYOND}", hint=_BEYOND_HINT) from None
        else:
            return list(_of_value(path, value))
    return _lines(path, text)


def _lines(path: Path, text: str) -> list[Row]:
    rows, faults = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(Row(where=f"{path}:{number}", value=json.loads(line)))
        except json.JSONDecodeError as error:
            faults.append(DataError(f"{path}:{number} is not JSON: {error.msg}", hint=_JSONL_HINT))
        except DataError as fault:
            faults.append(fault)
        except (ValueError, RecursionError):
            faults.append(DataError(f"{path}:{number} {_BEYOND}", hint=_BEYOND_HINT))
    raise_all(faults)
    return rows


def _of_value(path: Path, value: object) -> Iterator[Row]:
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    if isinstance(value, list):
        for number, row in enumerate(value, start=1):
            yield Row(where=f"{path}, item {number}", value=row)
    elif isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
        for key, row in value.items():
            yield Row(where=f"{path}, item {shown(key)}", value=row, name=str(key))
    else:
        yield Row(where=str(path), value=value, name=path.stem)


def _csv(path: Path, text: str) -> list[Row]:
    limit = csv.field_size_limit(max(len(text), csv.field_size_limit()))  # a cell is never longer than its file
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows, faults = [], []
    try:
        twice = [name for name, count in Counter(reader.fieldnames or ()).items() if count > 1]
        if twice:
            names = ", ".join(map(shown, twice))
            raise DataError(f"{path}:1 names columns twice: {names}", hint="give every column a name of its own")
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if None in cells or None in cells.values():
                fault = f"{where} has not as many cells as there are columns"
                faults.append(DataError(fault, hint="quote cells with commas"))
            else:
                rows.append(Row(where=where, value=dict(cells)))
    except csv.Error as error:
        faults.append(DataError(f"{path}:{reader.line_num} is not CSV: {error}", hint="check quotes and commas"))
    finally:
        csv.field_size_limit(limit)
    raise_all(faults)
    return rows


def raise_all(faults: Sequence[DataError]) -> None:
    """Raise the only fault as it is, or the first one with the number of the others; do nothing if there are none."""
    single = singled(faults)
    if len(single) == 1:
        raise single[0]
    if single:
        first, count = single[0], len(single) - 1
        problem = f"{first.message}; and {count} more fault{'s' * (count > 1)}"
        raise DataError(problem, hint=f"{first.hint}; skillgit doctor CONFIG lists all faults", faults=single)


def singled(faults: Sequence[DataError]) -> tuple[DataError, ...]:
    """Return the single faults that ``faults`` stand for, each once."""
    by_message: dict[str, DataError] = {}
    for fault in faults:
        for single in fault.faults or (fault,):
            by_message.setdefault(single.message, single)
    return tuple(by_message.values())
