"""Commands that operators run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.web.rendering import Redirect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.web.rendering import Visit


def start(visit: Visit, words: Sequence[str], *, back: str = "") -> Redirect:  # noqa: ARG001 - a stub
    return Redirect(address=back)
