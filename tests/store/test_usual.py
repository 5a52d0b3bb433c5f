from __future__ import annotations

import event_strategies as strategies
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_run import transitions
from soaking import examples

from skillgit.domain.event import Accepted, Rejected
from skillgit.errors import SkillgitError
from skillgit.store import usual
from skillgit.store.codec import SlowText, decode_exactly, decode_with, encode

EVIDENCE = "3f0b6c1d" * 5
CANDIDATES = [sample.event for sample in transitions() if isinstance(sample.event, Accepted | Rejected)]


def slow(_skill):
    return SlowText(guidance="", memory="")


def told(read, text):
    """Return what ``read`` makes of a message, be it an event or an error."""
    try:
        return read(text, slow)
    except SkillgitError as error:
        return type(error), error.message


@pytest.mark.parametrize("event", CANDIDATES, ids=lambda event: event.title)
def test_candidates_of_a_trained_run_have_the_usual_form(event) -> None:
    assert usual.read_candidate(encode(event, EVIDENCE)) == (event, EVIDENCE)


@examples(3)
@given(strategies.events, st.sampled_from(["", EVIDENCE]))
def test_every_message_is_read_as_it_is_read_exactly(event, evidence) -> None:
    text = encode(event, evidence)

    assert decode_with(text, slow) == decode_exactly(text, slow)


@examples(4)
@given(st.sampled_from(CANDIDATES), st.data())
def test_a_message_that_somebody_changed_is_read_as_it_is_read_exactly(event, data) -> None:
    lines = encode(event, EVIDENCE).split("\n")
    place = data.draw(st.integers(0, len(lines) - 1))
    line = lines[place]
    match data.draw(st.sampled_from(["drop", "twice", "swap", "cut", "put"])):
        case "drop":
            del lines[place]
        case "twice":
            lines.insert(place, line)
        case "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[place], lines[other] = lines[other], line
        case "cut":
            lines[place] = line[: data.draw(st.integers(0, len(line)))]
        case _:
            start = data.draw(st.integers(0, len(line)))
            end = data.draw(st.integers(start, min(start + 3, len(line))))
            drawn = st.text("0123456789-+.eE_=% :\r\tÄ٣abcxyz", max_size=3)
            lines[place] = line[:start] + data.draw(drawn) + line[end:]
    text = "\n".join(lines)

    assert told(decode_with, text) == told(decode_exactly, text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Skillgit-Version: 1", "Skillgit-Base: 0"),
        ("policy=strict", "policy=kind"),
        ("accept_new_best", "accept_all"),
        ("split=selection", "split=valid_seen"),
        ("Skillgit-Patch: ", "Skillgit-Patch: merged=x "),
        ("\nSkillgit-Patch: ", "\nCo-authored-by: a <a@localhost>\nSkillgit-Patch: "),
        ("Skillgit-Format: 1", "Skillgit-Format: 2"),
    ],
)
def test_what_is_unusual_is_left_to_be_read_exactly(old, new) -> None:
    text = encode(next(event for event in CANDIDATES if isinstance(event, Accepted)), EVIDENCE)
    assert old in text
    changed = text.replace(old, new)

    assert usual.read_candidate(changed) is None
    assert told(decode_with, changed) == told(decode_exactly, changed)
