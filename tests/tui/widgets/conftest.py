from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import cli_sample
import pytest

from skillgit.app.workspace.context import Context
from skillgit.tui import theme
from skillgit.tui.app import SkillgitApp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual import events
    from textual.app import ComposeResult
    from textual.pilot import Pilot
    from textual.widget import Widget


class WidgetStage(SkillgitApp):
    """The app with one widget instead of its screens."""

    def __init__(self, context: Context, widget: Widget, *, unicode: bool = True) -> None:
        super().__init__(context, unicode=unicode, watch=False)
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget

    def on_mount(self, event: events.Mount) -> None:
        event.prevent_default()
        self.register_theme(theme.DARK)
        self.theme = theme.DARK.name
        self.widget.focus()

    def lines(self) -> list[str]:
        """Return what the widget shows, line by line."""
        return [self.widget.render_line(y).text.rstrip() for y in range(self.widget.size.height)]


@pytest.fixture
def play(tmp_path) -> Callable[..., None]:
    """Put a widget on the screen and play a scenario with it."""
    context = Context(directory=tmp_path, environ={}, clock=lambda: cli_sample.NOW, entropy=bytes)

    def on_stage(
        widget: Widget,
        scenario: Callable[[WidgetStage, Pilot[None]], Awaitable[None]],
        *,
        size: tuple[int, int] = (80, 12),
        unicode: bool = True,
    ) -> None:
        app = WidgetStage(context, widget, unicode=unicode)

        async def run() -> None:
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                await scenario(app, pilot)

        asyncio.run(run())

    return on_stage
