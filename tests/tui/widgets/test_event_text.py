from __future__ import annotations

from dataclasses import replace

import cli_sample

from skillgit.app.history.show import EventDetail
from skillgit.app.recorded.step_evidence import AppliedEdit, TrainAttempt, TrajectoryPattern
from skillgit.tui.screens import event as detail
from skillgit.tui.screens.event import EventItems, EventMessage
from skillgit.tui.widgets.painted_lines import Paragraphs
from skillgit.view.surface import Screen

HARMFUL = "\x1b[2J[red]x[/red]\x07"
INK = Screen(terminal=True)
DETAIL = EventDetail(
    shown=cli_sample.SHOWN["v7"],
    files=(),
    present=True,
    edits=(
        AppliedEdit(
            position=0,
            op="replace",
            file="SKILL.md",
            anchor="old",
            content=HARMFUL,
            support=2,
            source="failure",
            items=("q1",),
        ),
    ),
    findings=(TrajectoryPattern(pattern="units are missing", count=3, items=("q1", "q2")),),
    attempts=(TrainAttempt(item="q1", question="How tall?", answer=HARMFUL, feedback="wrong", hard=0.0, soft=0.5),),
)


def text(lines) -> str:
    return "\n".join("".join(part.text for part in line) for line in lines)


def test_the_head_says_what_became_of_the_event_and_where_it_stands():
    first, second = detail.head(cli_sample.V7, INK, cli_sample.NOW)
    assert text([first]).split() == ["v7", "●", "accepted,", "new", "best", ".7250", "+.0250"]
    assert text([second]) == f" epoch 2 · step 17 · base v6 · 12 min ago · 9f1c2ab · {cli_sample.RUN}"


def test_edits_are_told_with_their_text(play):
    view = Paragraphs()

    async def scenario(_stage, pilot):
        view.show(list(detail.edits(DETAIL)))
        await pilot.pause()
        told = text(view.lines)
        assert "replace SKILL.md, support 2 failure" in told
        assert "-  old" in told
        assert "^[[2J[red]x[/red]^G" in told
        assert "from q1" in told

    play(view, scenario)


def test_without_evidence_the_recorded_edits_are_told_and_how_to_get_more():
    told = [part.text for part in detail.edits(replace(DETAIL, edits=(), present=False))]
    assert any("insert_after SKILL.md, support 4" in one for one in told)
    assert any("skillgit pull --evidence" in one for one in told)


def test_traces_tell_patterns_and_answers(play):
    view = Paragraphs()

    async def scenario(_stage, pilot):
        view.show(list(detail.trace(DETAIL, INK)))
        await pilot.pause()
        told = text(view.lines)
        assert "  3  units are missing" in told
        assert "q1  hard .0000  soft .5000" in told
        assert "said    ^[[2J[red]x[/red]^G" in told

    play(view, scenario)


def test_the_message_has_facts_first(play):
    view = EventMessage()
    shown = replace(cli_sample.SHOWN["v7"], message=f"skill: {HARMFUL}\n")

    async def scenario(_stage, pilot):
        view.show(shown)
        await pilot.pause()
        told = text(view.lines)
        assert told.index("hard .7250") < told.index("skill: ^[[2J")

    play(view, scenario, size=(80, 40))


def test_items_that_changed_come_first_and_one_is_chosen(play):
    view = EventItems()

    async def scenario(stage, pilot):
        view.show(cli_sample.ITEMS)
        await pilot.press("j")
        assert [line.split()[1] for line in stage.lines()[:6]] == [
            *("broken", "fixed", "fixed", "missing", "stable", "stable"),
        ]
        assert view.item == "q17"
        await pilot.press("f")
        assert [line.split()[1] for line in stage.lines() if line.strip()] == ["broken"]
        assert view.item == next(row.item for row in cli_sample.ITEMS if row.change == "broken")
        await pilot.press("f")
        assert [line.split()[1] for line in stage.lines() if line.strip()] == ["fixed", "fixed"]
        for _ in {row.change for row in cli_sample.ITEMS} - {"broken"}:
            await pilot.press("f")
        assert view.count == len(cli_sample.ITEMS)
        view.show(())
        await pilot.pause()
        assert "no outcomes" in stage.lines()[0]

    play(view, scenario)
