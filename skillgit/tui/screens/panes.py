"""The panes of the history: their titles and numbers, which one has the keys, and which are in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillgit.tui.widgets.detail import Detail
from skillgit.tui.widgets.event_list import EventList
from skillgit.tui.widgets.row_list import RunList

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.widget import Widget

    from skillgit.index.rows import LogRow

    _Base = Screen[None]
else:
    _Base = object

ORDER: Final = ("runs", "events", "scores", "detail")
_PLACES: Final = frozenset(f"-at-{name}" for name in ORDER)
_HIDING: Final = frozenset({"-tiny", "-narrow", "-short", "-full"})
"""Where panes are out of sight that have no keys."""
_TITLES: Final = {"runs": "1 Runs", "events": "2 History", "scores": "3 Score", "detail": "0 Detail"}


class Panes(_Base):
    """Walking through the panes; on a narrow terminal only the one with the keys is in sight."""

    def name_panes(self, *, fresh: bool = True, unreadable: int = 0) -> None:
        """Put numbers and names on the panes, and what is out of order."""
        for name in ORDER:
            self.query_one(f"#{name}").border_title = _TITLES[name]
        wrong = [f"{unreadable} cannot be read"] if unreadable else []
        self.query_one(RunList).border_subtitle = ", ".join([*wrong, *([] if fresh else ["index in memory"])])

    def say_running(self) -> None:
        """Say beside the name of the runs how to watch the one that is trained."""
        self.query_one(RunList).border_title = f"{_TITLES['runs']}  L live"

    def say_history(self, text: str) -> None:
        """Say beside the name of the history what it holds."""
        self.query_one(EventList).border_title = f"{_TITLES['events']}  {text}"

    def say_scores(self, text: str) -> None:
        """Say beside the name of the scores which of them are drawn."""
        self.query_one("#scores").border_title = f"{_TITLES['scores']}  {text}".rstrip()

    def compare(self, a: LogRow, b: LogRow) -> None:
        if a.commit == b.commit:
            self.notify("that is the marked one itself", severity="warning")
        else:
            self.open_comparison(str(a.address), b)

    def open_comparison(self, a: str, b: LogRow) -> None:
        """Open a comparison of a revision with an event."""
        from skillgit.tui.screens.compare import CompareScreen  # noqa: PLC0415 - it is opened now and then

        self.app.push_screen(CompareScreen(a, str(b.address)))

    def pane(self, name: str) -> Widget:
        """Return what takes the keys in a pane."""
        return self.query_one(Detail).view if name == "detail" else self.query_one(f"#{name}")

    @property
    def at(self) -> str:
        ids = [node.id for node in self.focused.ancestors_with_self] if self.focused is not None else []
        return next((name for name in ORDER if name in ids), "events")

    def on_descendant_focus(self) -> None:
        """Bring the pane with the keys in sight."""
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
        self.pane(name).focus()

    def action_pane_1(self) -> None:
        self.go("runs")

    def action_pane_2(self) -> None:
        self.go("events")

    def action_pane_3(self) -> None:
        self.go("scores")

    def action_pane_main(self) -> None:
        self.go("detail")

    def action_pane_next(self) -> None:
        self.go(ORDER[(ORDER.index(self.at) + 1) % len(ORDER)])

    def action_pane_prev(self) -> None:
        self.go(ORDER[ORDER.index(self.at) - 1])

    def action_pane_grow(self) -> None:
        """Let the pane have the whole screen."""
        self.add_class("-full", update=False)
        self._restyle()

    def action_pane_shrink(self) -> None:
        """Put the panes side by side again."""
        self.restore_size()

    def restore_size(self) -> bool:
        """Put the panes side by side again, and say whether one had the whole screen."""
        full = self.has_class("-full")
        self.remove_class("-full", update=False)
        self._restyle()
        return full
