"""Drafts of tasks: what was drafted, what waits for a review, and what was answered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from textwrap import shorten
from textwrap import wrap as wrap_text
from typing import TYPE_CHECKING

from skillgit.view import numbers
from skillgit.view.surface import Screen, Style
from skillgit.view.text import inert, one_line

if TYPE_CHECKING:
    from skillgit.app.sources.draft_review import DraftAnswer, HarvestReview, PendingDraft
    from skillgit.app.sources.harvest import Harvested
    from skillgit.app.sources.tasks import Reviewed, TaskDraft
    from skillgit.app.sources.tasks_draft import Drafted

_LONGEST = 80  # characters of the title of a draft
_INDENT = "    "


def reviewed(result: Reviewed, screen: Screen, *, brief: bool) -> Iterator[str]:
    """Yield what was accepted, and the drafts that are left, of which a ``brief`` answer has the number alone."""
    if result.accepted:
        yield f"accepted {numbers.plural(len(result.accepted), 'draft')}: {numbers.ids(result.accepted, screen)}"
    for draft in () if brief else result.drafts:
        yield from _draft(draft, screen)
    command = f"skillgit tasks review {quote(str(result.path))}"
    if result.drafts:
        count, whole = numbers.plural(len(result.drafts), "draft"), numbers.plural(result.count, "task")
        yield f"{count} of {whole}; no run uses the file"
        yield f"{command} shows what is left" if brief else f"next: edit or delete lines, then {command} --accept all"
    else:
        yield f"no drafts are left; {numbers.plural(result.count, 'task')}"


def _draft(draft: TaskDraft, screen: Screen) -> Iterator[str]:
    yield f"{screen.paint(Style.STRONG, draft.id)} {screen.paint(Style.FAINT, f'line {draft.line}')}"
    yield from (f"    {line}" for line in draft.prompt.splitlines())
    for name, value in expected_of(draft.expected):
        yield from _folded(f"{one_line(name)}:", _listed(value), screen)
    if draft.warning:
        yield screen.paint(Style.REVERTED, f"    look at this: {inert(draft.warning)}")
    yield ""


def drafted(result: Drafted, screen: Screen) -> Iterator[str]:
    count = numbers.plural(len(result.ids), "draft")
    yield f"{count} by {result.model} in {result.path.name} {screen.glyphs.dot} {numbers.cost(result.cost, screen)}"
    yield f"next: skillgit tasks review {quote(str(result.path))}"


def harvest_review(review: HarvestReview, screen: Screen, *, brief: bool) -> Iterator[str]:
    """Yield what was answered, and the drafts that are left, of which a ``brief`` answer has the number alone."""
    for word, names in (("accepted", review.accepted), ("dropped", review.dropped)):
        if names:
            yield f"{word} {numbers.plural(len(names), 'draft')}: {numbers.ids(names, screen)}"
    for word in dict.fromkeys(answer.partition(" ")[0] for answer in review.undo):
        names = tuple(answer.partition(" ")[2] for answer in review.undo if answer.startswith(f"{word} "))
        yield f"taken back: {word} {numbers.ids(names, screen)}"
    yield from (f"{answer} cannot be taken back, for it has changed since" for answer in review.stays)
    for number, draft in enumerate(() if brief else review.drafts, start=1):
        yield from pending_draft(draft, screen, f"{number} of {len(review.drafts)}")
    count, tasks = numbers.plural(len(review.drafts), "draft"), numbers.plural(review.tasks, "task")
    yield screen.dotted(
        (f"{count} to review" if review.drafts else "no drafts are left", f"{tasks} in {review.path.name}")
    )
    command = f"skillgit tasks review --skill {quote(review.skill)}"
    if answers := len(review.accepted) + len(review.dropped):
        yield f"{command} --undo takes {'it' if answers == 1 else f'all {answers}'} back"
    if review.drafts:
        yield f"{command} shows what is left, and why it may need a look" if brief else f"next: {command} --accept ID"


def pending_draft(draft: PendingDraft, screen: Screen, remark: str) -> Iterator[str]:
    """Yield what would be committed and sent to a model, and why to look twice, behind a ``remark``."""
    yield f"{screen.paint(Style.STRONG, inert(draft.id))} {screen.paint(Style.FAINT, remark)}"
    yield from _folded("", draft.prompt, screen)
    for file in draft.files:
        yield from _folded("file: ", f"{file.name}, {file.size:,} bytes", screen)
    for name, value in expected_of(draft.expected, draft.files):
        yield from _folded(f"{one_line(name)}:", _listed(value), screen)
    if facts := screen.dotted(f"{name} {text}" for name, text in facts_of(draft)):
        yield from _folded("from: ", facts, screen, Style.FAINT)
    for text in draft.obstacles:
        yield from _folded("cannot be accepted: ", text, screen, Style.REJECTED)
    for text in draft.warnings:
        yield from _folded("look at this: ", text, screen, Style.REVERTED)
    yield ""


def draft_card(draft: PendingDraft, screen: Screen, state: str, into: str) -> Iterator[str]:
    """Yield a draft with all its texts, and what each answer does."""
    yield from pending_draft(draft, screen, state)
    for key, does in actions(draft, into).items():
        yield from _folded(f"{key} ", does, screen)
    yield ""
    yield from contents(draft, screen) if draft.files else ()
    yield screen.paint(Style.STRONG, "the line that would be committed")
    yield from _folded("", draft.line, screen)


def state_of(draft: PendingDraft, answers: Sequence[DraftAnswer]) -> str:
    """Say whether a draft that waits for an answer was edited, and whether it can be accepted."""
    prefix = "edited, " if any(answer.id == draft.id for answer in answers) else ""
    return prefix + ("cannot be accepted yet" if draft.obstacles else "waits for an answer")


def answer_said(last: DraftAnswer | None, later: Sequence[DraftAnswer], into: str) -> str:
    """Say what was answered last, which may be one of the ``later`` ones, whose drafts or tasks have changed since."""
    answer = next(iter(later), last)
    where = f" into {into}" if answer is not None and answer.did == "accepted" else ""
    return f"{answer or ''}{where}{'; it has changed since, so that cannot be taken back' if later else ''}"


def progress(position: int, rest: int, answers: Sequence[DraftAnswer]) -> str:
    """Return where a review is that shows the draft at ``position`` of ``rest``, as 7 of 23, 3 accepted, 1 dropped."""
    accepts, drops = (sum(answer.did == did for answer in answers) for did in ("accepted", "dropped"))
    total = accepts + drops + rest
    where = f"{accepts + drops + position} of {total}" if rest else f"all {total} answered"
    return f"{where}, {accepts} accepted, {drops} dropped"


def actions(draft: PendingDraft, into: str) -> dict[str, str]:
    """Return what each answer to a draft does, by its key."""
    accept = "refused until it is edited" if draft.obstacles else f"makes it a task in {into}; commits nothing"
    return {"a": accept, "e": "changes its fields first", "d": "drops it; can be undone for a day"}


def _folded(label: str, text: str, screen: Screen, style: Style | None = None) -> Iterator[str]:
    """Yield the lines of ``text`` behind a faint label, indented, and broken at spaces where the screen has a width."""
    columns = max(20, screen.width - len(_INDENT))
    for number, line in enumerate(f"{label}{inert(text)}".splitlines()):
        parts = wrap_text(line, columns, break_long_words=False, break_on_hyphens=False) if screen.width else [line]
        for part in parts or [""]:
            front = label if number == 0 and part is parts[0] and part.startswith(label) else ""
            rest = part.removeprefix(front)
            yield _INDENT + screen.paint(style or Style.FAINT, front) + (screen.paint(style, rest) if style else rest)


def expected_of(expected: Mapping[str, object], files: Sequence[object] = ()) -> Iterator[tuple[str, str | list[str]]]:
    """Yield what counts as right, each field with its text or a list of its lines; ``files`` are shown elsewhere."""
    for name, value in expected.items():
        if not files or name not in ("files", "images"):
            yield name, [*map(_as_text, value)] if isinstance(value, list) else _as_text(value)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _listed(value: str | list[str]) -> str:
    return f" {value}" if isinstance(value, str) else "".join(f"\n- {line}" for line in value)


_ORIGIN = {"agent": "agent", "date": "date", "skill": "skill", "use": "use", "signals": "signals", "follow_up": "next"}


def facts_of(draft: PendingDraft) -> Iterator[tuple[str, str]]:
    """Yield where a draft comes from, each fact on one line."""
    for name, label in _ORIGIN.items():
        value = draft.origin.get(name)
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
        if text:
            yield label, one_line(text)
    if draft.group:
        yield "group", one_line(draft.group)


_SHOWN = 64 << 10  # bytes of a file


def contents(draft: PendingDraft, screen: Screen) -> Iterator[str]:
    """Yield the files of a draft, each under its name."""
    for file in draft.files:
        yield screen.paint(Style.STRONG, inert(file.name))
        yield from (f"    {line}" for line in inert(file.text(_SHOWN)).splitlines())
        if file.size > _SHOWN:
            yield screen.paint(Style.FAINT, f"    … {file.size - _SHOWN:,} bytes more")
    if not draft.files:
        yield "it has no files"


def harvested(result: Harvested, screen: Screen) -> Iterator[str]:
    for draft in result.drafts:
        facts = (draft.agent, f"used by {draft.use}" if draft.use in ("model", "user") else draft.use, *draft.signals)
        yield screen.dotted((screen.paint(Style.STRONG, draft.id), shorten(draft.title, _LONGEST)))
        check = "a command may check it" if draft.check == "untried" else f"scored by {draft.check}"
        yield screen.paint(Style.FAINT, f"    {screen.dotted((*facts, check))}")
    sessions, turns = numbers.plural(result.sessions, "session"), numbers.plural(result.turns, "request")
    yield f"{numbers.plural(len(result.drafts), 'draft')} from {turns} in {sessions}"
    yield from _counted("prompts left out", result.left_out, screen)
    yield from _counted("not drafted", result.not_drafted, screen)
    yield from _counted("records that are not known", result.unknown, screen)
    if result.other_projects:
        yield f"{numbers.plural(result.other_projects, 'other project')} not read; --project DIR allows one"
    if not result.drafts:
        where = f"in {', '.join(map(inert, result.places))}; --all-projects reads all" if result.places else "anywhere"
        yield f"looked for sessions {f'in {inert(result.source)}' if result.source else where}"
        if result.sessions and not result.is_met:
            yield f"no session that was read names a skill {one_line(result.path.parent.name)}"
    if result.redacted:
        yield f"{numbers.plural(result.redacted, 'different value')} taken out of the requests and their files"
    if result.cost is not None:
        yield f"criteria: {numbers.cost(result.cost, screen)}"
    if result.is_dry_run:
        yield "nothing was written"
    elif result.drafts:
        yield f"next: skillgit tasks review --skill {result.path.parent.name}"


def _counted(label: str, counts: dict[str, int], screen: Screen) -> Iterator[str]:
    if counts:
        yield f"{label}: {screen.dotted(f'{count} {name}' for name, count in sorted(counts.items()))}"
