"""The settings of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.web.rendering import PageRoute

ROUTES: tuple[PageRoute, ...] = ()
