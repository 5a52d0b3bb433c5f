"""All runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.history.status import runs
from skillgit.web.rendering import Page, PageRoute

if TYPE_CHECKING:
    from skillgit.web.rendering import Visit


def runs_page(visit: Visit) -> Page:
    return Page(template="runs.html", title="Runs", command=("runs",), values={"rows": runs(visit.context)})


ROUTES = (PageRoute(path="/", page=runs_page),)
