"""Whether a skill still helps: how seldom one that is worth its place is given up, and how often the rest is found."""

from __future__ import annotations

from itertools import count
from math import comb
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import soak

from skillgit.domain.statistics import sign_test
from skillgit.domain.usefulness import POWER, WORTH, Advice, Usefulness, items_needed, judge

ALPHA = 0.05
SHARES = st.integers(0, 20).map(lambda twentieth: twentieth / 20)


def judged(gains, room=0.5, alpha=ALPHA):
    fixes, breaks = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    return judge(gains, p=sign_test(fixes, breaks), p_worse=sign_test(breaks, fixes), room=room, alpha=alpha)


def drawn(random: Random, n: int, fixes: float, breaks: float) -> list[float]:
    draws = (random.random() for _ in range(n))
    return [1.0 if draw < fixes else -1.0 if draw < fixes + breaks else 0.0 for draw in draws]


@given(n=st.integers(1, 60), breaks=SHARES, more=SHARES)
def test_a_skill_that_is_worth_its_place_is_given_up_as_seldom_as_the_level_says(n, breaks, more):
    """The chance is exact, a sum over all outcomes, for every number of items and every share of fixed and broken."""
    fixes = breaks + WORTH + more
    if fixes + breaks > 1.0:
        return
    chance = sum(
        comb(n, up) * comb(n - up, down) * fixes**up * breaks**down * max(0.0, 1 - fixes - breaks) ** (n - up - down)
        for up in range(n + 1)
        for down in range(n + 1 - up)
        if judged([1.0] * up + [-1.0] * down + [0.0] * (n - up - down)).action is not Advice.KEEP
    )
    assert chance <= ALPHA + 1e-9


@pytest.mark.parametrize("n", [29, soak(80), soak(items_needed(ALPHA))])
def test_so_is_one_whose_gains_are_graded(n):
    """By simulation, without the help of the paired test; four standard errors above the level are chance."""
    random, times = Random(n), 4000  # noqa: S311 - no secret
    for low, high in ((-0.3, 0.5), (0.0, 0.2), (-0.8, 1.0)):  # each a mean of WORTH
        samples = ([random.uniform(low, high) for _ in range(n)] for _ in range(times))
        alarms = sum(judge(gains, p=1, p_worse=1, room=0, alpha=ALPHA).action is not Advice.KEEP for gains in samples)
        assert alarms / times <= ALPHA + 4 * (ALPHA * (1 - ALPHA) / times) ** 0.5


@pytest.mark.parametrize(
    ("fixes", "breaks", "answer"),
    [
        (0.15, 0.05, Usefulness.HELPS),
        (0.05, 0.05, Usefulness.NO_DIFFERENCE),
        (0.02, 0.25, Usefulness.HARMS),
    ],
)
def test_on_the_items_that_it_plans_it_says_so_four_times_out_of_five(fixes, breaks, answer):
    random, times, n = Random(7), 2000, items_needed(ALPHA)  # noqa: S311 - no secret
    found = sum(judged(drawn(random, n, fixes, breaks)).answer == answer for _ in range(times))
    # what tells no difference from chance may be a gain or a loss at the level instead
    assert found / times >= POWER - (2 * ALPHA if answer is Usefulness.NO_DIFFERENCE else 0.03)


def test_no_change_on_any_item_needs_few_items_and_no_item_says_anything():
    answers = (judged([0.0] * n).answer for n in count())
    assert next(n for n, answer in enumerate(answers) if answer is Usefulness.NO_DIFFERENCE) == 45
    assert judged([]).answer is Usefulness.CANNOT_TELL


@pytest.mark.parametrize(("room", "action"), [(WORTH, Advice.RETRAIN), (WORTH - 0.01, Advice.RETIRE)])
def test_what_the_model_leaves_to_gain_decides_between_training_and_removal(room, action):
    for gains in ([0.0] * 60, [-1.0] * 20 + [0.0] * 40):
        assert judged(gains, room=room).action is action
    assert judged([1.0] * 20 + [0.0] * 40, room=room).action is Advice.KEEP


def chances(n: int, fixes: float, breaks: float):
    """Yield every count of fixed and broken items with its chance, by the trinomial distribution."""
    for up in range(n + 1):
        for down in range(n + 1 - up):
            chance = comb(n, up) * comb(n - up, down) * fixes**up * breaks**down
            if chance > 1e-30:
                yield up, down, chance * (1 - fixes - breaks) ** (n - up - down)


@pytest.mark.parametrize(("worth", "n"), [(0.1, 155), (0.2, 50), (0.5, 16)])
def test_the_items_that_it_plans_are_the_fewest_by_a_sum_over_every_outcome(worth, n):
    """McNemar's exact test finds the gain, and the mean of seven bets against it, multiplied out, rules it out."""

    def is_gain(up: int, down: int) -> bool:
        return sum(comb(up + down, heads) for heads in range(up, up + down + 1)) <= ALPHA * 2 ** (up + down)

    def is_ruled_out(up: int, down: int, same: int) -> bool:
        bets = [step / 8 / (1 - worth) for step in range(1, 8)]
        won = (
            (1 + bet * (worth - 1)) ** up * (1 + bet * (worth + 1)) ** down * (1 + bet * worth) ** same for bet in bets
        )
        return sum(won) / 7 >= 1 / ALPHA

    def is_enough(items: int) -> bool:
        found = sum(chance for up, down, chance in chances(items, worth + 0.05, 0.05) if is_gain(up, down))
        nothing = chances(items, 0.05, 0.05)
        excluded = sum(chance for up, down, chance in nothing if is_ruled_out(up, down, items - up - down))
        return min(found, excluded) >= POWER

    assert items_needed(ALPHA, worth) == n
    assert is_enough(n)
    assert not is_enough(n - 1)


def test_the_stricter_the_level_the_more_items_it_takes():
    assert items_needed(0.01) > items_needed(ALPHA) > items_needed(0.2) > 1
