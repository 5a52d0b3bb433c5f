"""Runs as a table, and the status of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from skillgit.app.workspace.skill_choice import labels
from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Metric
from skillgit.domain.statistics import LEVEL, wilson_interval
from skillgit.index.rows import RunRow
from skillgit.view import log, numbers
from skillgit.view.plan import placebo, unfinished
from skillgit.view.surface import UNICODE, Screen, Style
from skillgit.view.table import Cell, Column, Surface, Table
from skillgit.view.text import facts, fit, one_line, under

if TYPE_CHECKING:
    from skillgit.app.history.status import SkillState, Status

_RUNS_NAMED = 5
_TAGS, _NOTE = 30, 120  # columns of tags in a terminal, and of notes, which the pages of versions have in full


_PAGE, _TERMINAL = frozenset({Surface.PAGE}), frozenset({Surface.TERMINAL})


def _gain(row: RunRow) -> float:
    return row.best_score - row.first_score


def test_gain(row: RunRow) -> float | None:
    """Return by how much the best version scores above the seed on the test split; None where that is not known."""
    return None if row.best_test is None or row.first_test is None else row.best_test - row.first_test


def state(row: RunRow) -> str:
    """Return ``running``, ``stopped``, ``not begun`` for an untrained fork, or how the run ended."""
    has_begun = row.steps or row.calls or row.reused
    return "running" if row.running_pid is not None else row.outcome or ("stopped" if has_begun else "not begun")


def _tokens(row: RunRow) -> int:
    return row.tokens_in + row.tokens_out


def _has_test(rows: Sequence[RunRow], _: Surface) -> bool:
    return any(row.best_test is not None for row in rows)


def _has(name: str) -> Callable[[Sequence[RunRow], Surface], bool]:
    return lambda rows, _: any(getattr(row, name) for row in rows)


def _tags(row: RunRow) -> Cell:
    text = " ".join(map(str, row.tags))
    return Cell(fit(text, _TAGS), full=text)


def _notes(row: RunRow) -> Cell:
    """Return how many notes there are, and on a page what the newest say."""
    return Cell(str(len(row.notes) or ""), full=fit(one_line(" | ".join(map(str, row.notes))), _NOTE))


def _has_skills(rows: Sequence[RunRow], surface: Surface) -> bool:
    return surface is Surface.PAGE or len({row.skill for row in rows}) > 1


def _skill_names(rows: Sequence[RunRow]) -> Callable[[RunRow], str]:
    words = labels({row.skill for row in rows})
    return lambda row: words[row.skill]


def _sign(row: RunRow) -> Cell:
    return Cell(UNICODE.running if row.running_pid is not None else "", style=Style.RUNNING)


def _score_cell(score: float | None, items: int, row: RunRow) -> Cell:
    """Return a score, on a page with its 95 % Wilson interval; means of partial credit have none."""
    if score is None or not items or row.metric != Metric.HARD.value:
        return Cell(numbers.score(score))
    low, high = wilson_interval(score, items)
    return Cell(numbers.score(score), under=f"{numbers.score(low)} to {numbers.score(high)}")


def _models(row: RunRow) -> Cell:
    return Cell(row.target, under=row.optimizer if row.optimizer != row.target else "")


def outcome(row: RunRow) -> Cell:
    rehearsal = ", rehearsal" if row.rehearsal else ""
    if row.running_pid is not None:
        words = f"running, pid {row.running_pid}{rehearsal}"
        return Cell(words, style=Style.RUNNING, link=("run", row.name, "live"))
    if not row.outcome:
        return Cell(f"{state(row)}{rehearsal}")
    return Cell(row.words, style=Style.ACCEPTED if row.outcome == "improved" else None)


def steps(row: RunRow) -> str:
    return f"{row.steps}/{row.total_steps}" if row.total_steps else str(row.steps)


def spent(row: RunRow) -> str:
    """Return what a run cost: money where there are prices, else tokens."""
    if row.usd:
        return f"{numbers.money(row.usd)}{'+' if row.unpriced else ''}"
    return f"{numbers.count(_tokens(row))} tok"


RUNS: Final[Table[RunRow]] = Table(
    schema="runs/1",
    rows="runs",
    noun="run",
    plain="name environment skill outcome running_pid steps total_steps versions rejected merges best_version "
    "best_score first_score metric started updated calls tokens_in tokens_out usd first_test best_test best_items "
    "test_items target optimizer unpriced rehearsal",
    columns=(
        Column("", head="", show=_sign, on=_TERMINAL),
        Column(
            "name", head="run", show=lambda row: Cell(row.name, link=("run", row.name)), key="name", text=True, rank=0
        ),
        Column("skill", head="skill", among=_skill_names, key="skill", text=True, only_if=_has_skills, rank=4),
        Column("steps", head="steps", show=steps, right=True, key="steps", rank=1),
        Column(
            "best_score",
            head="best",
            show=lambda row: _score_cell(row.best_score, row.best_items, row),
            right=True,
            key="score",
            rank=2,
        ),
        Column("best_version", head="", show=lambda row: version_label(row.best_version), rank=7),
        Column("", _gain, head="gain", right=True, key="gain", show=lambda row: numbers.delta(_gain(row)), rank=8),
        Column(
            "best_test",
            head="test",
            show=lambda row: _score_cell(row.best_test, row.test_items, row),
            right=True,
            key="test",
            only_if=_has_test,
            rank=3,
            caption=True,
        ),
        Column(
            "",
            test_gain,
            head="test gain",
            show=lambda row: numbers.delta(test_gain(row)),
            right=True,
            key="test-gain",
            only_if=_has_test,
            rank=9,
        ),
        Column("versions", head="v/×/◆", show=lambda row: f"{row.versions}/{row.rejected}/{row.merges}", right=True),  # noqa: RUF001
        Column(
            "usd",
            head="spent",
            show=lambda row: Cell(spent(row), under=numbers.plural(row.calls, "call"), link=("run", row.name, "cost")),
            right=True,
            key="cost",
            said=lambda row: numbers.money(row.usd or 0.0),
            lack="a price, and tokens>N compares what was spent",
        ),
        Column("updated", head="age", right=True, key="updated", rank=6),
        Column("", state, head="state", show=outcome, key="state", text=True, rank=5),
        Column("target", head="models", show=_models, key="model", text=True, on=_PAGE),
        Column("optimizer", key="optimizer", text=True),
        Column("environment", head="environment", key="environment", text=True, on=_PAGE),
        Column("tags", head="tags", show=_tags, key="tag", text=True, only_if=_has("tags"), rank=10),
        Column("notes", head="notes", show=_notes, key="note", text=True, on=_PAGE | _TERMINAL, only_if=_has("notes")),
        Column("calls", key="calls"),
        Column("", _tokens, key="tokens"),
        Column("started", key="started"),
    ),
)


def _skill_words(skills: Sequence[SkillState]) -> Callable[[SkillState], str]:
    words = labels([state.skill for state in skills])
    return lambda state: words[state.skill]


SKILLS: Final[Table[SkillState]] = Table(
    columns=(
        Column("skill", head="skill", among=_skill_words),
        Column("runs", head="runs", right=True),
        Column("run", head="newest run"),
        Column("best_version", head="best", show=lambda state: version_label(state.best_version)),
        Column("best_score", head="", right=True),
        Column("", head="gain", show=lambda state: numbers.delta(state.best_score - state.first_score), right=True),
    )
)


def on_test(row: RunRow, screen: Screen) -> str:
    """Return what the seed and the best version score on the test split: ``.1500 → .1167``; empty if not measured."""
    if row.best_test is None:
        return ""
    if row.first_test is None or row.best_version == 0:
        return numbers.score(row.best_test)
    return f"{numbers.score(row.first_test)} {screen.glyphs.arrow} {numbers.score(row.best_test)}"


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
        yield from SKILLS.lines(status.skills, screen, whole=status.skills)
    if status.head is not None or status.best is not None:
        yield ""
        rows = [row for row in (status.head, status.best) if row is not None]
        is_one = len(rows) > 1 and rows[0].commit == rows[1].commit
        yield from log.lines(rows[:1] if is_one else rows, screen, now)


def _run_facts(run: RunRow, status: Status, screen: Screen) -> Iterator[tuple[str, str]]:
    running = f"{_sign(run).painted(screen)} " if run.running_pid is not None else ""
    where = f"{run.environment}, " if run.environment else ""
    yield "run", f"{running}{screen.paint(Style.STRONG, run.name)}  {where}{run.skill}"
    models = (("target", run.target), ("optimizer", run.optimizer))
    yield (
        "models",
        "; ".join(filter(None, (", ".join(f"{role} {name}" for role, name in models if name), run.rehearsal))),
    )
    gain = numbers.delta(run.best_score - run.first_score)
    yield "progress", f"step {steps(run)}, {outcome(run).painted(screen)}, {gain} {run.metric} over the seed"
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
