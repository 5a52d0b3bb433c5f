"""What an event is called in commands: an address where it has one, else its commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.index.rows import LogRow


def address(row: LogRow) -> str:
    """Return a revision that names the event whatever the default run is: ``run/v7``, ``run/r17``."""
    if row.version is not None:
        return f"{row.run}/v{row.version}"
    if row.number:
        return f"{row.run}/i{row.number}"
    if row.kind == "rejected" and row.origin == "step":
        return f"{row.run}/r{row.step}"
    return row.commit
