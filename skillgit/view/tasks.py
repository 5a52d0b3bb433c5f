"""Drafts of tasks: what was drafted, what waits for a review, and what became of it."""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.view import numbers
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.sources.tasks import Reviewed, TaskDraft
    from skillgit.app.sources.tasks_draft import Drafted
    from skillgit.view.surface import Screen


def reviewed(result: Reviewed, screen: Screen) -> Iterator[str]:
    if result.accepted:
        yield f"accepted {numbers.plural(len(result.accepted), 'draft')}: {numbers.ids(result.accepted, screen)}"
    for draft in result.drafts:
        yield from _draft(draft, screen)
    if result.drafts:
        count, whole = numbers.plural(len(result.drafts), "draft"), numbers.plural(result.count, "task")
        yield f"{count} of {whole}; no run uses the file"
        yield f"next: edit or delete lines, then skillgit tasks review {quote(str(result.path))} --accept all"
    else:
        yield f"no drafts are left; {numbers.plural(result.count, 'task')}"


def _draft(draft: TaskDraft, screen: Screen) -> Iterator[str]:
    yield f"{screen.paint(Style.STRONG, draft.id)} {screen.paint(Style.FAINT, f'line {draft.line}')}"
    yield from (f"    {line}" for line in draft.prompt.splitlines())
    for name, value in draft.expected.items():
        yield screen.paint(Style.FAINT, f"    {name}: ") + json.dumps(value, ensure_ascii=False)
    yield ""


def drafted(result: Drafted, screen: Screen) -> Iterator[str]:
    count = numbers.plural(len(result.ids), "draft")
    yield f"{count} by {result.model} in {result.path.name} {screen.glyphs.dot} {numbers.cost(result.cost, screen)}"
    yield f"next: skillgit tasks review {quote(str(result.path))}"
