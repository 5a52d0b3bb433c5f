from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scripted import chance

from skillgit.calls.retries_and_limits import Window


def one_round(window, refused):
    """End as many attempts as the limit is, ``refused`` of them refused; return the new limit."""
    size = window.limit
    sent = [window.sent() for _ in range(size)]
    for number, stamp in enumerate(sent):
        window.ended(stamp, was_refused=number < refused)
    return window.limit


@given(st.integers(1, 200), st.lists(st.integers(0, 200), max_size=40))
def test_after_each_round_the_limit_follows_the_share_of_refusals(width, refusals):
    window = Window(width)
    for wished in refusals:
        before, refused = window.limit, min(wished, window.limit)
        expected = max(1, before * (before - refused) // before) if refused else min(width, before + 1)
        assert one_round(window, refused) == expected


@given(st.integers(1, 100), st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=400), st.integers())
def test_the_limit_stays_between_one_and_the_width_and_falls_only_by_refusals(width, script, seed):
    window, random, in_flight = Window(width), chance(seed), []
    for refused, more in script:
        in_flight += [window.sent() for _ in range(more)]
        if in_flight:
            before = window.limit
            window.ended(in_flight.pop(random.randrange(len(in_flight))), was_refused=refused)
            assert 1 <= window.limit <= width
            assert refused or window.limit >= before
            assert window.limit <= before + (not refused)


def test_a_provider_that_takes_sixteen_is_found_out_within_one_round():
    window = Window(64)
    assert one_round(window, 64 - 16) == 16
    assert one_round(window, 0) == 17
    assert one_round(window, 1) == 16


def test_massive_refusals_take_effect_before_the_round_has_ended():
    window = Window(64)
    sent = [window.sent() for _ in range(64)]
    for stamp in sent[:48]:
        window.ended(stamp, was_refused=True)
    assert window.limit == 16


def test_what_was_sent_before_the_round_began_does_not_count():
    window = Window(4)
    stale = [window.sent() for _ in range(3)]
    one_round(window, 2)
    for stamp in stale:
        window.ended(stamp, was_refused=True)
    assert window.limit == 2
    assert one_round(window, 0) == 3


def test_a_few_refusals_by_chance_do_not_make_it_collapse():
    window, random = Window(64), chance(5)
    seen = []
    for _ in range(20_000):
        window.ended(window.sent(), was_refused=random.random() < 0.02)
        seen.append(window.limit)
    assert sum(seen) / len(seen) > 20
    assert min(seen) > 8


def test_when_all_are_refused_one_goes_on_trying_and_the_limit_grows_again():
    window = Window(8)
    assert one_round(window, 8) == 1
    assert one_round(window, 1) == 1
    assert [one_round(window, 0) for _ in range(8)] == [2, 3, 4, 5, 6, 7, 8, 8]
