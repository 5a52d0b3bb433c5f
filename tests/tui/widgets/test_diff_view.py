from __future__ import annotations

import time

import diff_sample
import pytest
from textual.color import Color
from textual.filter import Monochrome

from skillgit.domain.text_diff import FileDiff, Hunk, Line, Sign, detailed
from skillgit.tui.widgets.diff_view import DiffView
from skillgit.tui.widgets.painted_lines import AT_ONCE

FILES = diff_sample.AS_DATA.files


def changes(
    count: int, words: str = "Rule {}: answer in the unit of the question, and say which unit it is."
) -> FileDiff:
    """A file of ``count`` lines of which every tenth was changed."""
    lines: list[Line] = []
    for number in range(1, count + 1):
        text = words.format(number)
        if number % 10:
            lines.append(Line(sign=Sign.SAME, text=text, old=number, new=number))
        else:
            lines += [
                Line(sign=Sign.REMOVED, text=text, old=number),
                Line(sign=Sign.ADDED, text=f"{text} Always.", new=number),
            ]
    return FileDiff(path="SKILL.md", hunks=(Hunk(heading="", lines=tuple(lines)),))


def many(count: int, context: int = 3) -> tuple[FileDiff, ...]:
    return detailed([changes(count)], context)


def styles(view: DiffView, text: str) -> set[str]:
    """Return the styles of the parts that say ``text``."""
    return {str(part.style) for line in range(view.count) for part in view.painted(line) if part.text == text}


def test_a_line_bears_its_number_its_sign_and_where_it_moved_to(play):
    async def scenario(app, pilot):
        app.widget.show_files(FILES)
        await pilot.pause()
        lines = app.lines()
        assert lines[1].startswith("▌@@ -8,11 +8,11 @@ ## Verify units")
        assert any(line.startswith("▌11 - Answer in the unit of the table.") for line in lines)
        assert any(line.startswith("▌13 -»Quote the row that you used.") for line in lines)
        assert any("(moved to line 16)" in line for line in lines)
        assert any("\\ No newline at end of file" in line for line in lines)
        assert "new mode 100755" in " ".join(lines)

    play(DiffView(), scenario, size=(80, 30))


def test_control_characters_of_a_skill_are_shown_and_wide_signs_keep_their_columns(play):
    async def scenario(app, pilot):
        app.widget.show_files(FILES)
        await pilot.pause()
        lines = app.lines()
        assert any("Mind the ^[[2Jgap." in line for line in lines)
        assert any("Count twice:    東京" in line for line in lines)

    play(DiffView(), scenario, size=(80, 30))


@pytest.mark.parametrize("side", [False, True])
def test_without_colours_what_was_added_is_no_dimmer_than_what_stayed(play, monkeypatch, side):
    monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(app, pilot):
        app.widget.side = side
        app.widget.show_files([changes(12)])
        await pilot.pause()
        seen: dict[str, set[tuple[float, bool]]] = {}
        for row in range(app.widget.count):
            for segment in Monochrome().apply(list(app.widget.render_line(row)), Color.parse("#000000")):
                kind = {"Always.": "added", "10: ": "", "9: ": "same"}
                name = next((word for part, word in kind.items() if part in segment.text), "")
                seen.setdefault(name, set()).add((segment.style.color.triplet.red, bool(segment.style.bold)))
        ((same, _),) = seen["same"]
        assert all(grey >= same and bold for grey, bold in seen["added"]), seen

    play(DiffView(), scenario, size=(190, 30))


def test_markup_in_a_skill_is_text(play):
    hostile = Line(sign=Sign.ADDED, text="[bold red]x[/] [@click=app.quit]y[/] $primary", new=1)
    file = FileDiff(path="[red]a[/].md", hunks=(Hunk(heading="[b]h[/b]", lines=(hostile,)),))

    async def scenario(app, pilot):
        app.widget.show_files([file])
        await pilot.pause()
        assert app.lines()[:3] == [
            " [red]a[/].md   +1 -0",
            "▌@@ -0,0 +1 @@ [b]h[/b]",
            "▌1 + [bold red]x[/] [@click=app.quit]y[/] $primary",
        ]

    play(DiffView(), scenario)


