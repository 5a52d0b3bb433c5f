from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.text_diff import FileDiff, Hunk, Line, Sign, detailed
from skillgit.view import diff as side_by_side
from skillgit.view.surface import Screen
from skillgit.view.text import broken, painted, visible_line, width

COLOUR = Screen(terminal=True, colour=True, width=80)


def unpainted(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@given(st.text(alphabet="ab 東\u0301", max_size=40), st.integers(min_value=2, max_value=12))
def test_pieces_fit_and_lose_nothing_but_the_space_at_which_they_are_broken(text, columns):
    found = broken(text, columns)
    assert all(width(text[start:end]) <= columns for start, end in found)
    assert "".join(text[start:end] for start, end in found).replace(" ", "") == text.replace(" ", "")
    at = 0
    for start, end in found:
        assert text[at:start] in {"", " "}
        at = end
    assert text[at:] in {"", " "}


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abcd"), max_size=6))
def test_side_by_side_every_line_has_its_place_and_its_order(old, new):
    lines = [
        *(Line(sign=Sign.REMOVED, text=f"{word} x y", old=number) for number, word in enumerate(old, 1)),
        *(Line(sign=Sign.ADDED, text=f"{word} x y", new=number) for number, word in enumerate(new, 1)),
        Line(sign=Sign.SAME, text="end", old=len(old) + 1, new=len(new) + 1),
    ]
    (file,) = detailed([FileDiff(path="x.md", hunks=(Hunk(heading="", lines=tuple(lines)),))])
    rows = [row for hunk in file.hunks for row in side_by_side.rows(hunk)]
    left = [line.old for line, _ in rows if line is not None]
    right = [line.new for _, line in rows if line is not None]
    if old or new:
        assert left == list(range(1, len(old) + 2))
        assert right == list(range(1, len(new) + 2))
    assert all(a.partner == b.new for a, b in rows if a is not None and b is not None and a is not b)


def test_no_character_of_a_skill_paints_or_moves_anything():
    line = Line(sign=Sign.ADDED, text="a\x1b[8mb\tc\x07…", new=1, spans=((1, 2), (5, 7)))
    text, spans = visible_line(line, Screen(unicode=False))
    assert text == "a^[[8mb    c^G..."
    assert [text[start:end] for start, end in spans] == ["^[", "b    "]
    assert unpainted(painted(line, text, spans, COLOUR)) == text


def test_without_spans_and_without_colour_text_stays_as_it_is():
    line = Line(sign=Sign.ADDED, text="plain", new=1)
    assert visible_line(line, COLOUR) == ("plain", ())
    assert painted(line, "plain", (), Screen()) == "plain"
    assert painted(line, "plain", (), COLOUR) == "\x1b[32mplain\x1b[m"
