"""Any event by its address: the text with what brought it, the change, the gate, and the evidence of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

from markupsafe import Markup

from skillgit.app.deliver.requests import ExportRequest
from skillgit.app.workspace.revision import resolve
from skillgit.app.workspace.workspace import or_none
from skillgit.domain.address import parse, version_label
from skillgit.domain.evaluation import Metric
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.text_diff import DiffAllowance, Sign
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError
from skillgit.index.rows import LogRow
from skillgit.report.page import paragraphs, rule
from skillgit.verbs.deliver import ARCHIVE, EXPORTED_SKILL
from skillgit.verbs.diff import EVENT_DETAIL, TEXT_DIFF, DiffRequest, EventDetail, KnownEvaluation, Shown, ShowRequest
from skillgit.verbs.rules import BLAME, WHY, BlameRequest, BlameRow, WhyRequest
from skillgit.view import numbers
from skillgit.view.search import search_facts
from skillgit.view.show import recorded_facts
from skillgit.view.surface import Screen
from skillgit.view.table import Cell, Column, Table
from skillgit.web.markdown import rendered
from skillgit.web.pages.event_actions import ACTIONS
from skillgit.web.rendering import Answer, Page, Visit, address, download, page, redirect

LINES = 2_000  # of a file that are shown
MARKDOWN = 60_000  # characters that are rendered; a longer text is shown as it is, for a hostile one takes minutes
_WITH_TEXT = frozenset({EventKind.REJECTED, EventKind.SLOW_PROPOSED})
LAYOUTS: Final = ("unified", "split", "word")
_VIEWS: Final = ("rendered", "text")
SECTIONS: Final = {
    **dict.fromkeys(("gate", "fixed", "broken", "items"), "gate"),
    **dict.fromkeys(("says", "memory"), "guidance"),
    "skipped": "reasons",
    "checks": "checks",
    **dict.fromkeys(("known", "noted"), "since"),
}
"""What ``skillgit show`` says of an event that has a section of the page, by label; the rest is a list of facts."""
_WITH_DETAILS = frozenset({"edits", "cost"})  # whose further lines are tables of the page


def row_of(visit: Visit) -> LogRow:
    """Return the event of an address; what git alone would understand names none."""
    run, event = visit.parameters["run"], visit.parameters["event"]
    text = f"{run}/{event}"
    row = resolve(visit.workspace, text).row if event in {"head", "best"} or parse(text) else None
    if row is None or row.run != run:
        raise RevisionNotFoundError(f"run {run} has no event '{event}'", hint=f"skillgit log {run}")
    return row


def costs_by(*heads: str) -> Table[tuple[Any, ...]]:
    """Return a table of costs: each row has a name under each of ``heads``, and the cost."""
    amounts: dict[str, Callable[[Any], str]] = {
        "calls": lambda cost: f"{cost.calls:,}",
        "tokens in": lambda cost: f"{cost.tokens_in:,}",
        "tokens out": lambda cost: f"{cost.tokens_out:,}",
        "dollars": lambda cost: numbers.price(cost.usd, cost.unpriced),
    }
    names = (Column("", head=head, show=itemgetter(number)) for number, head in enumerate(heads))
    figures = (
        Column("", head=head, show=lambda row, words=words: words(row[-1]), right=True)  # type: ignore[misc]
        for head, words in amounts.items()
    )
    return Table(columns=(*names, *figures))


BY_STAGE: Final = costs_by("role", "stage")
EVALUATIONS: Final[Table[KnownEvaluation]] = Table(
    columns=(
        Column("split", head="split"),
        Column("hard", head="hard", right=True),
        Column("soft", head="soft", right=True),
        Column("scored", head="scored", show=lambda row: f"{row.scored} of {row.n}", right=True),
        Column(
            *("target", None, "by"),
            show=lambda row: Cell("end of the run" if row.source == "run-finished" else row.target, under=row.remark),
        ),
        Column("time", head="when", show=lambda row: f"{row.time:%Y-%m-%d %H:%M} UTC" if row.time else ""),
    )
)


@page("/run/{run}/{event}")
def version_page(visit: Visit) -> Answer:
    row = row_of(visit)
    if row.label != visit.parameters["event"]:
        return redirect(address("run", row.run, row.label))
    name, layout = str(row.address), _choice(visit, "diff", LAYOUTS)
    detail = EVENT_DETAIL.ask(visit.workspace, ShowRequest(revision=name))
    change = or_none(lambda: TEXT_DIFF.ask(visit.workspace, DiffRequest(a=name)))
    files = change.files if change else ()
    additions = {line.text for file in files for hunk in file.hunks for line in hunk.lines if line.sign is Sign.ADDED}
    verdict, cost = detail.shown.event.verdict, detail.shown.event.cost
    # what a slow update proposes is measured as the version that merges it
    is_compared = row.base is not None and row.kind != EventKind.SLOW_PROPOSED
    sides = {"a": version_label(row.base or 0), "b": row.label} if is_compared else {}
    # the gate counts every item that scores higher or lower, and each as often as it was repeated
    is_counted = verdict is not None and verdict.metric is Metric.HARD and not verdict.repeats
    counts = {kind: getattr(verdict, kind) for kind in ("fixed", "broken")} if verdict is not None else {}
    return Page(
        "version.html",
        f"{row.label}: {row.title}",
        EVENT_DETAIL.words(ShowRequest(revision=name)),
        detail=detail,
        shown=detail.shown,
        event=detail.shown.event,
        row=row,
        run=row.run,
        verdict=verdict,
        flips=[(f"{n} {kind}", (kind if is_counted else "different") if n else "") for kind, n in counts.items()],
        compared=[f"{row.run}/{label}" for label in sides.values()],
        gate_rule=rule(verdict),
        base=change.a if change else None,
        difference=DiffAllowance().take(files),
        in_change=lambda text: additions.issuperset(filter(None, text.splitlines())),
        layout=layout,
        layouts=LAYOUTS,
        search=[(label.capitalize(), text) for label, text in search_facts(detail.shown)],
        facts=[*_facts(detail.shown)],
        reasons=[*_reasons(detail)],
        around=detail.around,
        document=_document(visit, row) if row.version is not None or row.kind in _WITH_TEXT else None,
        item_address=partial(address, "run", row.run, "items", **sides),
        actions=[action for action in ACTIONS if action.fits(row)],
        brought_by=brought_by,
        EVALUATIONS=EVALUATIONS,
        BY_STAGE=BY_STAGE,
        costs=[*((part.role, part.stage, part.cost) for part in cost.parts), ("all", "", cost)] if cost.calls else [],
    )


def _facts(report: Shown) -> Iterator[tuple[str, tuple[str, ...]]]:
    for label, texts in recorded_facts(report, Screen()):
        is_elsewhere = label in SECTIONS and not (label == "skipped" and not report.left_out)
        if not is_elsewhere:
            yield label, texts[:1] if label in _WITH_DETAILS else texts


def _reasons(detail: EventDetail) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield why an event came to be, as it says, and what analysts saw: each once, with the items it is seen in."""
    rest = list(detail.findings)
    for paragraph in paragraphs(detail.shown.event.why):
        finding = next((finding for finding in rest if f" rollouts: {finding.pattern}" in paragraph), None)
        if finding is None:
            yield paragraph, ()
        else:
            rest.remove(finding)
            yield paragraph.partition(finding.pattern)[0] + finding.pattern, finding.items
    yield from ((f"{numbers.plural(finding.count, 'rollout')}: {finding.pattern}", finding.items) for finding in rest)


