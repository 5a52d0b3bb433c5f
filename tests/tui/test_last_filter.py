from __future__ import annotations

from rich.cells import cell_len
from rich.segment import ControlType, Segment
from textual.color import Color

from skillgit.tui.theme import LastFilter

BLACK = Color(0, 0, 0)


def filtered(text: str) -> str:
    (segment,) = LastFilter().apply([Segment(text)], BLACK)
    return segment.text


def test_what_a_widget_forgot_does_not_reach_the_terminal() -> None:
    hostile = "a\x1b[31m\x1b]0;x\x07b\r\u202ec\u200b\x9b\U000e0041d"
    assert filtered(hostile) == "a[31m]0;xbcd"
    assert cell_len(filtered(hostile)) == cell_len(hostile)


def test_text_and_codes_of_the_screen_pass() -> None:
    plain = "│ 👩\u200d💻 naïve \u0646\u200c\u0647 ❤\ufe0f "
    control = Segment("\x1b[2J", None, [(ControlType.CLEAR,)])
    assert filtered(plain) == plain
    assert LastFilter().apply([control], BLACK) == [control]