def test_changed_words_are_marked_until_they_are_switched_off(play):
    async def scenario(app, pilot):
        app.widget.show_files(FILES)
        await pilot.pause()
        assert styles(app.widget, "question, and say it") == {"diff--added-word"}
        await pilot.press("W")
        assert styles(app.widget, "question, and say it") == set()
        assert styles(app.widget, "Answer in the unit of the question, and say it.") == {"diff--added"}

    play(DiffView(), scenario, size=(80, 30))


def test_side_by_side_puts_partners_on_one_row(play):
    async def scenario(app, pilot):
        app.widget.show_files(FILES)
        await pilot.press("S")
        await pilot.pause()
        [row] = [line for line in app.lines() if "unit of the table" in line]
        assert row.index("Answer in the unit of the table.") < row.index("│") < row.index("Answer in the unit of the q")
        assert len({line.index("│") for line in app.lines() if "│" in line}) == 1
        await pilot.press("S")
        assert not any("│" in line for line in app.lines())

    play(DiffView(), scenario, size=(104, 30))


def test_a_long_line_is_broken_at_spaces_and_emphasised_on_both_rows(play):
    old, new = f"{'word ' * 20}end", f"{'word ' * 20}finish of it"
    lines = (Line(sign=Sign.REMOVED, text=old, old=1), Line(sign=Sign.ADDED, text=new, new=1))
    files = detailed([FileDiff(path="SKILL.md", hunks=(Hunk(heading="", lines=lines),))])

    async def scenario(app, pilot):
        app.widget.show_files(files)
        await pilot.pause()
        assert all(len(line) <= 40 for line in app.lines())
        assert styles(app.widget, "finish of it") == {"diff--added-word"}

    play(DiffView(), scenario, size=(41, 20))


def test_hunks_are_walked_and_the_present_one_is_marked(play):
    async def scenario(app, pilot):
        view = app.widget
        view.show_files(many(60))
        await pilot.pause()
        assert (view.hunk, len(view.hunks)) == (0, 6)
        for expected in (1, 2, 3, 4, 5, 5):
            await pilot.press("J")
            assert view.hunk == expected
        marked = [line for line in range(view.count) if view.painted(line)[0].text == "▌"]
        assert marked[0] == view.hunks[5]
        assert len(marked) == view.count - view.hunks[5]
        await pilot.press("K")
        assert view.hunk == 4
        await pilot.press("g", "J")
        assert view.hunk == 0, "from elsewhere, the walk begins at what is on the screen"

    play(DiffView(), scenario)


@pytest.mark.parametrize(("keys", "top"), [("j j j k", 2), ("G", 32), ("G g", 0), ("ctrl+d", 6), ("ctrl+d ctrl+u", 0)])
def test_keys_scroll(play, keys, top):
    async def scenario(app, pilot):
        app.widget.show_files([changes(39)])
        await pilot.pause()
        assert app.widget.count == 44
        await pilot.press(*keys.split())
        assert app.widget.scroll_offset.y == top

    play(DiffView(), scenario, size=(120, 12))


def test_a_search_goes_round_its_hits_and_finds_what_is_broken_over_two_rows(play):
    async def scenario(app, pilot):
        view = app.widget
        view.show_files(many(60))
        await pilot.pause()
        view.seek("WHICH UNIT IT IS")
        hits = len(view.hits)
        assert hits == sum(
            line.text.count("which unit") for file in many(60) for hunk in file.hunks for line in hunk.lines
        )
        seen = []
        for _ in range(hits):
            await pilot.press("n")
            seen.append(view.hits[view.hit])
            assert view.scroll_offset.y <= seen[-1] < view.scroll_offset.y + view.size.height
        assert sorted(seen) == list(view.hits)
        await pilot.press("N")
        assert view.hits[view.hit] == seen[-2]
        assert any(str(part.style) == "lines--hit" for part in view.painted(view.hits[view.hit]))

    play(DiffView(), scenario, size=(60, 12))


