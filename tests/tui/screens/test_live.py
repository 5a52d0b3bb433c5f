from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import cli_sample as sample
import pytest
from soaking import soak

from skillgit.app.history.status import Unfinished
from skillgit.app.workspace.live import CallFigures, End, LiveLook, LiveProgress, RunLimits, StageCount, Standing
from skillgit.domain.cost import Cost
from skillgit.domain.outcomes import Failing
from skillgit.domain.score import Score
from skillgit.errors import NotFoundError
from skillgit.index.event_pages import Point
from skillgit.tui import keymap
from skillgit.tui.screens import live as live_text
from skillgit.tui.screens.dialogs import AskScreen, HelpScreen
from skillgit.tui.screens.event import EventScreen
from skillgit.tui.screens.live import LiveScreen
from skillgit.verbs.browse import EventPage
from skillgit.verbs.cost import COST
from skillgit.verbs.verb import Answer

PID = 4127
ROWS = (sample.R18, sample.V7, sample.V6, sample.V0)
POINTS = tuple(
    Point(kind=kind, decision=decision, step=step, score=Score(score, at_most=kind == "rejected"), commit=f"{step}")
    for kind, decision, step, score in (
        ("run-started", "", 0, 0.55),
        ("accepted", "accept_new_best", 2, 0.6),
        ("rejected", "reject", 4, 0.5),
        ("accepted", "accept_new_best", 7, 0.75),
        ("slow-merged", "accept", 10, 0.7),
        ("accepted", "accept", 15, 0.725),
    )
)
FAILING = (
    Failing(
        task_type="units",
        reason='expected one of: "…"; the answer "…" shares # of # words',
        example='expected one of: "1,063 ft"; the answer "[b]324 m[/b]\x1b[2J" shares 0 of 2 words',
        items=("q17", "q22", "q31", "q35", "q36", "q38"),
        count=6,
    ),
    Failing(
        task_type="default",
        reason="not evaluated: timed out after # s",
        example="not evaluated: timed out after 30 s",
        items=("q40",),
        count=1,
    ),
)
SNAPSHOT = LiveProgress(
    run=sample.RUN,
    pid=PID,
    command=f"skillgit train demo --run {sample.RUN}",
    limits=RunLimits(calls=500, tokens=2_000_000, usd=0.9),
    seconds=1_700.0,
    epoch=2,
    epochs=4,
    step=18,
    steps=40,
    budget=4,
    stage="rollout",
    done=32,
    total=40,
    stages=(StageCount(stage="rollout", done=32, total=40),),
    score=0.725,
    best=0.75,
    spent=sample.COST.whole,
    failing=FAILING,
    failed=7,
    rolled=32,
    looked_at="rollout",
    remarks=("5 steps in a row brought nothing: worse",),
    conditions=("target offline reader, optimizer offline analyst; rehearsal, not language models",),
    share=0.43,
    seconds_left=2_230.0,
    recent=Cost(calls=190, tokens_in=30_000, tokens_out=6_000, usd=0.03),
    recent_s=60.0,
    projected=Cost(calls=480, tokens_in=1_100_000, tokens_out=100_000, usd=1.95),
    calls=CallFigures(per_second=3.17, latency_s=1.84, in_flight=8, answered=212, refused=3, failed=1, retried=4),
)
RUNNING = LiveLook(run=sample.RUN, standing=Standing.RUNNING, pid=PID, snapshot=SNAPSHOT)
GONE = replace(RUNNING, pid=0)
LOOKS = {
    "running": RUNNING,
    "baseline": replace(
        RUNNING,
        snapshot=replace(
            SNAPSHOT,
            step=0,
            epoch=0,
            score=None,
            best=None,
            stage="baseline",
            failing=(),
            failed=0,
            looked_at="baseline",
            stages=(StageCount(stage="baseline", done=12, total=40),),
            seconds_left=None,
            share=0.0,
            projected=None,
            budget=None,
            remarks=(),
        ),
    ),
    "starting": LiveLook(run=sample.RUN, standing=Standing.STARTING, pid=PID),
    "stopping": replace(RUNNING, standing=Standing.STOPPING),
    "finished": replace(
        GONE,
        standing=Standing.ENDED,
        snapshot=replace(
            SNAPSHOT, step=40, end=End(outcome="improved", message="v8 scores .7500.", hint="skillgit log --graph")
        ),
    ),
    "provider-failure": replace(
        GONE,
        standing=Standing.ENDED,
        snapshot=replace(
            SNAPSHOT,
            end=End(outcome="provider-failure", message="openai_chat does not answer any more", hint="skillgit doctor"),
        ),
    ),
    "killed": replace(GONE, standing=Standing.KILLED),
    "idle": LiveLook(run="", standing=Standing.IDLE),
}


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """Let the use cases tell of a run; a test changes what they tell."""
    told = {"look": RUNNING, "rows": ROWS, "stopped": [], "unfinished": {}}

    def asked(how: str):
        def stop(_context, run):
            told["stopped"].append((how, run))
            return PID

        return stop

    def spending(_session, request):
        return Answer(result=SimpleNamespace(unfinished=told["unfinished"].get(request.run)))

    uses = {
        "live": lambda *_, **__: told["look"],
        "browse.page": lambda *_, **__: EventPage(offset=0, rows=told["rows"], total=4, everything=4),
        "browse.score_line": lambda *_: (POINTS, 1),
        "stop_after_step": asked("after its step"),
        "stop_now": asked("now"),
        "COST": replace(COST, run=spending),
    }
    for name, use in uses.items():
        monkeypatch.setattr(f"skillgit.tui.screens.live.{name}", use)
    return told


