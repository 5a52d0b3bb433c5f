"""Which item is solved by which version, cut to what a page can show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.app.items import Order, Wanted, items
from skillgit.app.report.limits import COLUMNS, ITEMS
from skillgit.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.context import Context
    from skillgit.app.items import Column, ItemTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMap:
    """The items of a run under its versions.

    Attributes:
        table: The items, those that were solved first on top, under the versions.
        versions: How many versions there are in all.
    """

    table: ItemTable
    versions: int

    @property
    def items_left_out(self) -> int:
        """How many items the table does not show."""
        return self.table.items - len(self.table.rows)

    @property
    def versions_left_out(self) -> int:
        """How many versions the table does not show."""
        return self.versions - len(self.table.columns)


def item_map(context: Context, run: str) -> ItemMap | None:
    """Return the items of ``run``; None where their outcomes are not known here, as in a clone without evidence.

    Of many items those are kept that changed most often between solved and not solved; of many versions the first one,
    the best one and the newest ones.
    """
    try:
        found = items(context, run, Wanted(order=Order.FIRST))
    except NotFoundError:
        return None
    places = _kept(found.columns)
    often = sorted(range(len(found.rows)), key=lambda place: (-found.rows[place].flips, place))[:ITEMS]
    rows = tuple(
        replace(found.rows[place], cells=tuple(found.rows[place].cells[column] for column in places))
        for place in sorted(often)
    )
    columns = tuple(found.columns[place] for place in places)
    return ItemMap(table=replace(found, columns=columns, rows=rows), versions=len(found.columns))


def _kept(columns: Sequence[Column]) -> list[int]:
    """Return the places of the versions to show, in their order."""
    named = [place for place, column in enumerate(columns) if place == 0 or column.is_best]
    newest = [place for place in reversed(range(len(columns))) if place not in named]
    return sorted([*named, *newest[: COLUMNS - len(named)]])
