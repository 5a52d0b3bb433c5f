from __future__ import annotations

from dataclasses import replace

import event_strategies as strategies
import pytest
from hypothesis import given
from sample_run import transitions

from skillgit.domain.cost import Cost
from skillgit.domain.edit import Edit, Op
from skillgit.domain.event import FACTS, FACTS_OF, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Change, EditRecord
from skillgit.domain.untrusted.model_text import TITLE_LENGTH, clean_line, clean_paragraphs, clean_title


@given(strategies.texts)
def test_cleaning_is_done_once_and_for_all(text) -> None:
    assert clean_line(clean_line(text)) == clean_line(text)
    assert clean_title(clean_title(text)) == clean_title(text)
    assert clean_paragraphs(clean_paragraphs(text)) == clean_paragraphs(text)


@given(strategies.texts)
def test_clean_text_is_printable_lines(text) -> None:
    title, line = clean_title(text), clean_line(text)

    assert len(title) <= TITLE_LENGTH
    for clean in (title, line, clean_paragraphs(text).replace("\n\n", " ")):
        assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in clean)
        assert clean == clean.strip()
        assert "  " not in clean


def test_every_fact_is_tried() -> None:
    assert {*strategies.FACT_VALUES} == {*FACTS}


@given(strategies.events)
def test_an_event_made_of_an_event_is_equal(event) -> None:
    facts = {name: getattr(event, name) for name in FACTS_OF[event.kind].names}

    assert Event(kind=event.kind, **facts) == replace(event) == event


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Add a rule.", "Add a rule"),
        ("two\nlines", "two lines"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("a" * 61, f"{'a' * 59}…"),
        (f"{'word ' * 12}end", f"{'word ' * 10}word…"),
        ("", ""),
    ],
)
def test_titles(text, title) -> None:
    assert clean_title(text) == title


def test_paragraphs_stay_paragraphs() -> None:
    assert clean_paragraphs("a\nb\n \n\n c \r\n\r\n\td") == "a b\n\nc\n\nd"


def test_the_sample_stands_in_order() -> None:
    events = [sample.event for sample in transitions()]

    stands = [0, 1, 1, 1, 1, 2, 3, 3, 3]

    backwards = list(zip(events, stands, strict=True))[::-1]
    assert [event for event, _ in sorted(backwards, key=lambda pair: pair[0].order(pair[1]))] == events
    assert [event.step for event in events] == [0, 1, 2, 3, 3, 3, 4, 5, 5]
    assert events[4].kind == "slow-proposed"


def test_records_of_edits_do_not_repeat_their_text() -> None:
    record = EditRecord.of(Edit(op=Op.REPLACE, anchor="a secret", content="b"))

    assert len(record.anchor) == 8
    assert "secret" not in str(record)
    assert EditRecord.of(Edit(op=Op.APPEND, content="b")).anchor == ""


def test_an_event_that_asks_no_model_says_nothing_of_cost() -> None:
    costs = {sample.event.kind: sample.event.known_cost for sample in transitions()}
    assert costs[EventKind.SLOW_MERGED] is None
    assert costs[EventKind.SKIPPED].calls > 0


def test_changes_are_one_line() -> None:
    assert Change(sign="+", text=" a\n b ").text == "a b"


def test_costs_add_up() -> None:
    one = Cost(calls=1, tokens_in=2, tokens_out=3, usd=0.25, seconds=1.5)

    assert one + one == Cost(calls=2, tokens_in=4, tokens_out=6, usd=0.5, seconds=3.0)
    assert one + Cost() == one
