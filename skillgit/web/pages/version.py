"""An event of a run: its text, its change, its gate, and what can be done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.web.rendering import PageRoute

ROUTES: tuple[PageRoute, ...] = ()
