"""Lines of notes that tell what people said, wherever they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.index.refresh import Index


def feedback_lines(index: Index) -> tuple[tuple[str, str], ...]:
    """Return commit and line for every line of a note that may be feedback."""
    rows = index.select("SELECT oid, line FROM note WHERE line LIKE '%\"feedback%' ORDER BY oid, position", ())
    return tuple((oid, line) for oid, line in rows)
