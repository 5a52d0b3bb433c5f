"""The stages of a step, each with a bar and a count; the one that is being done has the longest bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Static

from skillgit.tui.widgets.painted_lines import Part, app_of
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from textual import events

    from skillgit.app.history.live import Snapshot, StageCount
    from skillgit.view.screen import Screen

STAGES: Final = ("rollout", "reflect", "aggregate", "select", "update", "evaluate")
"""The stages that every step has, in their order; others are shown while they last."""
_LONG, _SHORT, _GAP = 10, 2, 2


class StageBars(Static):
    """Bars on as many lines as they need."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__("", id=id, markup=False)
        self._snapshot: Snapshot | None = None
        self._working = False

    def show(self, snapshot: Snapshot | None, *, working: bool) -> None:
        """Show how far the stages are; ``working`` says whether somebody is at the last one."""
        self._snapshot, self._working = snapshot, working
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Break the lines for the new width."""
        del event
        self._draw()

    def _draw(self) -> None:
        app = app_of(self)
        text = Text(no_wrap=True)
        at = 0
        for bar in bars(self._snapshot, app.facts, working=self._working):
            width = sum(cell_len(part.text) for part in bar)
            if at and at + _GAP + width > self.size.width - 1:
                text.append("\n")
                at = 0
            text.append(" " * (_GAP if at else 1))
            at += width + (_GAP if at else 1)
            for part in bar:
                text.append(part.text, app.paint(part.style) if isinstance(part.style, Style) else None)
        self.update(text)


def bars(snapshot: Snapshot | None, screen: Screen, *, working: bool) -> list[list[Part]]:
    """Return the parts of each stage's bar."""
    seen = {count.stage: count for count in snapshot.stages} if snapshot is not None else {}
    current = snapshot.stage if snapshot is not None else ""
    own = [name for name in seen if name not in STAGES and name == current]
    reached = max((STAGES.index(name) for name in seen if name in STAGES), default=-1)
    found = []
    for name in (*own, *STAGES):
        here = name == current and working
        over = name in STAGES and (STAGES.index(name) < reached or (name in seen and not here))
        found.append(_bar(name, seen.get(name), screen, here=here, over=over))
    return found


def _bar(name: str, count: StageCount | None, screen: Screen, *, here: bool, over: bool) -> list[Part]:
    full, empty = ("█", "░") if screen.unicode else ("#", ".")
    length = _LONG if here else _SHORT
    share = count.done / count.total if count is not None and count.total else float(over)
    filled = length if over and not here else min(length, round(length * share))
    told = f" {min(count.done, count.total)}/{count.total}" if count is not None and count.total else ""
    return [
        Part(f"{name} ", Style.STRONG if here else Style.FAINT),
        Part(full * filled, Style.RUNNING if here else Style.FAINT),
        Part(empty * (length - filled), Style.FAINT),
        Part(told, "" if here else Style.FAINT),
    ]
