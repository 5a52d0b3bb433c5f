"""The pages, by subject: each asks a use case, and returns the template with what it shows."""

from __future__ import annotations

from skillgit.web.pages import activity, compare, event_actions, items, runs, training, version  # noqa: F401 - routes
from skillgit.web.rendering import ROUTES as _ROUTES
from skillgit.web.rendering import PageRoute

ROUTES: tuple[PageRoute, ...] = tuple(
    sorted(_ROUTES, key=lambda route: [part.startswith("{") for part in route.path.split("/")])
)
"""All addresses; of two that match, the first one answers: a part that is spelled is before one that is any name."""
