"""A run in short, and its report as a file."""

from __future__ import annotations

from functools import partial

from skillgit.app.attribution.provenance import Blame, BlameRow, blame
from skillgit.app.deliver.report import report
from skillgit.app.deliver.summary import RunSummary, or_none, summary
from skillgit.domain.address import version_label
from skillgit.domain.skill_rules import Rule, rules
from skillgit.report.page import header, page
from skillgit.web.rendering import Download, Page, PageRoute, Visit, address

_WIDE, _NARROW = 160, 60  # decisions that a curve shows, the newest ones
_EVENTS = 240  # that are read for them
_RULES = 40


def run_page(visit: Visit) -> Page:
    name = visit.parameters["run"]
    run_summary = summary(visit.context, name, most=_EVENTS)
    name = run_summary.run.name
    best = version_label(run_summary.best.version)
    lines = or_none(lambda: blame(visit.context, f"{name}/{best}"))
    rule_rows = credited(lines) if lines else []
    return Page(
        template="run.html",
        title=name,
        command=("report", name, "--output", "-"),
        values={
            **header(run_summary, _WIDE, _NARROW),
            "report": run_summary,
            "best": best,
            "rule_rows": rule_rows[:_RULES],
            "rules_left_out": max(0, len(rule_rows) - _RULES),
            "more_events": len(run_summary.rows) == _EVENTS,
            "state": state(run_summary),
            "event_address": partial(address, "run", name),
        },
    )


def state(run_summary: RunSummary) -> dict[str, str]:
    run = run_summary.run
    words = "being trained" if run.running_pid else run.words or "not finished"
    return {"words": words, "tone": "good" if run.outcome == "improved" else "open"}


def credited(lines: Blame) -> list[tuple[Rule, BlameRow]]:
    """Return the rules of a file, each with that of its lines which came last: it gave the rule its words."""
    text = "\n".join(row.text for row in lines.lines)
    rows = {row.line: row for row in lines.lines}
    return [
        (rule, max((rows[number] for number in range(rule.first, rule.last + 1)), key=lambda row: row.version or 0))
        for rule in rules(text)
    ]


def report_file(visit: Visit) -> Download:
    content = report(visit.context, visit.parameters["run"])
    return Download(name=f"{content.run.name}.html", content=page(content).encode(), media_type="text/html")


ROUTES = (
    PageRoute(path="/run/{run}", page=run_page),
    PageRoute(path="/run/{run}/report", page=report_file),
)
