"""The rows of a query as a table, numbers to the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillgit.cli.render.columns import pad, table, width
from skillgit.cli.screen import Style
from skillgit.domain.untrusted.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.cli.screen import Screen


def lines(columns: Sequence[str], rows: Sequence[Sequence[Any]], screen: Screen) -> Iterator[str]:
    """Yield the names of the columns, a rule, and the rows; columns that hold numbers only are aligned to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [
        bool(rows) and all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(columns))
    ]
    widths = [max([width(name), *(width(row[place]) for row in cells)]) for place, name in enumerate(columns)]
    shown = zip(columns, widths, right, strict=True)
    yield "  ".join(screen.paint(Style.STRONG, pad(name, size, right=side)) for name, size, side in shown).rstrip()
    rule = [screen.glyphs.rule * size for size in widths]
    yield from table([rule, *cells], align="".join("r" if side else "l" for side in right))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return visible(str(value).replace("\t", " ").replace("\n", " "))
