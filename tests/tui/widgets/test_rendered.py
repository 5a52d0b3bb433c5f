from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.tui.widgets.painted_lines import Part, emphasised, rendered
from skillgit.view.surface import Screen, Style

SCREEN = Screen(colour=True, seal="4711;")
HOSTILE = st.text(alphabet="ab[;m1234567890\x1b\x07\x9b\u202e\r\x00\ud800")


def test_colours_of_a_renderer_become_meanings():
    line = f"a {SCREEN.paint(Style.REJECTED, 'bad')} end"
    assert rendered([line, ""], SCREEN) == [(Part("a "), Part("bad", Style.REJECTED), Part(" end")), ()]


@given(HOSTILE, HOSTILE, HOSTILE)
def test_text_of_a_stranger_paints_nothing_wherever_a_renderer_puts_it(before, inside, after):
    line = f"{before}{SCREEN.paint(Style.REJECTED, inside)}{after}"
    parts = rendered([line], SCREEN)[0]
    assert {part.style for part in parts} <= {"", Style.REJECTED}
    painted = "".join(part.text for part in parts if part.style)
    assert painted == SCREEN.shown(inside)
    text = "".join(part.text for part in parts)
    assert text == SCREEN.shown(before) + painted + SCREEN.shown(after)
    assert not set("\x1b\x07\x9b\u202e\r\x00") & set(text)


def test_a_line_end_in_a_text_begins_another_line():
    assert rendered(["a\nb"], SCREEN) == [(Part("a"),), (Part("b"),)]


def test_signs_that_the_terminal_lacks_are_replaced():
    assert rendered(["a – b"], Screen(unicode=False)) == [(Part("a - b"),)]  # noqa: RUF001 - a dash


def test_a_later_mark_is_seen_over_an_earlier_one():
    marks = [((0, 4), "word"), ((2, 6), "hit")]
    assert list(emphasised("abcdefgh", 1, 8, "line", marks)) == [
        Part("b", "word"),
        Part("cd", "hit"),
        Part("ef", "hit"),
        Part("gh", "line"),
    ]
