from __future__ import annotations

import cli_sample

from skillgit.tui.first_picture import PAGE
from skillgit.tui.screens.history import EventList
from skillgit.verbs.browse import EventPage

EVERY = 100_000


def page(offset: int) -> EventPage:
    rows = tuple(
        cli_sample.row("rejected", commit=f"{place:040x}", step=EVERY - place, title="\x1b[31m[b]no[/b]\r", score=0.5)
        for place in range(offset, min(offset + PAGE, EVERY))
    )
    return EventPage(offset=offset, rows=rows, total=EVERY, everything=EVERY)


def test_of_a_hundred_thousand_events_only_pages_in_sight_are_read(play):
    wanted: list[int] = []
    events = EventList(wanted.append)

    async def scenario(stage, pilot):
        events.begin(page(0), cursor=0)
        await pilot.press("ctrl+d", "G")
        assert events.cursor == EVERY - 1
        assert stage.lines()[-1].strip() == "…"
        assert wanted == [EVERY - PAGE]
        events.add(page(wanted[0]))
        await pilot.pause()
        assert " r1 " in stage.lines()[-1]
        await pilot.press("g")
        assert wanted == [EVERY - PAGE]

    play(events, scenario)


def test_pages_far_away_are_forgotten(play):
    wanted: list[int] = []
    events = EventList(wanted.append)

    async def scenario(_stage, pilot):
        events.begin(page(0), cursor=0)
        for number in range(1, 40):
            events.add(page(number * PAGE))
        assert len(events._pages) == 25
        assert events.current is not None, "the page of the cursor stays"
        await pilot.pause()

    play(events, scenario)


def test_titles_of_models_take_no_effect(play):
    events = EventList(lambda _: None)

    async def scenario(stage, pilot):
        events.begin(page(0), cursor=0)
        await pilot.pause()
        assert "^[[31m[b]no[/b]^M" in stage.lines()[0]

    play(events, scenario)
