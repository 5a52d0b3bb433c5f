"""Any event by its address: the text with what brought it, the change, the gate, and what may be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from skillgit.app.attribution.provenance import blame
from skillgit.app.deliver.export.folder import ENDINGS, archive, skill_of
from skillgit.app.deliver.report import DiffAllowance
from skillgit.app.deliver.summary import or_none
from skillgit.app.history.diff.text import diff
from skillgit.app.history.show import event_detail, neighbours
from skillgit.app.workspace.revision import resolve
from skillgit.domain.address import parse, version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.text_diff import interleaved
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError
from skillgit.report.page import rule
from skillgit.view.diff import rows
from skillgit.web.pages import event_actions
from skillgit.web.rendering import Download, Page, PageRoute, Redirect, address
from skillgit.web.skill_text import Rendered, rendered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.attribution.provenance import BlameRow
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow
    from skillgit.web.rendering import Visit

LINES = 2_000  # of a file that are shown
MARKDOWN = 60_000  # characters that are rendered; a longer text is shown as it is, for a hostile one takes minutes
_TIPS = ("head", "best")
_WITH_TEXT = frozenset({EventKind.REJECTED, EventKind.SLOW_PROPOSED})
_LAYOUTS: Final = ("unified", "split", "word")
_VIEWS: Final = ("rendered", "text")


def row_of(visit: Visit) -> LogRow:
    """Return the event of an address; what git alone would understand names none."""
    run, event = visit.parameters["run"], visit.parameters["event"]
    text = f"{run}/{event}"
    row = resolve(visit.context, text).row if event in _TIPS or parse(text) else None
    if row is None or row.run != run:
        raise RevisionNotFoundError(f"run {run} has no event '{event}'", hint=f"skillgit log {run}")
    return row


def version_page(visit: Visit) -> Page | Redirect:
    row = row_of(visit)
    if row.label != visit.parameters["event"]:
        return Redirect(address=address("run", row.run, row.label))
    name = str(row.address)
    detail = event_detail(visit.context, row.commit)
    layout = _choice(visit, "diff", _LAYOUTS)
    newer = or_none(lambda: diff(visit.context, name, as_data=True))
    difference = DiffAllowance().take(newer.files if newer else ())
    verdict = getattr(detail.shown.event, "verdict", None)
    return Page(
        template="version.html",
        title=f"{row.label}: {row.title}",
        command=("show", name),
        values={
            "detail": detail,
            "shown": detail.shown,
            "event": detail.shown.event,
            "row": row,
            "run": row.run,
            "verdict": verdict,
            "gate_rule": rule(verdict),
            "base": newer.a if newer else None,
            "difference": difference,
            "layout": layout,
            "layouts": _LAYOUTS,
            "around": neighbours(visit.context, row),
            "document": _document(visit, row) if row.version is not None or row.kind in _WITH_TEXT else None,
            "item_address": partial(address, "run", row.run, "items", **_sides(row)),
            "actions": [action for action in event_actions.ACTIONS if action.fits(row)],
            "beside": rows,
            "interleaved": interleaved,
            "brought_by": brought_by,
        },
    )


def _sides(row: LogRow) -> dict[str, str]:
    # what a slow update proposes is measured as the version that merges it
    return (
        {}
        if row.base is None or row.kind == EventKind.SLOW_PROPOSED
        else {"a": version_label(row.base), "b": row.label}
    )


def _choice(visit: Visit, name: str, values: tuple[str, ...]) -> str:
    value = visit.value(name, values[0])
    if value not in values:
        raise UsageError(f"{name} is none of {', '.join(values)}", hint=f"leave {name} out")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file of the skill folder with where its lines come from, and the other files beside it."""

    path: str
    files: Mapping[str, int]  # every file and its size in bytes
    view: str
    lines: tuple[BlameRow, ...]
    left_out: int
    body: Rendered | None  # absent where the text is asked for as it is, or is no Markdown
    is_text: bool


def _document(visit: Visit, row: LogRow) -> Document:
    skill = skill_of(visit.context, row.commit)
    path, view = visit.value("file", DOCUMENT), _choice(visit, "view", _VIEWS)
    if path not in skill.files:
        raise NotFoundError(f"{row.address} has no file '{path}'", hint=f"skillgit show {row.address}:{DOCUMENT}")
    texts = dict(skill.text_files())
    lines = blame(visit.context, str(row.address), path).lines if path in texts else ()
    is_short = len(texts.get(path, "")) <= MARKDOWN and len(lines) <= LINES
    is_markdown = path.endswith(".md") and view == "rendered" and is_short
    return Document(
        path=path,
        files={name: len(content) for name, content in skill.files.items()},
        view=view if is_short else "text",
        lines=lines[:LINES],
        left_out=max(0, len(lines) - LINES),
        body=_with_origins(texts[path], path, lines, row, skill) if is_markdown and path in texts else None,
        is_text=path in texts,
    )


def _with_origins(text: str, path: str, lines: tuple[BlameRow, ...], row: LogRow, skill: Skill) -> Rendered:
    files = {name: address("run", row.run, row.label, file=name) for name in skill.files}

    def mark(first: int, last: int) -> Markup:
        block = lines[first - 1 : last]
        if not block:
            return Markup()
        newest = max(block, key=lambda line: (line.version or 0, line.address is not None))
        return _origin(newest, row, address("run", row.run, row.label, "why", file=path, line=str(first)))

    return rendered(text, mark, files)


_ORIGIN = Markup(
    '<a class="brought {tone}" href="{link}" title="{title}">{name}<span class="hidden">: why line {line}</span></a>'
)


def _origin(line: BlameRow, row: LogRow, link: str) -> Markup:
    name = brought_by(line, row)
    title = line.title or ("written by a person" if line.source == "human" else "there before the run began")
    tone = "seed" if name == "seed" else "own" if line.address == row.address else "older"
    return _ORIGIN.format(tone=tone, link=link, title=title, name=name, line=line.line)


def brought_by(line: BlameRow, row: LogRow) -> str:
    """Return what a line is said to come from, as short as in the margin of a text."""
    if line.address is not None and line.kind != EventKind.RUN_STARTED:
        return line.address.seen_from(row.run)
    return "hand" if line.source == "human" else "seed"


def export_file(visit: Visit) -> Download:
    row = row_of(visit)
    ending = f".{visit.value('as', 'skill')}"
    if ending not in ENDINGS:
        raise UsageError(f"archives end in {' or '.join(ENDINGS)}", hint="as=skill")
    content = archive(skill_of(visit.context, row.commit))
    return Download(name=f"{row.run}-{row.label}{ending}", content=content, media_type="application/zip")


ROUTES = (
    PageRoute(path="/run/{run}/{event}", page=version_page),
    PageRoute(path="/run/{run}/{event}/export", page=export_file),
    *event_actions.ROUTES,
)
