"""Lists, each described once: what a column holds and how people read it. Every surface draws a list from that.

A terminal aligns the columns that have a heading, programs get the named ones as JSON and tab-separated values, a page
makes cells and links of them, a screen shows as many as it has room for, and a tool of agents takes its schema from
them. Sorting and filtering know the columns that have a key.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from enum import Enum, auto
from functools import cached_property, partial
from io import StringIO
from operator import attrgetter, eq, ge, gt, le, lt
from typing import Any, Final, Generic, TypeVar, get_type_hints

from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.filter_words import condition_of
from skillgit.errors import UsageError
from skillgit.view import numbers
from skillgit.view.json_values import Json, plain_value
from skillgit.view.surface import Screen, Style
from skillgit.view.text import table

R = TypeVar("R")
_NAMED: Final = 4  # values that are named where a filter matches none
_SIGNS: Final = {"=": eq, ">=": ge, "<=": le, ">": gt, "<": lt}


class Surface(Enum):
    """Where people see a list."""

    TERMINAL = auto()
    PAGE = auto()
    SCREEN = auto()


EVERYWHERE: Final = frozenset(Surface)


@dataclass(frozen=True, slots=True)
class Cell:
    """What people see of a value.

    Attributes:
        text: The value, in as few words as a table has room for; signs are those of a Unicode screen.
        style: Its colour, by meaning.
        full: All of it, where a page has room for more than ``text``.
        under: What a page adds in small below it.
        link: The page that it leads to, as parts of an address.
        query: What the address asks of that page.
        bar: A share between 0 and 1, which a page also draws.
    """

    text: str
    style: Style | None = None
    full: str = ""
    under: str = ""
    link: tuple[str, ...] = ()
    query: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    bar: float | None = None

    def painted(self, screen: Screen) -> str:
        text = screen.encodable(self.text)
        return screen.paint(self.style, text) if self.style is not None else text


Show = Callable[[R], str | Cell]
"""How people read a row's value."""


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column of a list.

    Attributes:
        name: What programs call it, which is a field of the row unless there is a ``value``; empty: for people only.
        value: Its value: what programs get, and what is sorted and filtered by.
        head: The heading for people; None: for programs only.
        show: How people read it; unless it says, scores as ``.7250``, times as ages, nothing for None.
        among: The same where that depends on the whole: the rows, or the result that holds them.
        right: Whether it is aligned to the right.
        key: By what word it is sorted and filtered; empty: it is not.
        text: Whether it is filtered as a text; else as a number.
        on: Where people see it.
        only_if: Says of the whole, and of where it is, whether people see the column.
        rank: How soon it gives way where there is little room: the highest rank goes first.
        caption: Whether its heading is said with the value where there are no headings.
        said: How a value that filters compare is said, where people are shown something else.
        lack: What is said to be missing where no row has a value; by default the key.
    """

    name: str
    value: Callable[[R], Any] | None = None
    head: str | None = None
    show: Show[R] | None = None
    among: Callable[[Any], Show[R]] | None = None
    right: bool = False
    key: str = ""
    text: bool = False
    on: frozenset[Surface] = EVERYWHERE
    only_if: Callable[[Any, Surface], bool] | None = None
    rank: int = 9
    caption: bool = False
    said: Callable[[R], str] | None = None
    lack: str = ""

    def value_of(self, row: R) -> Any:  # noqa: ANN401 - a column holds what it holds
        return self.value(row) if self.value is not None else attrgetter(self.name)(row)

    def text_of(self, row: R) -> str:
        """Return the value of a column of texts as filters look into it."""
        return str(_joined(self.value_of(row))).casefold()

    def cells(self, rows: Sequence[R], whole: object, now: datetime | None) -> list[Cell]:
        """Return what people see of each of ``rows``: see :meth:`Table.drawn`."""
        show = self.show if self.among is None else self.among(whole)
        if show is None:
            return [_cell(self.value_of(row), now) for row in rows]
        return [cell if isinstance(cell, Cell) else Cell(cell) for cell in map(show, rows)]

    @property
    def word(self) -> str:
        """What people and addresses call it; empty for a column that nothing can be asked of."""
        return self.key or self.name

    @property
    def type(self) -> Any:  # noqa: ANN401 - a type or a union of them
        """The type of a computed value, as its function says."""
        return get_type_hints(self.value)["return"]


@dataclass(frozen=True)
class Table(Generic[R]):
    """A list: the shape of its document, its fields for programs, and its columns.

    Attributes:
        schema: The shape of the JSON document; empty where the list is a part of another one.
        rows: The field of the document that holds the rows.
        plain: The fields that tab-separated rows begin with, in their order; columns that it does not name follow.
        columns: The columns, in the order in which people see them.
        head: The fields of the result that the document has before the rows.
        noun: What a row is called.
        empty: What people read where there are no rows.
    """

    schema: str = ""
    rows: str = ""
    plain: str = ""
    columns: tuple[Column[R], ...] = ()
    head: str = ""
    noun: str = "row"
    empty: str = ""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields that programs get, in the order of tab-separated rows."""
        return tuple(dict.fromkeys((*self.plain.split(), *(column.name for column in self.columns if column.name))))

    @cached_property
    def computed(self) -> Mapping[str, Column[R]]:
        """The columns for programs whose value is computed."""
        return {column.name: column for column in self.columns if column.name and column.value is not None}

    @cached_property
    def keys(self) -> Mapping[str, Column[R]]:
        """What the list can be sorted and filtered by."""
        return {column.key: column for column in self.columns if column.key}

    def record(self, row: R) -> dict[str, Json]:
        """Return a row for programs: all that it holds, and what is computed of it."""
        if isinstance(row, Mapping):
            record: dict[str, Json] = {str(name): plain_value(value) for name, value in row.items()}
        elif is_dataclass(row):
            record = {field.name: plain_value(getattr(row, field.name)) for field in fields(row)}
        else:
            raise TypeError(f"a row of {self.rows} cannot be a {type(row).__name__}")
        return record | {name: plain_value(column.value_of(row)) for name, column in self.computed.items()}

    def plain_row(self, row: R) -> list[object]:
        """Return the cells of a tab-separated row."""
        return [self._field(row, name) for name in self.names]

    def csv(self, rows: Sequence[R]) -> str:
        """Return the rows as comma-separated values under the names of the fields."""
        text = StringIO()
        csv.writer(text).writerows([self.names, *map(self.plain_row, rows)])
        return text.getvalue()

    def _field(self, row: R, name: str) -> object:
        if name in self.computed:
            return self.computed[name].value_of(row)
        return _joined(row[name] if isinstance(row, Mapping) else getattr(row, name))

    def drawn(
        self, rows: Sequence[R], surface: Surface, *, whole: object = None, now: datetime | None = None
    ) -> tuple[list[Column[R]], list[tuple[Cell, ...]]]:
        """Return the columns that people see there, and a cell in each for every row.

        Ages are those at the moment ``now``; without one times are shown. ``whole`` is the result that holds the rows.
        """
        whole = rows if whole is None else whole
        columns = [
            column
            for column in self.columns
            if column.head is not None
            and surface in column.on
            and (column.only_if is None or column.only_if(whole, surface))
        ]
        return columns, [*zip(*(column.cells(rows, whole, now) for column in columns), strict=True)]

    def lines(
        self, rows: Sequence[R], screen: Screen, *, whole: object = None, now: datetime | None = None, gap: int = 2
    ) -> Iterator[str]:
        """Yield the table for a terminal, under faint headings if it has any."""
        if not rows:
            yield from filter(None, [self.empty])
            return
        columns, cells = self.drawn(rows, Surface.TERMINAL, whole=whole, now=now)
        heads = [screen.paint(Style.FAINT, screen.encodable(column.head or "")) for column in columns]
        align = "".join("r" if column.right else "l" for column in columns)
        body = [[cell.painted(screen) for cell in row] for row in cells]
        yield from table([heads, *body] if any(heads) else body, align=align, gap=gap)

    def chosen(self, rows: Sequence[R], *, filters: Sequence[str] = (), sort: str = "") -> tuple[R, ...]:
        """Return the rows that match every filter, in the order of ``sort``.

        A filter is ``KEY=TEXT``, ``KEY>NUMBER`` and the like, or a part of any text of the row. ``sort`` is a key, with
        ``-`` before it from the highest down; rows without a value come last.

        Raises:
            UsageError: There is no such key, or it does not have such an order.
        """
        tests = [self._test(text) for text in filters]
        matches = [row for row in rows if all(test(row) for test in tests)]
        return self._sorted(matches, sort) if sort else tuple(matches)

    def why_empty(self, rows: Sequence[R], filters: Sequence[str]) -> str:
        """Say which of ``filters`` matches none of ``rows`` by itself, and what the values are instead."""
        for text in filters:
            condition = condition_of(text, self.keys, in_words=":")
            if any(map(self._test(text), rows)):
                continue
            if condition is None:
                return f"no {self.noun} has '{text}'"
            column = self.keys[condition.key]
            having = [row for row in rows if column.value_of(row) is not None]
            if any(isinstance(column.value_of(row), tuple) for row in having):  # texts of people, too long to list
                return f"no {column.key} contains '{condition.value}'"
            cells = [cell.text for cell in column.cells(having, rows, None)]
            texts = [*dict.fromkeys(cells if column.said is None else map(column.said, having))]
            more = " …" if texts[_NAMED:] else ""
            return (
                f"{column.key} is {', '.join(texts[:_NAMED])}{more}"
                if texts
                else f"no {self.noun} has {column.lack or column.key}"
            )
        return ""

    def _test(self, text: str) -> Callable[[R], bool]:
        condition = condition_of(text, self.keys, in_words=":")
        if condition is None:
            phrase = text.casefold()
            texts = [column for column in self.keys.values() if column.text]
            return lambda row: any(phrase in column.text_of(row) for column in texts)
        column = self.keys[condition.key]
        if column.text:
            if condition.sign != "=":
                raise UsageError(f"{condition.key} is text and has no order", hint=f"{condition.key}=TEXT")
            return lambda row: condition.value.casefold() in column.text_of(row)
        tests = [(_SIGNS[sign], number) for sign, number in condition.numbers()]

        def matches(row: R) -> bool:
            value = column.value_of(row)
            return value is not None and all(compare(_number(value), number) for compare, number in tests)

        return matches

    def _sorted(self, rows: Sequence[R], sort: str) -> tuple[R, ...]:
        key = sort.removeprefix("-")
        if key not in self.keys:
            raise UsageError(
                f"{self.noun}s cannot be sorted by '{key}'",
                hint=did_you_mean(key, tuple(self.keys), otherwise=f"--sort takes {', '.join(self.keys)}"),
            )
        column = self.keys[key]
        having = [row for row in rows if column.value_of(row) is not None]
        lacking = [row for row in rows if column.value_of(row) is None]
        rank = column.text_of if column.text else column.value_of
        return (*sorted(having, key=rank, reverse=sort.startswith("-")), *lacking)


def pivot(heads: Sequence[str], show: Callable[[R, int], str | Cell], *, right: bool = True) -> tuple[Column[R], ...]:
    """Return a column for each of ``heads``, of which ``show`` says what a row has at its place."""
    return tuple(Column("", head=head, show=partial(_shown, show, at), right=right) for at, head in enumerate(heads))


def _joined(value: Any) -> Any:  # noqa: ANN401 - a field of a row holds what it holds
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _shown(show: Callable[[R, int], str | Cell], at: int, row: R) -> str | Cell:
    return show(row, at)


def _cell(value: Any, now: datetime | None) -> Cell:  # noqa: ANN401 - any value of a row
    if value is None:
        return Cell("")
    if isinstance(value, datetime):
        return Cell(numbers.rfc3339(value) if now is None else numbers.age(value, now))
    return Cell(numbers.score(value) if isinstance(value, float) else str(value))


def _number(value: Any) -> float:  # noqa: ANN401 - a number or a time
    return value.timestamp() if isinstance(value, datetime) else float(value)
