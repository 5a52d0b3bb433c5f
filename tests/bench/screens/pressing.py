"""Plays a session in the terminal that it was started in, and writes down what each key cost.

``python -m bench.screens.pressing REPOSITORY SESSION FILE`` writes one JSON object to FILE. The cost of a key is the
CPU of the process with all its threads until everything that the key asked for has been read and painted; what the
first screen reads by itself is none of a key's. Who presses a key waits until something is painted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import measure
from bench.screens.accounting import Account

from skillgit.app.workspace.context import Context
from skillgit.tui.app import SkillgitApp
from skillgit.tui.screens.history import HistoryScreen

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.pilot import Pilot
    from textual.screen import Screen

_WORD = "word"
"""Stands for the first letters of a word in the title under the cursor: whatever a history says, the event stays."""
_LETTERS = 4
_SHORT = ("j", "k", "w", "j", "escape", "slash", _WORD, "enter", "slash", "escape", "e", "2")
_LONG = {
    "browse": (
        *("j",) * 12,
        *("k",) * 4,
        *("ctrl+d",) * 6,
        *("ctrl+u",) * 3,
        *("G", "k", "k", "k", "g", "j"),
        *("x", "x", "o", "o", "ctrl+g", "ctrl+g"),
        *("right_square_bracket",) * 5,
        *("enter", "j", "k", "G", "g", "escape"),
        *("tab", "tab", "tab", "tab", "shift+tab", "shift+tab", "2"),
        *("w", "j", "j", "c", "tab", "tab", "j", "k", "tab", "S", "W", "J", "escape", "b", "escape"),
        *("slash", _WORD, "enter", "j", "n", "slash", "escape"),
        *("slash", *"score", "greater_than_sign", *".0", "enter", "slash", "escape"),
        *("e", "j", "0", "3", "1", "j", "k", "2"),
        *("question_mark", "j", "escape", "y", "escape", "plus", "j", "underscore"),
    ),
    "long": (
        *("0",),
        *("j",) * 20,
        *("k",) * 5,
        *("ctrl+d",) * 10,
        *("G", "k", "g", "J", "J", "J", "K"),
        *("slash", *"line", "enter", "n", "n", "N"),
        *("S", "j", "ctrl+d", "G", "g", "S", "W", "W"),
        *("right_curly_bracket", "left_curly_bracket"),
        *("2", "w", "j", "c", "j", "ctrl+d", "G", "g", "tab", "j", "G", "escape"),
    ),
}
SESSIONS = measure.sized(_LONG, dict.fromkeys(_LONG, _SHORT))
_AT_LEAST = 0.08
"""Seconds after a key in which the cursor comes to rest and the event under it is asked for."""
_LOOKS_EVERY = 0.02


def _letters(app: SkillgitApp) -> str:
    row = app.screen.current if isinstance(app.screen, HistoryScreen) else None
    words = row.title.split() if row is not None else []
    return next(word for word in words if word.isalpha() and len(word) >= _LETTERS)[:_LETTERS]


async def _calm(app: SkillgitApp) -> None:
    await asyncio.sleep(_AT_LEAST)
    quiet = 0
    while quiet < 2:  # what was read last may have asked for more
        rests = isinstance(app.screen, HistoryScreen) and app.screen._waiting is not None
        busy = rests or any(not worker.is_finished for worker in app.workers)
        quiet = 0 if busy else quiet + 1
        await asyncio.sleep(_LOOKS_EVERY)


class _Painting(SkillgitApp):
    painted: float | None = None  # when something was painted first since it was None

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        if self.painted is None:
            self.painted = time.perf_counter()


def play(folder: Path, keys: tuple[str, ...]) -> dict[str, object]:
    """Play a session with a repository; return each key with its cost, and what held up the screen."""
    account = Account()
    account.open()
    pressed: list[tuple[str, float, float, float | None]] = []
    app, started = _Painting(Context.from_process(folder), watch=False), 0.0

    async def session(pilot: Pilot[None]) -> None:
        nonlocal started
        before = time.process_time_ns()
        while not isinstance(app.screen, HistoryScreen) or app.screen.detail.detail is None:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(_LOOKS_EVERY)
        await _calm(app)
        started = (time.process_time_ns() - before) / 1e6
        account.handlers.clear()
        for key in keys:
            for place, letter in enumerate(_letters(app) if key == _WORD else (key,), 1):
                account.longest, before = 0.0, time.process_time_ns()
                app.painted, began = None, time.perf_counter()
                await app._press_keys([letter])
                await _calm(app)
                cost = (time.process_time_ns() - before) / 1e6
                waited = None if app.painted is None else (app.painted - began) * 1000
                pressed.append((f"filter {place}" if key == _WORD else key, cost, account.longest, waited))
        pilot.app.exit()

    asyncio.run(app.run_async(auto_pilot=session))
    slowest = sorted(((max(took), name, len(took)) for name, took in account.handlers.items()), reverse=True)
    return {"keys": pressed, "handlers": slowest[:30], "started_cpu_ms": started}


if __name__ == "__main__":
    told = play(Path(sys.argv[1]), SESSIONS[sys.argv[2]])
    Path(sys.argv[3]).write_text(json.dumps(told), encoding="utf-8")
