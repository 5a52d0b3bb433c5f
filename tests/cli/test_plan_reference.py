"""The reference of plans is made of their classes; ``UPDATE_DOCS=1`` writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

from test_plumbing_reference import first_line, table
from test_spending import DRY

from skillgit.app.setup.plan import Plan

PAGE = Path(__file__).parents[2] / "docs" / "costs.md"


def reference() -> str:
    lines, told, waiting = [], set(), [Plan]
    while waiting:
        kind = waiting.pop(0)
        told.add(kind)
        parts: dict[type, None] = {}
        lines += [f"### {kind.__name__}", "", first_line(kind), "", *table(kind, parts)]
        waiting += [part for part in parts if part not in told]
    return "\n".join(lines)


def test_the_reference_of_plans_is_that_of_their_fields():
    head, begin, rest = PAGE.read_text(encoding="utf-8").partition("<!-- fields -->\n")
    _, end, tail = rest.partition("<!-- /fields -->")
    wanted = f"{head}{begin}\n{reference()}\n{end}{tail}"
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == wanted, "run UPDATE_DOCS=1 pytest tests/cli/test_plan_reference.py"


def test_the_page_names_every_command_that_spends():
    first = PAGE.read_text(encoding="utf-8").partition("\n\n")[2].partition("\n\n")[0]
    assert all(f"`{name}" in first for name in DRY)
