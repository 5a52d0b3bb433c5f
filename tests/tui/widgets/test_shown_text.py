from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from skillgit.tui.widgets.shown_text import broken, cut, on_one_line, shown
from skillgit.view.surface import Screen

UNICODE, ASCII = Screen(), Screen(unicode=False)


@given(st.text())
def test_what_is_shown_can_do_nothing_to_a_screen(text):
    assert all(character.isprintable() or character.isspace() for character in shown(text, UNICODE).text)
    assert "\x1b" not in shown(text, UNICODE).text
    assert "\n" not in on_one_line(text, UNICODE)


def test_control_characters_and_those_that_reorder_text_are_written_out():
    assert shown("a\x1b[31mb", UNICODE).text == "a^[[31mb"
    assert shown("pay\u202eeno", UNICODE).text == "pay\\u202eeno"
    assert shown("tab\there\x85", UNICODE).text == "tab    here\\x85"


def test_signs_that_a_terminal_lacks_are_written_in_ascii():
    assert shown("“so” – it goes…", ASCII).text == '"so" - it goes...'  # noqa: RUF001 - a dash


@given(st.text(alphabet="ab \t\x1b東é"), st.data())
def test_a_span_stays_on_its_characters(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    line = shown(text, UNICODE)
    [(first, last)] = line.spans([(start, end)])
    assert line.text[first:last] == shown(text[start:end], UNICODE).text


@given(st.text(alphabet="abc d東é"), st.integers(2, 12))
def test_broken_lines_fit_and_lose_nothing_but_the_space_they_are_broken_at(text, columns):
    spans = broken(text, columns)
    assert all(cell_len(text[start:end]) <= columns for start, end in spans)
    joined = "".join(text[start:end] + text[end:following] for (start, end), (following, _) in pairwise(spans))
    assert joined + text[spans[-1][0] : spans[-1][1]] in {text, text.rstrip(" "), text[:-1]}
    assert all(text[end:following] in {"", " "} for (_, end), (following, _) in pairwise(spans))


@given(st.text(alphabet="ab 東"), st.integers(2, 9))
def test_a_cut_line_fits(text, columns):
    assert cell_len(cut(text, columns, UNICODE)) <= columns
