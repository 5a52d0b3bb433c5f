"""Drafts of tasks: what was drafted, what waits for a review, and what became of it."""

from __future__ import annotations

import json
from shlex import quote
from textwrap import shorten
from typing import TYPE_CHECKING

from skillgit.view import numbers
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.sources.harvest import Harvested
    from skillgit.app.sources.tasks import Reviewed, TaskDraft
    from skillgit.app.sources.tasks_draft import Drafted
    from skillgit.view.surface import Screen

_LONGEST = 80  # characters of the title of a draft


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


def harvested(result: Harvested, screen: Screen) -> Iterator[str]:
    for draft in result.drafts:
        facts = (draft.agent, f"used by {draft.use}" if draft.use in ("model", "user") else draft.use, *draft.signals)
        yield screen.dotted((screen.paint(Style.STRONG, draft.id), shorten(draft.title, _LONGEST)))
        yield screen.paint(Style.FAINT, f"    {screen.dotted((*facts, f'scored by {draft.check}'))}")
    sessions, turns = numbers.plural(result.sessions, "session"), numbers.plural(result.turns, "request")
    yield f"{numbers.plural(len(result.drafts), 'draft')} from {turns} in {sessions}"
    yield from _counted("prompts left out", result.left_out, screen)
    yield from _counted("not drafted", result.not_drafted, screen)
    yield from _counted("records that are not known", result.unknown, screen)
    if result.other_projects:
        yield f"{numbers.plural(result.other_projects, 'other project')} not read; --project DIR allows one"
    if result.redacted:
        yield f"{numbers.plural(result.redacted, 'value')} taken out of the drafts"
    if result.cost is not None:
        yield f"criteria: {numbers.cost(result.cost, screen)}"
    if result.drafts and not result.is_dry_run:
        yield f"next: skillgit tasks review --skill {result.path.parent.name}"


def _counted(label: str, counts: dict[str, int], screen: Screen) -> Iterator[str]:
    if counts:
        yield f"{label}: {screen.dotted(f'{count} {name}' for name, count in sorted(counts.items()))}"
