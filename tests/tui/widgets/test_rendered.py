from __future__ import annotations

from dataclasses import dataclass

from skillgit.tui.widgets.painted_lines import Part, emphasised
from skillgit.tui.widgets.paragraphs import disarmed, rendered
from skillgit.view.surface import Screen, Style


@dataclass(frozen=True)
class Inner:
    said: str


@dataclass(frozen=True)
class Facts:
    inner: tuple[Inner, ...]
    title: str
    number: int = 3


def test_facts_are_disarmed_all_the_way_down():
    facts = Facts((Inner("\x1b[31mred\x1b[m"),), "\x07bell")
    assert disarmed(facts, Screen()) == Facts((Inner("^[[31mred^[[m"),), "^Gbell")


def test_texts_keep_their_lines_and_lose_signs_that_the_terminal_lacks():
    assert disarmed(("a –\nb",), Screen(unicode=False)) == ("a -\nb",)  # noqa: RUF001 - a dash


def test_harmless_facts_stay_the_same_object():
    facts = Facts((Inner("plain [b]text[/b]"),), "title")
    assert disarmed(facts, Screen()) is facts


def test_colours_of_a_renderer_become_meanings():
    screen = Screen(colour=True)
    line = f"a {screen.paint(Style.REJECTED, 'bad')} end"
    assert rendered([line, ""]) == [(Part("a "), Part("bad", Style.REJECTED), Part(" end")), ()]


def test_a_later_mark_is_seen_over_an_earlier_one():
    marks = [((0, 4), "word"), ((2, 6), "hit")]
    assert list(emphasised("abcdefgh", 1, 8, "line", marks)) == [
        Part("b", "word"),
        Part("cd", "hit"),
        Part("ef", "hit"),
        Part("gh", "line"),
    ]
