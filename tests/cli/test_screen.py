from __future__ import annotations

import cli_sample as sample
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.view.log import log_lines
from skillgit.view.surface import ASCII, UNICODE, Screen, Style, can_show_glyphs
from skillgit.view.text import facts, fit, sentence, width


@pytest.mark.parametrize(
    ("encoding", "able"), [("utf-8", True), ("ascii", False), ("latin-1", False), ("no-such", False)]
)
def test_signs_are_used_where_they_can_be_written(encoding, able):
    assert can_show_glyphs(encoding) is able


def test_ascii_screens_get_the_signs_of_the_design():
    signs = (ASCII.best, ASCII.accepted, ASCII.rejected, ASCII.slow, ASCII.skipped, ASCII.reverted, ASCII.running)
    assert signs == ("*", "o", "x", "M", ".", "r", ">")


def test_an_ascii_log_has_the_columns_of_the_unicode_log():
    fine = [line.text for line in log_lines(sample.ROWS, Screen(), sample.NOW, graph={})]
    poor = [line.text for line in log_lines(sample.ROWS, Screen(unicode=False), sample.NOW, graph={})]
    assert all(line.isascii() for line in poor)
    assert [width(line) for line in fine] == [width(line) for line in poor]
    assert poor[0].startswith("M   v9  (.7500) ")
    assert poor[1].startswith("|M  e2   .7500")
    assert poor[3].startswith("| x r18 ")


def test_typography_becomes_ascii_where_there_is_nothing_else():
    assert Screen(unicode=False).encodable("a … b — “c” ●") == 'a ... b - "c" *'
    assert Screen().encodable("a … b") == "a … b"


def test_paint_is_nothing_without_colour():
    assert Screen().paint(Style.BEST, "x") == "x"
    assert Screen(colour=True).paint(Style.BEST, "x") == "\x1b[1;32mx\x1b[m"
    assert Screen(colour=True).paint(Style.BEST, "") == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[m", "\x1b[31mred\x1b[m"),
        ("\x1b[2Jclear", "^[[2Jclear"),
        ("\x1b]0;title\x07", "^[]0;title^G"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x9b31m", "<U+009B>31m"),
        ("a\u202eb\u200b", "a<U+202E>b<U+200B>"),
        ("👩\u200d💻 \u0645\u06cc\u200c\u062e ❤\ufe0f", "👩\u200d💻 \u0645\u06cc\u200c\u062e ❤\ufe0f"),
        ("\r", "^M"),
        ("\x7f", "^?"),
    ],
)
def test_only_colours_reach_the_terminal(text, shown):
    assert Screen(colour=True).shown(text) == shown


def test_a_text_cannot_paint_itself_in_our_colours():
    screen = Screen(colour=True, seal="271828;")
    line = f"{screen.paint(Style.ACCEPTED, 'accepted')} \x1b[32mforged\x1b[m"
    assert screen.shown(line) == "\x1b[32maccepted\x1b[m ^[[32mforged^[[m"
    assert Screen(seal="271828;").shown("\x1b[32mforged\x1b[m") == "^[[32mforged^[[m"


@given(st.text(), st.integers(min_value=1, max_value=60))
def test_cut_text_fits(text, columns):
    assert width(fit(text, columns)) <= columns


@given(st.text(alphabet=st.characters(exclude_categories=["Mn", "Me", "Cs"])))
def test_text_that_fits_is_not_cut(text):
    assert fit(text, width(text)) == text


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_log_lines_fit_the_terminal(columns):
    screen = Screen(terminal=True, width=columns)
    assert max(width(line.text) for line in log_lines(sample.ROWS, screen, sample.NOW)) <= columns


@given(st.lists(st.text("abä言-/", min_size=1, max_size=30), min_size=1).map(" ".join), st.integers(24, 100))
def test_no_word_of_a_sentence_is_broken_and_a_line_is_longer_than_the_screen_for_a_long_word_only(text, columns):
    screen = Screen(terminal=True, width=columns)
    told = [line[4:] for line in facts([("key", text)], screen, label=4)]
    for lines, room in ((list(sentence(text, screen)), columns), (told, columns - 4)):
        assert " ".join(lines) == text
        assert all(width(line) <= room or " " not in line for line in lines)


def test_wide_characters_take_two_columns():
    assert width("言葉") == 4
    assert fit("言葉言葉", 5) == "言葉…"
    assert UNICODE.ellipsis == "…"
