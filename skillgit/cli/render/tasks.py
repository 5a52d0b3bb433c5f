"""Drafts as people read them: each with its line, its task and what counts as right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.tasks.draft import Drafted
    from skillgit.app.tasks.review import Draft, Reviewed
    from skillgit.cli.screen import Screen


def reviewed(result: Reviewed, screen: Screen) -> Iterator[str]:
    """Yield the drafts that are left, and what to do."""
    if result.accepted:
        yield f"accepted {words.plural(len(result.accepted), 'draft')}: {words.ids(result.accepted, screen)}"
    for draft in result.drafts:
        yield from _draft(draft, screen)
    if result.drafts:
        left, whole = words.plural(len(result.drafts), "draft"), words.plural(result.count, "task")
        yield f"{left} of {whole}; no run uses the file"
        yield f"next: edit or delete lines, then skillgit tasks review {result.path.name} --accept all"
    else:
        yield f"no drafts are left; {words.plural(result.count, 'task')}"


def _draft(draft: Draft, screen: Screen) -> Iterator[str]:
    yield f"{screen.paint(Style.STRONG, draft.id)} {screen.paint(Style.FAINT, f'line {draft.line}')}"
    yield from (f"    {line}" for line in draft.prompt.splitlines())
    for name, value in draft.expected.items():
        yield screen.paint(Style.FAINT, f"    {name}: ") + json.dumps(value, ensure_ascii=False)
    yield ""


def drafted(result: Drafted, screen: Screen) -> Iterator[str]:
    """Yield what was drafted, and what to do."""
    made = words.plural(len(result.ids), "draft")
    yield f"{made} by {result.model} in {result.path.name} {screen.glyphs.dot} {words.cost(result.cost, screen)}"
    yield f"next: skillgit tasks review {result.path.name}"
