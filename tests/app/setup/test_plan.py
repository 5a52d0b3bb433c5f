from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.setup.plan import Bound, Plan, PlanRow, cap_notes, joined, total_of
from skillgit.domain.cost import Caps
from skillgit.view.plan import planned
from skillgit.view.surface import Screen

amounts = st.none() | st.floats(0, 1e6)
rows = st.builds(
    PlanRow,
    role=st.sampled_from(["target", "judge", "optimizer"]),
    stage=st.text(max_size=5),
    model=st.sampled_from(["a/b", "c/d", "e/f"]),
    calls=st.integers(0, 10**6),
    bound=st.sampled_from(Bound),
    tokens_in=st.integers(0, 10**9),
    tokens_out=st.integers(0, 10**9),
    usd=amounts,
    seconds=amounts,
)


def row(**more: object) -> PlanRow:
    usual = {"role": "target", "stage": "rollout", "model": "a/b", "calls": 40, "bound": Bound.EXACTLY}
    return PlanRow(**{**usual, "tokens_in": 12_000, "tokens_out": 4_000, "usd": 1.2, "seconds": 240.0, **more})


@given(st.lists(rows, max_size=6))
def test_what_is_known_is_summed_and_what_is_not_is_named(listed):
    total = total_of(listed)
    assert total.calls == sum(one.calls for one in listed)
    for name, unknown in (("usd", total.unpriced), ("seconds", total.untimed)):
        known = [getattr(one, name) for one in listed if getattr(one, name) is not None]
        is_known = not unknown or (sum(known) if name == "usd" else known)  # nothing and something unknown is unknown
        assert getattr(total, name) == (pytest.approx(sum(known)) if is_known else None)
        assert set(unknown) == {one.model for one in listed if getattr(one, name) is None}


@given(st.lists(st.sampled_from(Bound)))
def test_a_sum_is_bounded_as_its_parts_are(bounds):
    """Told for every pair of numbers that the bounds allow."""
    whole = joined(bounds)
    low, high = ({*bounds} <= {Bound.EXACTLY, Bound.AT_LEAST}), ({*bounds} <= {Bound.EXACTLY, Bound.AT_MOST})
    assert (whole is Bound.EXACTLY) == (low and high)
    assert (whole is Bound.AT_LEAST) == (low and not high)
    assert (whole is Bound.AT_MOST) == (high and not low)


@pytest.mark.parametrize(
    ("listed", "known", "told"),
    [
        ((row(),), 0, "40 calls, about 12k tokens in and 4000 out, $1.20, about 4 min"),
        (
            (row(), row(model="c/d", usd=None, bound=Bound.AT_MOST)),
            0,
            "at most 80 calls, about 24k tokens in and 8000 out, at least $1.20 (price of c/d unknown), about 8 min",
        ),
        (
            (row(seconds=None), row(model="c/d")),
            120,
            (
                "80 calls, about 24k tokens in and 8000 out, $2.40, at least 4 min (nothing measured yet with a/b);"
                " 120 of 560 rollouts are known already"
            ),
        ),
        (
            (row(usd=None, seconds=None, calls=1),),
            0,
            (
                "1 call, about 12k tokens in and 4000 out, price of a/b unknown, "
                "time unknown: nothing measured yet with a/b"
            ),
        ),
        ((), 560, "no call; 560 of 560 rollouts are known already"),
        ((), 0, "no call"),
    ],
)
def test_a_plan_is_told_in_one_sentence(listed, known, told):
    rollouts = 560 if known else 0
    assert Plan(command="ablate", total=total_of(listed), known=known, rollouts=rollouts).sentence == told


@pytest.mark.parametrize(
    ("caps", "usd", "told"),
    [
        (Caps(max_calls=40, max_tokens=16_000, max_usd=1.2), 1.2, ()),
        (Caps(max_calls=39), 1.2, ("the cap of 39 calls may end it early",)),
        (Caps(max_tokens=15_999), 1.2, ("the cap of 15999 tokens may end it early",)),
        (Caps(max_usd=1.0), 1.2, ("the cap of $1.0 may end it early",)),
        (Caps(max_usd=1.0), None, ("the cap of $1.0 cannot be kept: the price of a/b is unknown",)),
    ],
)
def test_a_plan_says_which_cap_it_may_reach(caps, usd, told):
    assert cap_notes(caps, total_of([row(usd=usd)])) == told


def test_a_plan_is_a_table_with_what_is_known_of_its_sum():
    listed = (
        row(),
        row(role="judge", stage="rollout", model="c/d", calls=55, usd=None, seconds=None),
        row(role="optimizer", stage="asked again", calls=7, bound=Bound.AT_MOST, usd=0.5, seconds=9.0),
    )
    facts = {"skill": "demo/v4", "conflict 1": "SKILL.md line 12\nours: a"}
    plan = Plan(
        command="ablate", facts=facts, stages=listed, total=total_of(listed), rollouts=60, known=20, notes=("a note",)
    )
    assert [line.rstrip() for line in planned(plan, Screen())] == [
        "skill        demo/v4",
        "conflict 1   SKILL.md line 12",
        "             ours: a",
        "",
        "role        stage         calls   tokens in    out             cost             time",
        "target      rollout          40         12k   4000            $1.20            4 min",
        "judge       rollout          55         12k   4000          unknown          unknown",
        "optimizer   asked again      ≤7         12k   4000            $0.50              9 s",
        "at most                     102         36k    12k   at least $1.70   at least 4 min",
        "",
        "20 of 60 rollouts are known already and cost nothing",
        "",
        "the price of c/d is unknown; set model.prices to count it",
        "",
        "how long it takes is not known: nothing was measured here yet with c/d",
        "",
        "a note",
        "",
        "nothing was run or written",
    ]
