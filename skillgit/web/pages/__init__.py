"""One module for each page: it asks a use case, and returns the template with what it shows."""

from __future__ import annotations

from skillgit.web.pages import (
    activity,
    compare,
    cost,
    drafts,
    events,
    items,
    live,
    new_run,
    rule,
    run,
    runs,
    settings,
    version,
)
from skillgit.web.rendering import PageRoute

ROUTES: tuple[PageRoute, ...] = (
    *runs.ROUTES,
    *new_run.ROUTES,
    *live.ROUTES,
    *run.ROUTES,
    *events.ROUTES,
    *items.ROUTES,
    *cost.ROUTES,
    *settings.ROUTES,
    *version.ROUTES,
    *rule.ROUTES,
    *compare.ROUTES,
    *drafts.ROUTES,
    *activity.ROUTES,
)
"""All addresses; of two that match, the first one answers."""
