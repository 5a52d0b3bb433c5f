"""A run that is being trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.web.rendering import PageRoute

ROUTES: tuple[PageRoute, ...] = ()
