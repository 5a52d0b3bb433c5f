"""What a form does: a command of ``skillgit`` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from skillgit.web.rendering import Redirect, address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.web.rendering import Visit


def start(visit: Visit, words: Sequence[str], *, back: str = "") -> Redirect:
    """Run ``skillgit`` with ``words`` for the operator who sent ``visit``; ``back`` is the page to return to."""
    subprocess.Popen(  # noqa: S603 - this program itself
        [sys.executable, "-m", "skillgit", "-C", str(visit.context.directory), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(visit.context.environ),
        start_new_session=True,
    )
    return Redirect(address=back or address("activity"))
