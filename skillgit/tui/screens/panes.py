"""The panes of the history, and what is in those of the runs: which runs in which order, and their curves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from typing import TYPE_CHECKING, Final

from skillgit.app.history import browse
from skillgit.app.history.browse import Overview
from skillgit.app.history.curves import Axis, RunCurve
from skillgit.errors import UsageError
from skillgit.index.event_pages import Point
from skillgit.tui.actions import VersionScreen
from skillgit.tui.start import STEPS
from skillgit.tui.widgets.curve import ScorePlot, overlaid
from skillgit.tui.widgets.lines import FilterBar
from skillgit.tui.widgets.painted_lines import app_of
from skillgit.tui.widgets.row_list import RunList
from skillgit.view.numbers import count, money, plural
from skillgit.view.runs import RUNS, on_test

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context


_TITLES: Final = {"runs": "1 Runs", "events": "2 History", "scores": "3 Score", "detail": "0 Detail"}
ORDER: Final = tuple(_TITLES)
_PLACES: Final = frozenset(f"-at-{name}" for name in ORDER)
_HIDING: Final = frozenset({"-tiny", "-narrow", "-short", "-full"})  # where panes are out of sight that have no keys


class Panes(VersionScreen):
    """Walking through the panes; on a narrow terminal only the one with the keys is in sight."""

    def name_pane(self, name: str, text: str = "") -> None:
        self.query_one(f"#{name}").border_title = f"{_TITLES[name]}  {text}".rstrip()

    def name_panes(self, *, fresh: bool = True, unreadable: int = 0) -> None:
        for name in _TITLES:
            self.name_pane(name)
        wrong = (f"{unreadable} cannot be read" if unreadable else "", "" if fresh else "index in memory")
        self.query_one(RunList).border_subtitle = ", ".join(filter(None, wrong))

    @property
    def at(self) -> str:
        ids = [node.id for node in self.focused.ancestors_with_self] if self.focused is not None else []
        return next((name for name in ORDER if name in ids), "events")

    def on_descendant_focus(self) -> None:
        self._bring(self.at)

    def _bring(self, name: str) -> None:
        self.remove_class(*(_PLACES - {f"-at-{name}"}), update=False)
        self.add_class(f"-at-{name}", update=False)
        if self.classes & _HIDING:
            self._restyle()

    def _restyle(self) -> None:
        # to style the whole screen again would take longer than all else that a key does
        self.app.stylesheet.update_nodes([self.query_one(f"#{name}") for name in ("side", *ORDER)])

    def go(self, name: str) -> None:
        self._bring(name)
        (self.detail.view if name == "detail" else self.query_one(f"#{name}")).focus()

    action_pane_1 = partialmethod(go, "runs")
    action_pane_2 = partialmethod(go, "events")
    action_pane_3 = partialmethod(go, "scores")
    action_pane_main = partialmethod(go, "detail")

    def action_pane_next(self) -> None:
        self.go(ORDER[(ORDER.index(self.at) + 1) % len(ORDER)])

    def action_pane_prev(self) -> None:
        self.go(ORDER[ORDER.index(self.at) - 1])

    def action_pane_grow(self) -> None:
        self.add_class("-full", update=False)
        self._restyle()

    def action_pane_shrink(self) -> None:
        self.restore_size()

    def restore_size(self) -> bool:
        """Put the panes side by side again, and say whether one had the whole screen."""
        full = self.has_class("-full")
        self.remove_class("-full", update=False)
        self._restyle()
        return full


class RunPanes(Panes):
    """Runs that are filtered, sorted and marked, and the scores of the run under the cursor or of those marked."""

    _overview: Overview | None = None
    _run = _sort = _run_filter = ""
    _filters_runs = False
    _axis = Axis.STEP

    @property
    def overlays(self) -> bool:
        """Whether the plot shows curves, and not one run with what happened at each step."""
        return bool(self.runs.marked) or self._axis is not Axis.STEP

    @property
    def runs(self) -> RunList:
        return self.query_one(RunList)

    def _list_runs(self) -> None:
        """Show the runs that the filter lets through, in the order that was asked for."""
        overview = self._overview
        if overview is None:
            return
        try:
            rows = RUNS.chosen(overview.runs, filters=self._run_filter.split(), sort=self._sort)
        except UsageError as error:
            self.query_one(FilterBar).say(str(error), wrong=True)
            return
        if self._filters_runs:
            self.query_one(FilterBar).say(f"{len(rows):,} of {len(overview.runs):,}")
        self.runs.show(rows, overview.run, self._run)
        if not rows:
            self.runs.tell("no matching runs")
        by = f"by {self._sort.removeprefix('-')}" if self._sort else ""
        self.name_pane("runs", app_of(self).facts.dotted((by, self._run_filter)))

    def _read_scores(self) -> None:
        read = app_of(self).read
        if self.overlays:
            names = list(self.runs.marked) or [self._run]
            read(_curves, names, self._axis, then=self._show_curves, on_error=lambda _: None, group="scores")
            return
        read(browse.score_line, self._run, STEPS, then=self._show_scores, on_error=lambda _: None, group="scores")

    def _show_scores(self, reply: tuple[tuple[Point, ...], int]) -> None:
        points, apart = reply
        self.query_one(ScorePlot).show(points)
        run, ink = self.runs.current, app_of(self).facts
        test_score = on_test(run, ink) if run is not None and run.name == self._run else ""
        notes = (f"1 step in {apart}" if apart > 1 else "", f"test {test_score}" if test_score else "")
        self.name_pane("scores", ink.dotted(notes))

    def _show_curves(self, curves: Sequence[RunCurve]) -> None:
        plot, facts = self.query_one(ScorePlot), app_of(self).facts
        lines = [[(point.x, point.score) for point in curve.points] for curve in curves]
        plot.cursor = None
        plot.show_runs(
            overlaid(lines, facts), axis=self._axis.value, label=money if self._axis is Axis.DOLLAR else _whole
        )
        runs = plural(len(curves), "run") if self.runs.marked else ""
        self.name_pane("scores", facts.dotted((runs, f"by {self._axis.value}")))

    def action_runs_sort(self) -> None:
        from skillgit.tui.screens.dialogs import ChoiceScreen  # noqa: PLC0415 - few sessions sort

        choices = [(letter, label, key) for letter, label, key in _ORDERS]

        def answered(key: str | None) -> None:
            if key is not None:
                self._sort = "" if key == _ORDERS[0][2] else key
                self._list_runs()

        self.app.push_screen(ChoiceScreen("Sort the runs by", choices), answered)

    def action_plot_axis(self) -> None:
        axes = list(Axis)
        self._axis = axes[(axes.index(self._axis) + 1) % len(axes)]
        self._read_scores()


_ORDERS: Final = (
    ("n", "newest", "as they are"),
    ("s", "score", "-score"),
    ("g", "gain", "-gain"),
    ("t", "test", "-test"),
    ("m", "model", "model"),
    ("c", "cost", "-cost"),
    ("k", "tokens", "-tokens"),
    ("a", "name", "name"),
)
"""A letter, what it sorts by, and the key of ``skillgit runs --sort``."""


def _whole(number: float) -> str:
    return count(round(number))


def _curves(context: Context, names: Sequence[str], by: Axis) -> tuple[RunCurve, ...]:
    from skillgit.app.history.curves import curves  # noqa: PLC0415 - the history is painted without them

    return curves(context, names, by)
