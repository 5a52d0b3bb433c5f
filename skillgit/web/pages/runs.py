"""All runs, and of each the page in short, its report, its events, its costs and its settings."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby
from math import inf
from typing import Any, Final

from skillgit.app.history.requests import LogRequest
from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill_rules import rules
from skillgit.errors import UsageError
from skillgit.index.log_filter import Selection
from skillgit.index.rows import RunRow
from skillgit.index.spending import SpentStretch
from skillgit.report import page as report_page
from skillgit.verbs import browse
from skillgit.verbs.cost import COST, CostRequest
from skillgit.verbs.diff import SHOWN_SETTINGS, RunSetting, ShowRequest
from skillgit.verbs.filter_language import TOKENS, narrowed
from skillgit.verbs.log import LOG
from skillgit.verbs.report import IN_SHORT, RUN_REPORT, ReportRequest, SummaryRequest
from skillgit.verbs.runs import RUNS, RunsRequest
from skillgit.view import log, numbers
from skillgit.view.curve import NUMBERS, UNITS, Axis, Baseline, Range, course, overlaid
from skillgit.view.curve import RUNS as CURVES
from skillgit.view.runs import RUNS as LIST
from skillgit.view.runs import state
from skillgit.view.surface import UNICODE, Screen
from skillgit.view.table import Column, Surface, Table
from skillgit.web.rendering import Answer, Page, Visit, address, download, page, redirect

SHOWN: Final = 30  # runs of a page
EVENTS: Final = 60  # events of a page
_OVERLAID: Final = 100  # points of each of several curves, besides new bests
_CHOICES: Final = ("skill", "state", "environment", "model")
_FIRST: Final = ("score", "gain", "cost", "updated", "state", "tag", "note", "test", "steps", "test-gain", "model")
_ROOM: Final = 8  # columns besides the run's name, before anyone chooses them
_SPARK: Final = (96, 26)
_GRAPH: Final = 24  # columns of the graph of events
_RULES: Final = 40
BARS: Final = 60  # of costs
_LABELS: Final = 20
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1040, 240, 56, 64, 12, 34


@page("/runs.csv")
@page("/")
def runs_page(visit: Visit) -> Answer:
    sort, shown_runs = visit.value("sort"), visit.values("show")
    try:
        words = shlex.split(visit.value("q"))
    except ValueError:  # a quotation that does not end
        words = visit.value("q").split()
    filters = [*filter(None, words), *(f"{name}={visit.value(name)}" for name in _CHOICES if visit.value(name))]
    offset = visit.number("from")
    request = RunsRequest(filters=tuple(filters), sort=sort)
    within, baseline = _view(visit)
    if visit.path.endswith(".csv"):
        return _csv("runs.csv", LIST.csv(RUNS.ask(visit.workspace, request).rows))
    listing = RUNS.ask(visit.workspace, request)
    if not listing.total and not listing.unreadable and visit.access.operates:
        return redirect(address("new"))
    names, by = shown_runs[:CURVES], _axis(visit)
    lines = browse.curves(visit.workspace, names, by, within=within) if names else ()
    rows = listing.rows[offset : offset + SHOWN]
    columns, cells = LIST.drawn(rows, Surface.PAGE, now=visit.context.clock())
    heads = {column.word: column.head or column.key or "version" for column in columns[1:]}
    usual = {*[word for word in _FIRST if word in heads][:_ROOM]}
    choice = heads.keys() & visit.values("column") if visit.values("column") else usual
    visible = [number for number, column in enumerate(columns) if not number or column.word in choice]
    query: dict[str, str | tuple[str, ...]] = {
        name: visit.value(name) for name in ("q", *_CHOICES, "sort") if visit.value(name)
    }
    query |= {} if choice == usual else {"column": ("name", *(word for word in heads if word in choice))}
    states = sorted({state(row) for row in listing.rows} | {"running", "stopped"})
    return Page(
        "runs.html",
        "Runs",
        RUNS.words(request),
        listing=listing,
        rows=rows,
        offset=offset,
        shown=SHOWN,
        query=query,
        columns=[columns[number] for number in visible],
        cells=[[row[number] for number in visible] for row in cells],
        heads=heads,
        shown_columns=choice,
        sparks=sparks(browse.courses(visit.workspace, [row.name for row in rows])),
        choices=dict(zip(_CHOICES, (listing.skills, states, listing.environments, listing.models), strict=True)),
        chosen=shown_runs,
        curves=lines,
        drawings=overlaid([line.thinned(_OVERLAID) for line in lines], within, baseline),
        looks={name: visit.value(name) for name in ("within", "base") if visit.value(name)},
        by=by,
        axes={
            axis: UNITS[axis]
            for axis in Axis
            if axis in {Axis.STEP, Axis.CALL, by} or any(line.run.usd for line in lines)
        },
        left_out=max(0, len(shown_runs) - CURVES),
        most=CURVES,
    )


@page("/curve.csv")
def curve_file(visit: Visit) -> Answer:
    """Give the numbers of the curves of the runs that ``show`` names."""
    names, (within, _) = visit.values("show")[:CURVES], _view(visit)
    lines = browse.curves(visit.workspace, names, _axis(visit), most=sys.maxsize, within=within)
    return _csv("curve.csv", NUMBERS.csv([(line, point) for line in lines for point in line.points]))


def _axis(visit: Visit) -> Axis:
    try:
        return Axis(visit.value("by", Axis.STEP))
    except ValueError:
        raise UsageError("curves run along steps, calls or dollars", hint=f"by={'|'.join(Axis)}") from None


def _view(visit: Visit) -> tuple[Range | None, Baseline | None]:
    """Return the part of the axis and the baseline that the address of a page with curves names."""
    within, name = None, visit.value("base").strip()
    if text := visit.value("within"):
        try:
            first, last = map(float, text.split("-"))
        except ValueError:
            raise UsageError(f"'{text}' is not a part of the axis", hint="within=FIRST-LAST, as within=20-60") from None
        if not 0 <= first < last < inf:
            raise UsageError(f"'{text}' is not a part of the axis", hint="name the smaller end first")
        within = (first, last)
    return within, browse.baseline(visit.workspace, name) if name else None


def sparks(courses: Mapping[str, Sequence[float]]) -> Mapping[str, str]:
    """Return run to the path of its scores; all of a page are drawn to one scale."""
    scores = [score for values in courses.values() for score in values]
    low, high = (min(scores), max(scores)) if scores else (0.0, 1.0)
    width, height = _SPARK
    paths = {}
    for run, values in courses.items():
        heights = [height - 3 - (value - low) / ((high - low) or 1.0) * (height - 6) for value in values]
        steps = (f"H{number / len(heights) * width:.0f}V{y:.1f}" for number, y in enumerate(heights) if number)
        paths[run] = f"M0 {heights[0]:.1f}{''.join(steps)}H{width}" if heights else ""
    return paths


@page("/run/{run}")
def run_page(visit: Visit) -> Answer:
    in_short = IN_SHORT.ask(visit.workspace, SummaryRequest(run=visit.parameters["run"]))
    run_summary = in_short.summary
    within, baseline = _view(visit)
    (line,) = browse.curves(visit.workspace, [run_summary.run.name], within=within)
    run, best = run_summary.run, version_label(run_summary.best.version)
    lines = in_short.text.lines if in_short.text is not None else ()
    by_number = {row.line: row for row in lines}
    # the line of a rule that came last gave it its words
    rule_rows = [
        (
            rule,
            max((by_number[number] for number in range(rule.first, rule.last + 1)), key=lambda row: row.version or 0),
        )
        for rule in rules("\n".join(row.text for row in lines))
    ]
    return Page(
        "run.html",
        run.name,
        IN_SHORT.words(SummaryRequest(run=run.name, output="-")),
        **dict[str, Any](report_page.header(run_summary) | {"drawings": course(line, within, baseline)}),
        looks={name: visit.value(name) for name in ("within", "base") if visit.value(name)},
        report=run_summary,
        best=best,
        rule_rows=rule_rows[:_RULES],
        rules_left_out=max(0, len(rule_rows) - _RULES),
        state={
            "words": "being trained" if run.running_pid else run.words or "not finished",
            "tone": "good" if run.outcome == "improved" else "open",
        },
        event_address=partial(address, "run", run.name),
    )


@page("/run/{run}/report")
def report_file(visit: Visit) -> Answer:
    content = RUN_REPORT.ask(visit.workspace, ReportRequest(run=visit.parameters["run"]))
    return download(f"{content.run.name}.html", report_page.page(content).encode(), "text/html")


@page("/run/{run}/events")
def events_page(visit: Visit) -> Answer:
    """List the events of a run, newest first, filtered, with the graph of how they depend on each other."""
    return _events_page(visit, browse.find_row(visit.workspace, visit.parameters["run"]))


@page("/events")
def all_events_page(visit: Visit) -> Answer:
    """List the events of all runs, newest first, filtered."""
    return _events_page(visit, None)


@page("/events.csv")
def all_events_file(visit: Visit) -> Answer:
    return _events_file(visit, None)


@page("/run/{run}/events.csv")
def events_file(visit: Visit) -> Answer:
    return _events_file(visit, browse.find_row(visit.workspace, visit.parameters["run"]))


def _events_file(visit: Visit, run: RunRow | None) -> Answer:
    listing = browse.page(visit.workspace, _narrowing(visit, run), 0, sys.maxsize)
    return _csv("events.csv", log.EVENTS.csv(listing.rows))


def _csv(name: str, content: str) -> Answer:
    return download(name, content.encode(), "text/csv; charset=utf-8")


def _narrowing(visit: Visit, run: RunRow | None) -> Selection:
    """Return which events of a run, or of all, an address means."""
    now, kind = visit.context.clock(), visit.value("kind")
    text = " ".join(filter(None, (visit.value("q"), f"event:{kind}" if kind else "")))
    if run is None:
        return narrowed(Selection(), text, now)
    narrowing = narrowed(Selection(run=run.name), text, now)
    return narrowing if narrowing.run == run.name else narrowed(Selection(run=run.name), "", now)


def _events_page(visit: Visit, run: RunRow | None) -> Page:
    now, narrowing = visit.context.clock(), _narrowing(visit, run)
    listing = browse.page(visit.workspace, narrowing, visit.number("from"), EVENTS)
    graph = log.draw(listing.rows, browse.beside(visit.workspace, listing.rows), Screen(), _GRAPH)
    return Page(
        "events.html",
        "Events",
        # filters of a log are not those of a list of events; without any both print the same
        ()
        if narrowing.is_filtered
        else LOG.words(LogRequest(words=(run.name,) if run else (), all_runs=run is None, graph=True, limit=EVENTS)),
        **dict[str, Any]({"run": run} if run else {}),
        here=("run", run.name, "events") if run else ("events",),
        files=("run", run.name, "events.csv") if run else ("events.csv",),
        listing=listing,
        lines=[*zip(listing.rows, graph.rows, strict=True)],
        shown=EVENTS,
        query={key: visit.value(key) for key in ("q", "kind") if visit.value(key)},
        kinds=[*EventKind],
        tokens=TOKENS,
        age=lambda time: numbers.age(time, now),
        ref_names=log.ref_names,
        unicode=UNICODE,
    )


def _steps(row: tuple[SpentStretch, str]) -> str:
    stretch = row[0]
    if stretch.last == 0:
        return "start"
    return f"{stretch.first}" if stretch.first == stretch.last else f"{stretch.first} to {stretch.last}"


COURSE: Final[Table[tuple[SpentStretch, str]]] = Table(
    columns=(
        Column("", head="step", show=_steps),
        Column("", head="calls", show=lambda row: f"{row[0].calls:,}", right=True),
        Column("", head="tokens", show=lambda row: f"{row[0].tokens:,}", right=True),
        Column(
            *("", None, "dollars", lambda row: numbers.price(row[0].usd, row[0].unpriced)),
            right=True,
            only_if=lambda rows, _: any(stretch.usd for stretch, _ in rows),
        ),
        Column("", head="so far", show=lambda row: row[1], right=True),
    )
)
"""What a run has cost step by step, and in all up to there."""


@page("/run/{run}/cost")
def cost_page(visit: Visit) -> Answer:
    """Show what a run has cost: by role and stage, and step by step."""
    run = browse.find_row(visit.workspace, visit.parameters["run"])
    request = CostRequest(run=run.name)
    spending = COST.ask(visit.workspace, request)
    stretches = browse.cost_by_stretch(visit.workspace, run.name, BARS)
    # as in the table: dollars only where every call has a price
    in_dollars = spending.share_of == "usd"
    amounts = [stretch.usd if in_dollars else float(stretch.tokens) for stretch in stretches]

    def words(amount: float) -> str:
        return numbers.money(amount) if in_dollars else f"{numbers.count(round(amount))} tokens"

    totals = [*accumulate(amounts)]
    rows = [(stretch, words(total)) for stretch, total in zip(stretches, totals, strict=True)]
    highest, room = max(amounts, default=0.0) or 1.0, HEIGHT - TOP - BOTTOM
    width, every = (WIDTH - LEFT - RIGHT) / max(1, len(amounts)), -(-len(amounts) // _LABELS)
    bars = [
        {
            "x": round(LEFT + width * number + width * 0.1, 1),
            "y": round(TOP + room * (1 - amount / highest), 1),
            "width": round(width * 0.8, 1),
            "height": round(room * amount / highest, 1),
            "label": "" if number % every else _steps(row).partition(" ")[0],
            "words": f"{'' if row[0].last == 0 else 'step '}{_steps(row)}: {words(amount)}",
        }
        for number, (row, amount) in enumerate(zip(rows, amounts, strict=True))
    ]
    corners = (
        f"L{LEFT + width * number:.1f} {TOP + room * (1 - total / (totals[-1] or 1.0)):.1f}"
        for number, total in enumerate(totals, 1)
    )
    return Page(
        "cost_page.html",
        "Cost",
        COST.words(request),
        run=run,
        report={"cost": spending},
        COURSE=COURSE,
        rows=rows,
        bars=bars,
        total_line=f"M{LEFT} {HEIGHT - BOTTOM}{''.join(corners)}",
        highest=words(max(amounts, default=0.0)),
        whole=words(sum(amounts)),
        unit="dollars" if in_dollars else "tokens",
    )


@page("/run/{run}/settings")
def settings_page(visit: Visit) -> Answer:
    """Show the settings of a run, and lead to a new one that begins with them."""
    run = browse.find_row(visit.workspace, visit.parameters["run"])
    request = ShowRequest(revision=f"{run.name}/{version_label(0)}", settings=True)
    absence = None
    settings: tuple[RunSetting, ...] = ()
    try:
        settings = SHOWN_SETTINGS.ask(visit.workspace, request).settings
    except UsageError as error:  # its evidence is not here
        absence = error
    return Page(
        "settings_page.html",
        "Settings",
        SHOWN_SETTINGS.words(request),
        run=run,
        report={"settings": settings},
        absence=absence,
        document="\n".join(_document(setting for setting in settings if setting.chosen != "default")),
    )


def _document(settings: Iterable[RunSetting]) -> Iterator[str]:
    """Yield ``settings`` as a configuration file: sections of keys, with values as JSON, which is YAML."""
    for section, group in groupby(settings, key=lambda setting: setting.key.partition(".")[0]):
        yield f"{section}:"
        yield from (f"  {setting.key.partition('.')[2]}: {setting.value}" for setting in group)