def _choice(visit: Visit, name: str, values: tuple[str, ...]) -> str:
    value = visit.value(name, values[0])
    if value not in values:
        raise UsageError(f"{name} is none of {', '.join(values)}", hint=f"leave {name} out")
    return value


def _document(visit: Visit, row: LogRow) -> dict[str, object]:
    """Return a file of the skill folder with where its lines come from, and the names of the others."""
    skill = EXPORTED_SKILL.ask(visit.workspace, ExportRequest(words=(row.commit,)))
    path, view = visit.value("file", DOCUMENT), _choice(visit, "view", _VIEWS)
    if path not in skill.files:
        raise NotFoundError(f"{row.address} has no file '{path}'", hint=f"skillgit show {row.address}:{DOCUMENT}")
    text = dict(skill.text_files()).get(path)
    request = BlameRequest(revision=str(row.address), path=path)
    lines = BLAME.ask(visit.workspace, request).lines if text is not None else ()
    is_short = len(text or "") <= MARKDOWN and len(lines) <= LINES
    files = {name: address("run", row.run, row.label, file=name) for name in skill.files}

    def origin(first: int, last: int) -> Markup:
        block = lines[first - 1 : last]
        if not block:
            return Markup()
        newest = max(block, key=lambda line: (line.version or 0, line.address is not None))
        name = brought_by(newest, row)
        words = newest.title or ("written by a person" if newest.source == "human" else "there before the run began")
        tone = "seed" if name == "seed" else "own" if newest.address == row.address else "older"
        link = address("run", row.run, row.label, "why", file=path, line=str(first))
        return _ORIGIN.format(tone=tone, link=link, title=words, name=name, line=newest.line)

    is_rendered = text is not None and path.endswith(".md") and view == "rendered" and is_short
    return {
        "path": path,
        "files": {name: len(content) for name, content in skill.files.items()},
        "view": view if is_short else "text",
        "lines": lines[:LINES],
        "left_out": max(0, len(lines) - LINES),
        "is_wanted": bool(row.base is None or visit.value("file") or visit.value("view")),
        "body": rendered(text or "", origin, files) if is_rendered else None,
        "is_text": text is not None,
    }


_ORIGIN: Final = Markup(
    '<a class="brought {tone}" href="{link}" title="{title}">{name}<span class="hidden">: why line {line}</span></a>'
)


def brought_by(line: BlameRow, row: LogRow) -> str:
    """Return what a line is said to come from, as short as in the margin of a text."""
    if line.address is not None and line.kind != EventKind.RUN_STARTED:
        return line.address.seen_from(row.run)
    return "hand" if line.source == "human" else "seed"


@page("/run/{run}/{event}/export")
def export_file(visit: Visit) -> Answer:
    row = row_of(visit)
    name = f"{row.run}-{row.label}.{visit.value('as', 'skill')}"
    content = ARCHIVE.ask(visit.workspace, ExportRequest(words=(row.commit, name)))
    return download(name, content, "application/zip")


@page("/run/{run}/{event}/why")
def rule_page(visit: Visit) -> Answer:
    """Show the evidence of a rule: who brought it, why, what the gate saw, and how it fared since."""
    row = row_of(visit)
    path, line = visit.value("file", DOCUMENT), str(visit.number("line"))
    if line == "0":
        raise UsageError("the address names no line", hint=f"skillgit blame {row.address} numbers the lines")
    request = WhyRequest(rule=line, revision=str(row.address), path="" if path == DOCUMENT else path)
    return Page(
        "why.html",
        f"Why line {line} of {path}",
        WHY.words(request),
        row=row,
        run=row.run,
        story=WHY.ask(visit.workspace, request),
        file=path,
        event_of=lambda origin: address("run", origin.run, origin.label),
        item_address=partial(address, "run", row.run, "items"),
    )
