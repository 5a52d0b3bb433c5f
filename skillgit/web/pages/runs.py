"""All runs: sorted, filtered, and their curves over each other."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from skillgit.app.history.curves import Axis, curves
from skillgit.app.history.run_list import RunListing, run_list
from skillgit.errors import UsageError
from skillgit.index.rows import RunRow
from skillgit.view.curve import RUNS as MOST
from skillgit.view.curve import UNITS, overlaid
from skillgit.view.runs import RUNS, state
from skillgit.view.table import Column, Surface
from skillgit.web.rendering import Page, PageRoute, Redirect, Visit, address

SHOWN: Final = 30  # runs of a page
_CURVE_POINTS: Final = 100
_CHOICES: Final = ("skill", "state", "environment", "model")
SPARK: Final = (96, 26)


def runs_page(visit: Visit) -> Page | Redirect:
    sort = f"{'-' if visit.value('order') == 'desc' else ''}{visit.value('sort')}" if visit.value("sort") else ""
    filters = _filters(visit)
    offset = visit.number("from")
    choose = partial(RUNS.chosen, filters=filters, sort=sort)
    listing = run_list(visit.context, choose, offset=offset, charted=SHOWN)
    if not listing.total and not listing.unreadable and visit.access.operates:
        return Redirect(address=address("new"))
    rows = listing.rows[offset : offset + SHOWN]
    columns, cells = RUNS.drawn(rows, Surface.PAGE, now=visit.context.clock())
    words = [*(("--sort", sort) if sort else ()), *(word for text in filters for word in ("--filter", text))]
    return Page(
        template="runs.html",
        title="Runs",
        command=("runs", *words),
        values={
            "listing": listing,
            "rows": rows,
            "offset": offset,
            "shown": SHOWN,
            "query": _query(visit),
            "columns": _headings(visit, columns),
            "cells": cells,
            "sparks": sparks(listing, rows),
            "choices": _choices(listing),
            "chosen": visit.values("show"),
            **_overlaid(visit),
        },
    )


def _filters(visit: Visit) -> list[str]:
    try:
        words = shlex.split(visit.value("q"))
    except ValueError:  # a quotation that does not end
        words = visit.value("q").split()
    return [*filter(None, words), *(f"{key}={visit.value(key)}" for key in _CHOICES if visit.value(key))]


def _query(visit: Visit) -> dict[str, str]:
    """Return what the address says of sorting and filtering, to be kept by links."""
    return {key: visit.value(key) for key in ("q", *_CHOICES, "sort", "order") if visit.value(key)}


def _headings(visit: Visit, columns: Sequence[Column[RunRow]]) -> list[dict[str, object]]:
    """Return the headings with the addresses that sort by them, and the other way round the second time."""
    sort, order = visit.value("sort"), visit.value("order", "asc")
    query = _query(visit)
    headings = []
    for column in columns:
        heading: dict[str, object] = {
            "words": column.head or column.key or "version",
            "right": column.right,
            "link": "",
            "sorted": "",
        }
        if column.key:
            goal = "asc" if column.text else "desc"
            if column.key == sort:
                goal = "asc" if order == "desc" else "desc"
                heading["sorted"] = "descending" if order == "desc" else "ascending"
            heading["link"] = address(**{**query, "sort": column.key, "order": goal})
        headings.append(heading)
    return headings


def _choices(listing: RunListing) -> dict[str, Sequence[str]]:
    states = sorted({state(row) for row in listing.rows} | {"running", "stopped"})
    return {"skill": listing.skills, "state": states, "environment": listing.environments, "model": listing.models}


def sparks(listing: RunListing, rows: Sequence[RunRow]) -> Mapping[str, str]:
    """Return run to the path of its scores; all of a page are drawn to one scale."""
    scores = [score for values in listing.courses.values() for score in values]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    width, height = SPARK
    paths = {}
    for row in rows:
        values = listing.courses.get(row.name, ())
        parts: list[str] = []
        for number, value in enumerate(values):
            x, y = number / len(values) * width, height - 3 - (value - low) / ((high - low) or 1.0) * (height - 6)
            parts.append(f"{f'H{x:.0f}V{y:.1f}' if parts else f'M0 {y:.1f}'}")
        paths[row.name] = f"{''.join(parts)}H{width}" if parts else ""
    return paths


def _overlaid(visit: Visit) -> dict[str, object]:
    names = visit.values("show")[:MOST]
    try:
        by = Axis(visit.value("by", Axis.STEP))
    except ValueError:
        raise UsageError("curves run along steps, calls or dollars", hint=f"by={'|'.join(Axis)}") from None
    drawn_curves = curves(visit.context, names, by, most=_CURVE_POINTS) if names else ()
    has_prices = any(curve.run.usd for curve in drawn_curves)
    axes = [axis for axis in Axis if axis is not Axis.DOLLAR or has_prices or by is axis]
    return {
        "curves": drawn_curves,
        "drawings": overlaid(drawn_curves),
        "by": by,
        "axes": {axis: UNITS[axis] for axis in axes},
        "left_out": max(0, len(visit.values("show")) - MOST),
        "most": MOST,
    }


ROUTES = (PageRoute(path="/", page=runs_page),)