@pytest.mark.parametrize("size", [(104, 30), (80, 24), soak((60, 16)), soak((120, 40)), soak((200, 60))], ids=str)
def test_a_run_in_the_making_looks_as_it_should(shot, size):
    assert shot(LiveScreen(), size=size)


@pytest.mark.parametrize("state", [name for name in LOOKS if name != "running"])
def test_every_state_looks_as_it_should(shot, seen, state):
    seen["look"] = LOOKS[state]
    seen["rows"] = () if state in {"baseline", "starting", "idle"} else ROWS
    assert shot(LiveScreen(), size=(104, 30))


def test_a_terminal_without_all_signs_looks_as_it_should(shot):
    assert shot(LiveScreen(), size=(104, 30), press=("ctrl+t",), unicode=False)


def test_the_question_before_a_stop_looks_as_it_should(shot):
    assert shot(LiveScreen(), size=(104, 30), press=("K",))


@pytest.mark.parametrize("state", LOOKS)
def test_what_a_stopped_run_has_spent_and_not_recorded_is_told(play, seen, state):
    seen["look"] = look = LOOKS[state]
    cost = sample.Cost(calls=40, tokens_in=23_000, tokens_out=900)
    seen["unfinished"] = {look.run: (Unfinished(run=look.run, what="step 19", cost=cost),)} if look.run else {}

    async def scenario(_app, press):
        told = "unfinished step 19: 40 calls · 23k in · 900 out; kept" in await press()
        assert told == (bool(look.run) and not look.is_alive)

    play(LiveScreen(), scenario, size=(120, 30))


def test_place_budget_time_left_scores_and_caps_are_told(play):
    async def scenario(_app, press):
        text = await press()
        assert f"{sample.RUN}" in text
        assert "▶ pid 4127" in text
        assert "epoch 2/4  step 18/40 · budget 4 · 43% · ETA 37 min" in text
        assert "current .7250  best .7500" in text
        assert "rollout ████████░░ 32/40" in text
        assert "212 calls of 500 (42%) · 521k tokens of 2.0M (26%) · $0.84 of $0.90 (93%)" in text
        assert "end   about 480 calls (96%) · 1.2M tokens (60%) · $1.95 (217%)" in text
        assert "pace  3.2 calls/s · 1.8 s each · $1.80/h · 3 refused · 1 failed · 4 retried · 36k tokens/min" in text
        assert "Failing now  7 of 32  rollout" in text
        assert "5 steps in a row brought nothing: worse" in text
        assert "rehearsal, not language models" in text

    play(LiveScreen(), scenario)


