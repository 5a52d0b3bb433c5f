"""The reference of plans is made of their classes; ``UPDATE_DOCS=1`` writes it anew."""

from __future__ import annotations

from documents import check_part
from test_plumbing_reference import first_line, table

from skillgit.app.setup.plan import Plan


def reference() -> str:
    lines, told, waiting = [], set(), [Plan]
    while waiting:
        kind = waiting.pop(0)
        told.add(kind)
        parts: dict[type, None] = {}
        lines += [f"#### {kind.__name__}", "", first_line(kind), "", *table(kind, parts)]
        waiting += [part for part in parts if part not in told]
    return "\n".join(lines)


def test_the_reference_of_plans_is_that_of_their_fields():
    check_part("scripting.md", "plan", reference())
