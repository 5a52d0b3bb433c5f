"""What screens ask of their application: the repository that they show, reading in threads, commands and colours."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from rich.style import Style as Paint
from textual.app import App
from textual.dom import DOMNode
from textual.worker import get_current_worker

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import SkillgitError
from skillgit.tui import theme
from skillgit.view.surface import Screen as Facts
from skillgit.view.surface import Style

P = ParamSpec("P")
R = TypeVar("R")


class ReadingApp(App[None]):
    """The application as its screens know it."""

    def __init__(self, context: Context, *, unicode: bool, watch: bool) -> None:
        super().__init__()
        self.context = context
        self.watched = watch
        self._window = ""
        # what renderers paint bears digits that no stranger's text can know: see Screen
        self.facts = Facts(terminal=True, colour=True, unicode=unicode, seal=f"{int.from_bytes(os.urandom(6))};")

    def name_window(self, title: str) -> None:
        """Let the window of the terminal be called ``title``; empty: what it was called before."""
        if title != self._window and self._driver is not None:
            keep = "" if self._window else "\x1b[22;2t"
            self._driver.write(f"{keep}\x1b]2;{title}\x07" if title else "\x1b[23;2t")
        self._window = title

    @property
    def now(self) -> datetime:
        return self.context.clock()

    def paint(self, style: Style) -> Paint:
        return theme.paint(style, self.theme)

    @abstractmethod
    def command(self, argv: Sequence[str], *, look: bool = False) -> None:
        """Run a command and show its output or last line; ask first if it changes refs or files or may cost money."""

    def read(self, function: Callable[Concatenate[Workspace, P], R], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as in call
        """Call what reads history as it is at one moment; the rest is as in :meth:`call`."""

        def read(context: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with Workspace(context, still=True) as workspace:
                return function(workspace, *args, **kwargs)

        self.call(read, *args, **kwargs)

    def call(
        self,
        function: Callable[Concatenate[Context, P], R],
        *args: Any,  # noqa: ANN401 - they are those of the use case
        then: Callable[[R], object],
        on_error: Callable[[SkillgitError], object] | None = None,
        group: str = "",
        **kwargs: Any,  # noqa: ANN401 - likewise
    ) -> None:
        """Call a use case in a thread, and hand its result to ``then`` unless what that belongs to has been closed.

        An error goes to ``on_error`` or to the user. Of the calls of one ``group`` only the newest is handed on.
        """

        def work() -> None:
            worker = get_current_worker()
            try:
                result = function(self.context, *args, **kwargs)
            except SkillgitError as error:
                outcome = partial(self._hand_on, on_error or self.told, error)
            else:
                outcome = partial(self._hand_on, then, result)
            if not worker.is_cancelled:
                self.call_later(outcome)

        self.run_worker(work, thread=True, group=group or "read", exclusive=bool(group))

    def _hand_on(self, taker: Callable[[Any], object], result: object) -> None:
        owner = getattr(getattr(taker, "func", taker), "__self__", None)
        # an app that ends takes its screens apart before what was read has all been handed on
        if self.is_running and (not isinstance(owner, DOMNode) or owner.is_attached):
            taker(result)

    def told(self, error: SkillgitError) -> None:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        self.notify(f"{error}{hint}", severity="error", markup=False)


def app_of(node: DOMNode) -> ReadingApp:
    return cast("ReadingApp", node.app)