def test_a_search_without_a_hit_says_so_and_moves_nothing(play):
    async def scenario(app, pilot):
        app.widget.show_files(many(60))
        await pilot.press("j", "j")
        app.widget.seek("nothing like this")
        await pilot.press("n")
        assert (app.widget.hits, app.widget.scroll_offset.y) == ((), 2)

    play(DiffView(), scenario)


def test_keys_move_a_difference_that_was_not_drawn_yet(play):
    async def scenario(app, pilot):
        del pilot
        app.widget.show_files(many(60))
        app.widget.action_list_down()
        app.widget.action_list_down()
        assert app.widget.scroll_offset.y == 2

    play(DiffView(), scenario)


def test_other_context_is_asked_for_and_keeps_the_line_at_the_top(play):
    wanted = []

    class Asking(DiffView):
        def on_diff_view_context_wanted(self, message):
            wanted.append(message.lines)

    async def scenario(app, pilot):
        view = app.widget
        view.show_files(many(100))
        await pilot.press("right_curly_bracket", "left_curly_bracket")
        await pilot.pause()
        assert wanted == [6, 1]
        await pilot.press("J", "J", "j")
        top = view.top
        view.show_files(many(100, 6), context=6)
        await pilot.pause()
        assert view.top == top
        view.show_files(many(100, 0), context=0)
        await pilot.press("right_curly_bracket", "left_curly_bracket")
        await pilot.pause()
        assert wanted == [6, 1, 1], "there is no less than nothing"

    play(Asking(), scenario, size=(120, 12))


def test_a_terminal_without_all_signs_gets_ascii(play):
    async def scenario(app, pilot):
        app.widget.show_files(FILES)
        await pilot.press("S")
        await pilot.pause()
        assert all(line.replace("東京", "").isascii() for line in app.lines())
        assert any(line.startswith(">13 -mQuote the row") for line in app.lines())

    play(DiffView(), scenario, size=(104, 30), unicode=False)


def test_equal_texts_are_said_to_be_the_same(play):
    async def scenario(app, pilot):
        app.widget.show_files(FILES)
        app.widget.show_files(())
        await pilot.pause()
        assert app.lines()[0] == " the text is the same"
        app.widget.show_files(FILES)
        await pilot.pause()
        assert "SKILL.md" in app.lines()[0]

    play(DiffView(), scenario)


def test_a_narrower_screen_breaks_the_lines_anew(play):
    async def scenario(app, pilot):
        app.widget.show_files([changes(20)])
        await pilot.pause()
        before = app.widget.count
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert app.widget.count > before
        assert all(len(line) <= 39 for line in app.lines())

    play(DiffView(), scenario, size=(120, 12))


def cost(play, count: int) -> float:
    """Return the processor time of the screen's thread for a round of keys on a text of ``count`` lines, all shown."""
    spent: list[float] = []

    async def scenario(app, pilot):
        app.widget.show_files([changes(count, words="Rule {}: " + "answer in the unit of the question, " * 5)])
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.widget.count > count
        for _ in range(5):
            began = time.thread_time()
            await pilot.press("j", "ctrl+d", "W", "J", "K", "S")
            spent.append(time.thread_time() - began)
            await app.workers.wait_for_complete()
            await pilot.pause()

    play(DiffView(), scenario, size=(104, 30))
    return min(spent)


@pytest.mark.soak
def test_keys_on_five_thousand_lines_cost_what_they_cost_on_fifty(play):
    assert AT_ONCE < 5000
    assert cost(play, 5000) < 3 * cost(play, 50)