@pytest.mark.parametrize(
    ("state", "title"),
    [("running", "19/40 · .7250 · {run}"), ("starting", "starting · {run}"), ("finished", "improved · {run}")],
)
def test_the_window_of_the_terminal_is_called_what_the_run_is_at_and_gets_its_name_back(play, seen, state, title):
    written: list[str] = []

    async def scenario(app, press):
        await press()
        app._driver.write = written.append
        look = LOOKS[state]
        seen["look"] = replace(look, snapshot=look.snapshot and replace(look.snapshot, step=19))
        await press("f5", "q")
        assert written[0] == f"\x1b]2;{title.format(run=sample.RUN)}\x07"
        assert written[-1] == "\x1b[23;2t"
        assert "pid" not in live_text.head(replace(look, pid=0), app.facts)[1], "it may have no number yet"

    play(LiveScreen(), scenario)


def test_model_text_is_shown_and_never_interpreted(play):
    async def scenario(_app, press):
        text = await press()
        assert "[b]324" in text
        assert "^[[2J" in text
        assert "\x1b" not in text

    play(LiveScreen(), scenario, size=(160, 40))


def test_events_land_and_the_cursor_follows_until_it_is_moved(play, seen):
    async def scenario(app, press):
        screen = app.screen
        assert "Events  following" in await press()
        assert screen.landed.current.commit == ROWS[0].commit
        assert "Events  following" not in await press("j")
        stays = screen.landed.current.commit
        newest = replace(sample.V8, commit=sample.oid("feed"), title="landed")
        seen["rows"] = (newest, *ROWS)
        assert "skill: landed" in await press("R")
        assert screen.landed.current.commit == stays
        assert "Events  following" in await press("f")
        assert screen.landed.current.commit == newest.commit
        assert "Events  following" not in await press("f")

    play(LiveScreen(), scenario)


def test_what_a_decision_was_compared_with_stands_beside_it(play):
    async def scenario(_app, press):
        text = await press()
        assert ".7250 > .7000" in text
        assert "r18 .6750 ≤ .7250" in text

    play(LiveScreen(), scenario)


def test_enter_opens_the_event_and_escape_comes_back(play):
    async def scenario(app, press):
        live = app.screen
        await press("j", "enter")
        assert isinstance(app.screen, EventScreen)
        assert app.screen.current == ROWS[1]
        await press("right_square_bracket")
        assert app.screen.detail.tab_index == 1
        await press("left_square_bracket", "e")
        assert app.screen.detail.view.id == "trace"
        await press("slash", *"unit", "enter")
        assert app.screen.detail.view.sought == "unit"
        await press("escape")
        assert app.screen is live
        await press("tab", "enter")
        assert isinstance(app.screen, EventScreen), "also from the other pane"

    play(LiveScreen(), scenario)


def test_tab_goes_to_the_other_pane_which_a_small_terminal_shows_alone(play):
    async def scenario(app, press):
        text = await press()
        assert "Events" in text
        assert "Failing now" not in text
        for key in ("tab", "shift+tab"):
            before = app.focused
            text = await press(key)
            assert app.focused is not before
        assert "Events" in text
        text = await press("tab")
        assert "Failing now" in text
        assert "Events" not in text

    play(LiveScreen(), scenario, size=(60, 16))


def test_a_stop_is_asked_about_and_a_second_one_stops_now(play, seen):
    async def scenario(app, press):
        text = await press("K")
        assert isinstance(app.screen, AskScreen)
        assert "Process 4127 would finish its step and stop." in text
        await press("n")
        assert seen["stopped"] == []
        await press("K", "y")
        assert seen["stopped"] == [("after its step", sample.RUN)]
        seen["look"] = LOOKS["stopping"]
        assert "stops after this step" in await press("R")
        await press("K")
        assert "after the calls in flight?" in app.screen.why
        await press("y")
        assert seen["stopped"][1:] == [("now", sample.RUN)]

    play(LiveScreen(), scenario)


