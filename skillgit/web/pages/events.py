"""The events of a run, newest first: filtered, page by page, with the graph of how they hang together."""

from __future__ import annotations

from typing import Final

from skillgit.app.history import browse
from skillgit.app.history.filter_language import TOKENS, narrowed
from skillgit.app.history.log import beside
from skillgit.app.history.run_list import find_row
from skillgit.domain.event_kinds import EventKind
from skillgit.index.event_pages import Narrowing
from skillgit.view import log, numbers
from skillgit.view.surface import UNICODE, Screen
from skillgit.web.rendering import Page, PageRoute, Visit

SHOWN: Final = 60  # events of a page
_ROOM: Final = 24  # columns of the graph


def events_page(visit: Visit) -> Page:
    run = find_row(visit.context, visit.parameters["run"])
    narrowing = _narrowing(visit, run.name)
    page = browse.page(visit.context, narrowing, visit.number("from"), SHOWN)
    parents = beside(visit.context, page.rows)
    graph = log.draw(page.rows, parents, Screen(), _ROOM)
    # filters of a log are not those of a list of events; without any both print the same
    command = () if narrowing.is_filtered else ("log", run.name, "--graph", "-n", str(SHOWN))
    return Page(
        template="events.html",
        title="Events",
        command=command,
        values={
            "run": run,
            "listing": page,
            "lines": list(zip(page.rows, graph.rows, strict=True)),
            "shown": SHOWN,
            "query": {key: visit.value(key) for key in ("q", "kind") if visit.value(key)},
            "kinds": [kind.value for kind in EventKind],
            "tokens": TOKENS,
            "now": visit.context.clock(),
            "age": numbers.age,
            "ref_names": log.ref_names,
            "unicode": UNICODE,
        },
    )


def _narrowing(visit: Visit, run: str) -> Narrowing:
    kind = visit.value("kind")
    text = " ".join(filter(None, (visit.value("q"), f"event:{kind}" if kind else "")))
    narrowing = narrowed(Narrowing(run=run), text, visit.context.clock())
    return narrowing if narrowing.run == run else narrowed(Narrowing(run=run), "", visit.context.clock())


ROUTES = (PageRoute(path="/run/{run}/events", page=events_page),)
