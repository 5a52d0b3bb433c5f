"""What an event is called on a command line, with its run: ``<run>/v7``, ``<run>/r17``, ``<run>/m2``, ``<run>/i1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.index.rows import LogRow


def short_name(row: LogRow) -> str:
    """Return the event's name within its run; its commit if it has none."""
    if row.version is not None:
        return f"v{row.version}"
    if row.number:
        return f"i{row.number}"
    if row.origin == "meta":
        return f"m{row.epoch}"
    return f"r{row.step}" if row.kind == "rejected" else row.commit[:7]


def full_name(row: LogRow) -> str:
    """Return the event's name with its run."""
    return f"{row.run}/{short_name(row)}"
