"""What each screen says, as a list of facts that does not depend on how it is laid out.

``UPDATE_GOLDEN=1 pytest tests/tui/test_facts.py`` writes the list again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from sample_run import RUN
from textual.screen import ModalScreen

from skillgit.tui.screens.compare import CompareScreen
from skillgit.tui.screens.dialogs import AskScreen
from skillgit.tui.screens.event import EventScreen
from skillgit.tui.screens.item import ItemScreen
from skillgit.tui.screens.live import LiveScreen

GOLDEN = Path(__file__).with_name("facts.txt")
BETWEEN = re.compile(r"\s{2,}|[\u2500-\u257f]+|\n")
"""What separates two facts: room, a frame, the end of a line."""
AT_V1 = ("G", "k")

PLACES = {
    "the history": (),
    "the history in its own pane": ("2",),
    "the runs": ("1",),
    "the scores": ("3",),
    "the detail": ("0",),
    "the history without a graph and without rejected ones": ("ctrl+g", "x", "o"),
    "the runs by score": ("1", "O", "s"),
    "the order of runs": ("1", "O"),
    "the curve by dollar": ("3", "a", "a"),
    "a marked run": ("1", "w"),
    "the seed": ("G",),
    "a version": AT_V1,
    "edits": (*AT_V1, "]"),
    "items": (*AT_V1, "]", "]"),
    "traces": (*AT_V1, "]", "]", "]"),
    "the message": (*AT_V1, "["),
    "the difference side by side": (*AT_V1, "0", "S"),
    "a filter": ("slash", *"event:rej"),
    "a filter that finds nothing": ("slash", *"step:99"),
    "a wrong filter": ("slash", *"step:x"),
    "help": ("question_mark",),
    "help in the detail": ("0", "question_mark"),
    "the prompt": ("colon", *"chec"),
    "the log of commands": ("at",),
    "what can be copied": ("y",),
    "the agents": (*AT_V1, "A"),
    "the name of a fork": (*AT_V1, "F"),
    "an export": (*AT_V1, "E"),
    "a note": (*AT_V1, "C"),
    "the question before a checkout": (*AT_V1, "space"),
    "the run in short": ("r",),
    "the text of a version": (*AT_V1, "t"),
    "why a line is there": (*AT_V1, "t", "j", "j", "j", "j", "j", "j", "enter"),
    "the event behind a line": (*AT_V1, "t", "j", "j", "j", "j", "j", "j", "enter", "enter"),
    "the items of a run": ("m",),
    "the noisy items": ("m", "]"),
    "items never solved": ("m", "]", "]"),
    "items with rejected candidates": ("m", "]", "]", "]"),
    "the checks of items": ("m", "[", "["),
    "the models of items": ("m", "["),
    "the cost": ("$",),
    "the cost by stage": ("$", "]", "]"),
    "the settings": ("s",),
    "the comparison with the base": (*AT_V1, "b"),
    "the rules of a comparison": (*AT_V1, "b", "tab"),
    "the items of a comparison": (*AT_V1, "b", "tab", "tab"),
    "an item of a comparison": (*AT_V1, "b", "tab", "tab", "enter"),
    "an item of an event": (*AT_V1, "]", "]", "0", "enter"),
    "an earlier version of an item": (*AT_V1, "]", "]", "0", "enter", "left"),
    "live, without a trainer": ("L",),
}
PUSHED = {
    "an event": lambda app: EventScreen(app.screen.events.event_at(2)),
    "two versions": lambda _: CompareScreen("v0", "v3"),
    "an item": lambda _: ItemScreen("q01", RUN, "v3"),
    "a run that nobody trains": lambda _: LiveScreen(RUN, last=RUN),
    "a question": lambda _: AskScreen("skillgit checkout v1", "It changes files.", plan=("eval", "v1", "--dry-run")),
}
SIZE = (180, 60)
WAITING = re.compile(r"\d+ (s|min|h|d) ago|\b[0-9a-f]{7,40}\b|pid \d+")


def facts(app) -> list[str]:
    """Return what is on the screen, each fact once; times and names of objects differ from run to run."""
    strips = app.screen._compositor.render_strips()
    text = "\n".join("".join(segment.text for segment in strip) for strip in strips)
    pieces = (WAITING.sub("_", piece.strip()) for piece in BETWEEN.split(text))
    return list(dict.fromkeys(piece for piece in pieces if piece))


def recorded() -> dict[str, list[str]]:
    sections = GOLDEN.read_text(encoding="utf-8").split("\n=== ")[1:]
    return {name: rows for name, *rows in (section.rstrip("\n").split("\n") for section in sections)}


@pytest.mark.timeout(600)
def test_every_screen_says_what_it_said(visit, press):
    said: dict[str, list[str]] = {}

    async def scenario(app, pilot):
        first = app.screen
        for name, keys in PLACES.items():
            for key in keys:
                await press(pilot, key)
            said[name] = facts(app)
            if isinstance(app.screen, ModalScreen):
                said[name] = [fact for fact in said[name] if fact not in said["the history"]]
            while app.screen is not first:
                await app.pop_screen()
            await press(pilot, "escape", "escape", "2", "g")
            if "ctrl+g" in keys:
                await press(pilot, *keys)
            if "O" in keys and "s" in keys:
                await press(pilot, "1", "O", "n", "2")
            if "a" in keys:
                await press(pilot, "a", "2")
            if keys[-1:] == ("w",):
                await press(pilot, "1", "w", "2")
            if "S" in keys:
                await press(pilot, *AT_V1)
                await press(pilot, "0", "S", "2", "g")
            while app.screen.detail.tab_index:
                await press(pilot, "]")
        for name, screen in PUSHED.items():
            await app.push_screen(screen(app))
            await press(pilot)
            said[name] = facts(app)
            await app.pop_screen()

    visit(scenario, size=SIZE)
    if os.environ.get("UPDATE_GOLDEN"):
        text = "".join(f"\n=== {name}\n" + "".join(f"{row}\n" for row in rows) for name, rows in said.items())
        GOLDEN.write_text(text, encoding="utf-8")
    before = recorded()
    assert list(said) == list(before)
    missing = {name: sorted(set(before[name]) - set(rows)) for name, rows in said.items()}
    added = {name: sorted(set(rows) - set(before[name])) for name, rows in said.items()}
    assert {name: (missing[name], added[name]) for name in said if missing[name] or added[name]} == {}
