"""Runs as a table, and where things stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from skillgit.app.history.run_list import test_gain
from skillgit.app.workspace.skill_choice import labels
from skillgit.domain.address import version_label
from skillgit.domain.statistics import LEVEL
from skillgit.index.rows import RunRow
from skillgit.view import log, numbers
from skillgit.view.plan import placebo, unfinished
from skillgit.view.surface import Screen, Style
from skillgit.view.text import facts, headed, under

if TYPE_CHECKING:
    from skillgit.app.history.status import Status

_RUNS_NAMED = 5


def run_lines(rows: Sequence[RunRow], screen: Screen, now: datetime) -> Iterator[str]:
    if not rows:
        return
    words = labels({row.skill for row in rows})
    has_skills = len(words) > 1
    has_test = any(row.best_test is not None for row in rows)
    counts = f"v/{screen.glyphs.rejected}/{screen.glyphs.slow}"
    head = (
        "",
        "run",
        *(("skill",) if has_skills else ()),
        "steps",
        "best",
        "",
        "gain",
        *(("test", "gain") if has_test else ()),
        counts,
        "spent",
        "age",
    )
    body = [
        (
            sign(row, screen),
            row.name,
            *((words[row.skill],) if has_skills else ()),
            steps(row),
            numbers.score(row.best_score),
            version_label(row.best_version),
            numbers.delta(row.best_score - row.first_score),
            *((numbers.score(row.best_test), numbers.delta(test_gain(row))) if has_test else ()),
            f"{row.versions}/{row.rejected}/{row.merges}",
            spent(row),
            numbers.age(row.updated, now),
        )
        for row in rows
    ]
    outcomes = ["", *(f"  {outcome(row, screen)}" for row in rows)]
    align = f"ll{'l' if has_skills else ''}rrlr{'rr' if has_test else ''}rrr"
    for line, end in zip(headed(head, body, screen, align=align), outcomes, strict=True):
        yield f"{line}{end}".rstrip()


def on_test(row: RunRow, screen: Screen) -> str:
    """Return what the seed and the best version score on the test split: ``.1500 → .1167``; empty if not measured."""
    if row.best_test is None:
        return ""
    if row.first_test is None or row.best_version == 0:
        return numbers.score(row.best_test)
    return f"{numbers.score(row.first_test)} {screen.glyphs.arrow} {numbers.score(row.best_test)}"


def sign(row: RunRow, screen: Screen) -> str:
    return screen.paint(Style.RUNNING, screen.glyphs.running) if row.running_pid is not None else ""


def steps(row: RunRow) -> str:
    return f"{row.steps}/{row.total_steps}" if row.total_steps else str(row.steps)


def spent(row: RunRow) -> str:
    """Return what a run cost: money where there are prices, else tokens."""
    if row.usd:
        return f"{numbers.money(row.usd)}{'+' if row.unpriced else ''}"
    return f"{numbers.count(row.tokens_in + row.tokens_out)} tok"


def outcome(row: RunRow, screen: Screen) -> str:
    if row.running_pid is not None:
        return screen.paint(Style.RUNNING, f"running, pid {row.running_pid}{_rehearsal(row)}")
    if not row.outcome:
        return f"unfinished{_rehearsal(row)}"
    return screen.paint(Style.ACCEPTED, row.words) if row.outcome == "improved" else row.words


def _rehearsal(row: RunRow) -> str:
    return ", rehearsal" if row.rehearsal else ""


def standing(status: Status, screen: Screen, now: datetime) -> Iterator[str]:
    pairs = [("repository", str(status.repository)), ("holds", status.checked_out or "no commit")]
    run = status.run
    if run is not None:
        pairs.extend(_run_facts(run, status, screen))
    pairs.extend(under("servers", map(numbers.served, status.served)))
    if status.promoted:
        pairs.append((status.trunk, f"has {status.promoted}, promoted"))
    if status.placebo is not None:
        pairs.append(("placebo", placebo(status.placebo)))
    if status.diagnosis is not None:
        pairs.append(("diagnosis", status.diagnosis.sentence))
    names = [row.name for row in status.live if run is None or row.name != run.name]
    pairs.append(("runs", f"{status.runs}, running: {' '.join(names)}" if names else str(status.runs)))
    if status.unpushed:
        pairs.append(("unpushed", _unpushed(status)))
    yield from facts(pairs, screen, label=12)
    if len(status.skills) > 1:
        yield ""
        yield from _skill_lines(status, screen)
    if status.head is not None or status.best is not None:
        yield ""
        rows = [row for row in (status.head, status.best) if row is not None]
        is_one = len(rows) > 1 and rows[0].commit == rows[1].commit
        yield from log.lines(rows[:1] if is_one else rows, screen, now)


def _skill_lines(status: Status, screen: Screen) -> Iterator[str]:
    words = labels([entry.skill for entry in status.skills])
    body = [
        (
            words[entry.skill],
            str(entry.runs),
            entry.run,
            version_label(entry.best_version),
            numbers.score(entry.best_score),
            numbers.delta(entry.best_score - entry.first_score),
        )
        for entry in status.skills
    ]
    yield from headed(("skill", "runs", "newest run", "best", "", "gain"), body, screen, align="lrllrr")


def _run_facts(run: RunRow, status: Status, screen: Screen) -> Iterator[tuple[str, str]]:
    running = f"{sign(run, screen)} " if run.running_pid is not None else ""
    where = f"{run.environment}, " if run.environment else ""
    yield "run", f"{running}{screen.paint(Style.STRONG, run.name)}  {where}{run.skill}"
    models = (("target", run.target), ("optimizer", run.optimizer))
    yield (
        "models",
        "; ".join(filter(None, (", ".join(f"{role} {name}" for role, name in models if name), run.rehearsal))),
    )
    gain = numbers.delta(run.best_score - run.first_score)
    yield "progress", f"step {steps(run)}, {outcome(run, screen)}, {gain} {run.metric} over the seed"
    if test_score := on_test(run, screen):
        over = f", {numbers.delta(test_gain(run))} over the seed" if test_gain(run) is not None else ""
        yield "test", f"{run.metric} {test_score}, {version_label(run.best_version)}{over}"
    if status.detectable is not None:
        gains = f"gains of {status.detectable * 100:.1f} points or more over the seed"
        yield "detects", f"{gains}, four times out of five (paired test at {LEVEL:g})"
    tokens = (f"{numbers.count(run.tokens_in)} in", f"{numbers.count(run.tokens_out)} out")
    dollars = numbers.price(run.usd, run.unpriced) if run.usd or run.unpriced else ""
    yield "spent", screen.dotted((numbers.plural(run.calls, "call"), *tokens, dollars))
    for line in unfinished(status.unfinished, screen, with_run=False):
        yield "", line
    if run.selection_saved:
        share = run.selection_saved / run.selection_items
        items = f"{run.selection_saved:,} of {run.selection_items:,} selection items"
        yield "saved", f"{items} ({share:.0%}) were not rolled out, by early stop"


def _unpushed(status: Status) -> str:
    parts = [
        f"{entry.run} ({'new' if entry.commits is None else numbers.plural(entry.commits, 'commit')})"
        for entry in status.unpushed
    ]
    more = f" and {len(parts) - _RUNS_NAMED} more" if len(parts) > _RUNS_NAMED else ""
    return f"{', '.join(parts[:_RUNS_NAMED])}{more}, not at {status.unpushed[0].remote}: skillgit push"
