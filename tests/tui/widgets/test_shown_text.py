from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from skillgit.domain.untrusted.model_text import hidden_in
from skillgit.tui.widgets.painted_lines import on_one_line
from skillgit.view.surface import Screen
from skillgit.view.text import broken

UNICODE, ASCII = Screen(), Screen(unicode=False)


@given(st.text())
def test_what_is_shown_can_do_nothing_to_a_screen(text):
    shown = on_one_line(text, UNICODE)
    assert hidden_in(shown) == []
    assert not {"\x1b", "\n", "\r"} & set(shown)


def test_control_characters_and_those_that_reorder_text_are_written_out():
    assert on_one_line("a\x1b[31mb", UNICODE) == "a^[[31mb"
    assert on_one_line("pay\u202eeno", UNICODE) == "pay<U+202E>eno"


def test_signs_that_a_terminal_lacks_are_written_in_ascii():
    assert on_one_line("“so” – it goes…", ASCII) == '"so" - it goes...'  # noqa: RUF001 - a dash


@given(st.text(alphabet="abc d東é"), st.integers(2, 12))
def test_broken_lines_fit_and_lose_nothing_but_the_space_they_are_broken_at(text, columns):
    spans = broken(text, columns)
    assert all(cell_len(text[start:end]) <= columns for start, end in spans)
    joined = "".join(text[start:end] + text[end:following] for (start, end), (following, _) in pairwise(spans))
    assert joined + text[spans[-1][0] : spans[-1][1]] in {text, text.rstrip(" "), text[:-1]}
    assert all(text[end:following] in {"", " "} for (_, end), (following, _) in pairwise(spans))
