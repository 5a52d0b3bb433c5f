from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import cli_sample
import diff_sample
import pytest

from skillgit.app.history.item import Attempt, ItemStory, ItemTrajectory
from skillgit.app.recorded.outcomes import ItemOutcome
from skillgit.app.workspace.context import Context
from skillgit.domain.text_diff import detailed, read_patch
from skillgit.domain.trajectory import Turn
from skillgit.errors import NotFoundError
from skillgit.tui import theme
from skillgit.tui.app import SkillgitApp
from skillgit.verbs.diff import ITEM_DIFF, RULE_DIFF, TEXT_DIFF
from skillgit.verbs.items import ITEM_STORY, ITEM_TRAJECTORY
from skillgit.verbs.verb import Answer, Form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual import events
    from textual.pilot import Pilot
    from textual.screen import Screen

GONE = ItemOutcome(hard=None, soft=None, value=None, failed="the server was gone")
SOLVED, FAILED = ItemOutcome(hard=1.0, soft=1.0, value=1.0), ItemOutcome(hard=0.0, soft=0.5, value=0.0)
QUESTION = "How tall is the [b]tower[/b] in feet?\x1b[2J"

CALM = 3
"""Looks in a row that find nothing being read: what was read last may have asked for more."""


class ScreenStage(SkillgitApp):
    """The app with one screen instead of its history."""

    def __init__(self, context: Context, first: Screen[None], *, unicode: bool = True) -> None:
        super().__init__(context, unicode=unicode, watch=False)
        self.first = first

    def on_mount(self, event: events.Mount) -> None:
        event.prevent_default()
        for known in theme.THEMES.values():
            self.register_theme(known)
        self.theme = theme.DARK.name
        self.push_screen(self.first)

    def text(self) -> str:
        """Return the whole screen as text."""
        strips = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def settled(pilot: Pilot[None]) -> None:
    """Wait until everything was read and shown."""
    calm = 0
    while calm < CALM:
        await pilot.pause()
        busy = any(not worker.is_finished for worker in pilot.app.workers)
        if busy:
            await pilot.app.workers.wait_for_complete()
        calm = 0 if busy else calm + 1


def attempt(name: str, outcome: ItemOutcome | None, answer: str = "", feedback: str = "") -> Attempt:
    version = int(name[1:]) if name.startswith("v") else None
    return Attempt(
        name=name,
        commit=name.ljust(40, "0"),
        version=version,
        title="a title",
        outcome=outcome,
        answer=answer,
        feedback=feedback,
    )


ATTEMPTS = (
    *(attempt(f"v{number}", FAILED, "324 m", "expected 1,063 ft") for number in range(6)),
    attempt("v6", replace(FAILED, measured=False), "324 m", "expected 1,063 ft"),
    attempt("r16", None),
    attempt("v7", SOLVED, "1,063 ft", "correct: [red]1,063 ft[/red]"),
    attempt(
        "v8", ItemOutcome(hard=None, soft=None, value=None, failed="the server was gone"), "", "the server was gone"
    ),
)
STORY = ItemStory(
    run=cli_sample.RUN,
    metric="hard",
    item="q17",
    task_type="units",
    question=QUESTION,
    first="v7",
    flips=("v7",),
    solved=1,
    measured=7,
    doubts=(),
    attempts=ATTEMPTS,
    every=len(ATTEMPTS),
)


@pytest.fixture
def stage(monkeypatch, tmp_path) -> Callable[..., ScreenStage]:
    """Put a screen on a stage on which the use cases tell the sample's history."""
    context = Context(directory=tmp_path, environ={}, clock=lambda: cli_sample.NOW, entropy=bytes)
    whole = read_patch(diff_sample.PATCH)

    def diff(session, request):
        assert session.form is Form.VALUE
        asked.append((request.a, request.b, request.lines))
        found = replace(diff_sample.AS_DATA, files=detailed(whole, request.lines))
        return found if (request.a, request.b) == ("v6", "v7") else replace(found, a=found.b, b=found.a)

    def trajectory(_session, request):
        # a thread that ends by StopIteration is waited for without end
        known = (attempt for attempt in ATTEMPTS if attempt.commit == request.trajectory)
        told = next(known, attempt("v6", FAILED, "324 m"))
        if told.outcome is None or told.outcome.hard is None:
            sentence = f"there is no trajectory of {request.item} under {told.name}"
            raise NotFoundError(sentence, hint="fetch the evidence")
        turns = (
            Turn(role="user", content=QUESTION),
            Turn(role="tool", content=f"read_table(page=2) → 324 m\n{'row ' * 60}"),
            Turn(role="assistant", content=f"[bold]{told.answer}[/bold]"),
        )
        return ItemTrajectory(run=cli_sample.RUN, item=request.item, attempt=told, turns=turns)

    asked: list[tuple[str, str, int]] = []
    uses = {
        "compare.TEXT_DIFF": (TEXT_DIFF, diff),
        "compare.RULE_DIFF": (RULE_DIFF, lambda *_: diff_sample.RULES),
        "compare.ITEM_DIFF": (ITEM_DIFF, lambda *_: diff_sample.ITEMS),
        "item.ITEM_STORY": (ITEM_STORY, lambda *_: STORY),
        "item.ITEM_TRAJECTORY": (ITEM_TRAJECTORY, trajectory),
    }

    def answering(use):
        return lambda session, request: Answer(result=use(session, request))

    for name, (verb, use) in uses.items():
        monkeypatch.setattr(f"skillgit.tui.screens.{name}", replace(verb, run=answering(use)))

    def build(screen: Screen[None], *, unicode: bool = True) -> ScreenStage:
        app = ScreenStage(context, screen, unicode=unicode)
        app.asked = asked
        return app

    return build


@pytest.fixture
def play(stage) -> Callable[..., None]:
    """Play a scenario with a screen."""

    def on_stage(
        screen: Screen[None],
        scenario: Callable[[ScreenStage, Callable[..., Awaitable[str]]], Awaitable[None]],
        *,
        size: tuple[int, int] = (104, 30),
        unicode: bool = True,
    ) -> None:
        app = stage(screen, unicode=unicode)

        async def run() -> None:
            async with app.run_test(size=size) as pilot:
                await settled(pilot)

                async def press(*keys: str) -> str:
                    """Press keys and return the screen that follows."""
                    for key in keys:
                        await pilot.press(key)
                        await settled(pilot)
                    return app.text()

                await scenario(app, press)

        asyncio.run(run())

    return on_stage


@pytest.fixture
def shot(stage, snap_compare) -> Callable[..., bool]:
    """Compare a screen with its picture."""

    def compare(
        screen: Screen[None], *, size: tuple[int, int], press: tuple[str, ...] = (), unicode: bool = True
    ) -> bool:
        async def before(pilot: Pilot[None]) -> None:
            await settled(pilot)
            for key in press:
                await pilot.press(key)
                await settled(pilot)

        return snap_compare(stage(screen, unicode=unicode), terminal_size=size, run_before=before)

    return compare