def test_a_run_that_nobody_trains_cannot_be_stopped(play, seen):
    seen["look"] = LOOKS["killed"]

    async def scenario(app, press):
        text = await press("K")
        assert isinstance(app.screen, LiveScreen)
        assert "process 4127 is gone without a word" in text
        assert "hint: skillgit train demo --run" in text
        assert "ETA" not in text
        assert "K stop" not in text
        seen["look"] = RUNNING
        assert "K stop after this step" in await press("R")

    play(LiveScreen(), scenario)


def test_an_error_is_told_with_its_hint(play, monkeypatch):
    def wrong(*_, **__):
        raise NotFoundError("there is no repository", hint="skillgit init")

    monkeypatch.setattr("skillgit.tui.screens.live.live", wrong)

    async def scenario(_app, press):
        text = await press()
        assert "there is no repository" in text
        assert "hint: skillgit init" in text

    play(LiveScreen(), scenario)


@pytest.mark.parametrize("key", ["q", "escape"])
def test_closing_the_screen_leaves_the_app(play, key):
    async def scenario(app, press):
        await press(key)
        assert not isinstance(app.screen, LiveScreen)
        assert app.is_running

    play(LiveScreen(), scenario)


class Process:
    """A trainer that a screen was opened for."""

    pid = PID

    def __init__(self, code: int | None = None) -> None:
        self.runs = code is None

    def now(self) -> Process:
        return self


def test_closing_the_screen_of_a_trainer_closes_the_app(play):
    async def scenario(app, press):
        await press("q")
        assert app._exit

    play(LiveScreen(trainer=Process()), scenario)


def test_a_trainer_that_fails_before_it_begins_closes_the_app_which_then_tells(play, seen):
    seen["look"] = LiveLook(run="", standing=Standing.STARTING, pid=PID)

    async def scenario(app, press):
        await press()
        assert app._exit

    play(LiveScreen(trainer=Process(2)), scenario)


def test_a_trainer_that_has_ended_leaves_its_last_look_on_the_screen(play, seen):
    seen["look"] = LOOKS["finished"]

    async def scenario(app, press):
        assert "v8 scores .7500." in await press()
        assert not app._exit

    play(LiveScreen(trainer=Process(0)), scenario)


def test_every_key_of_the_screen_does_something_and_none_has_two_meanings(play):
    async def scenario(app, press):
        for key in keymap.at("app", "live", "list"):
            assert key.id in {"app.palette", *(command.help for command in app.get_system_commands(app.screen))}
        bound: dict[str, str] = {}
        for key in (*keymap.at("live", "list"), *keymap.at("app")):
            for one in key.keys:
                assert bound.get(one, key.id) == key.id or (bound[one], key.id) == ("live.close", "app.quit")
                bound.setdefault(one, key.id)
        text = await press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        for name in ("live.follow", "live.stop", "live.close"):
            assert name in text

    play(LiveScreen(), scenario, size=(104, 50))


@pytest.mark.parametrize(
    ("spent", "limits", "told"),
    [
        (Cost(calls=1), RunLimits(), "cost  1 call · 0 tokens"),
        (Cost(calls=2, unpriced=2), RunLimits(), "cost  2 calls · 0 tokens · unknown price"),
        (Cost(calls=2, usd=0.5, unpriced=1), RunLimits(), "cost  2 calls · 0 tokens · at least $0.50"),
        (Cost(), RunLimits(usd=2.0), "cost  0 calls · 0 tokens · $0.00 of $2.00 (0%)"),
    ],
)
def test_costs_and_their_pace_are_told_as_far_as_they_are_known(spent, limits, told):
    look = replace(RUNNING, snapshot=replace(SNAPSHOT, spent=spent, limits=limits, recent=spent))
    from skillgit.view.surface import Screen  # noqa: PLC0415 - only this test draws without an app

    assert live_text.cost(look, Screen()).strip() == told
    assert ("at least $30.00/h" in live_text.pace(look, Screen())) == ("at least" in told)
