from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN, elide, elided_turns, failing_turn, trajectory_text

turns = st.lists(
    st.builds(
        Turn,
        role=st.sampled_from(["user", "assistant", "tool"]),
        content=st.integers(0, 3000).map(lambda size: "x" * size),
    ),
    max_size=60,
)


def conversation(length: int, size: int = 500, failing: int | None = None) -> tuple[Turn, ...]:
    return tuple(
        Turn(
            role="tool" if number % 2 else "assistant",
            content=f"turn {number} " + "x" * size + (" Error: no such file" if number == failing else ""),
        )
        for number in range(length)
    )


def text(shown: list[Turn | str]) -> str:
    return "\n".join(turn if isinstance(turn, str) else turn.content for turn in shown)


@given(found=turns, room=st.integers(300, 20_000))
def test_what_is_shown_fits_and_what_is_left_out_is_counted(found, room):
    shown = list(elided_turns(found, room))
    kept = [turn for turn in shown if isinstance(turn, Turn)]
    gaps = [int(re.match(r"\[\.\.\. (\d+) turn", turn).group(1)) for turn in shown if isinstance(turn, str)]
    assert len(kept) + sum(gaps) == len(found)
    assert sum(len(turn.content) for turn in kept) <= room + 100 * (len(kept) + 1)


@given(found=turns)
def test_a_conversation_that_fits_is_shown_whole(found):
    assert list(elided_turns(found, sum(len(turn.content) for turn in found) + 240)) == found


def test_head_tail_and_the_failing_turn_stay():
    shown = text(list(elided_turns(conversation(101, failing=51), 3000)))
    for place in (0, 1, 50, 51, 100):
        assert f"turn {place} " in shown, place
    assert "turn 30 " not in shown
    assert "Error: no such file" in shown
    assert shown.count("turns left out") == 2


def test_without_trouble_the_last_turn_of_the_target_counts_as_failing():
    assert failing_turn(conversation(4)) == 2
    assert failing_turn((Turn(role="user", content="Error?"),)) == 0
    assert failing_turn(()) == 0


def test_short_turns_stay_whole_beside_a_long_one():
    found = (Turn(role="user", content="q" * 9000), Turn(role="assistant", content="the short answer"))
    shown = list(elided_turns(found, 2000))
    assert shown[1] == found[1]
    assert "characters left out" in shown[0].content


def test_a_long_trajectory_keeps_to_its_budget_whatever_its_number_of_turns():
    for length, size in ((2, 50_000), (100, 500), (1000, 90)):
        trajectory = Trajectory(item_id="i", turns=conversation(length, size), answer="a" * 9000, feedback="f" * 9000)
        shown = trajectory_text(trajectory, 1000)
        assert len(shown) < 1000 * CHARACTERS_PER_TOKEN * 1.5
        assert "left out" in shown


def test_elision_keeps_both_ends_and_says_how_much_is_missing():
    assert elide("abc", 3) == "abc"
    assert elide("a" * 50 + "b" * 50, 30) == "a" * 20 + "\n[... 70 characters left out ...]\n" + "b" * 10
