"""Whether to use colour: the one place where the rule is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def wanted(choice: str, environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Say whether a stream gets colour.

    The first of these decides: ``--color`` if it is not ``auto``; ``NO_COLOR``, if it is not empty; ``FORCE_COLOR`` or
    ``CLICOLOR_FORCE``, if not empty and not ``0``; a terminal that is not dumb.

    Args:
        choice: ``auto``, ``always`` or ``never``.
        environ: Environment variables.
        terminal: Whether the stream is a terminal.
    """
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal and environ.get("TERM", "dumb") not in {"", "dumb"}
