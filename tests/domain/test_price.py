"""Unknown is never a number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skillgit
from skillgit.app.setup.plan import Bound, PlanRow, total_of
from skillgit.app.setup.plan import price as price_of_plan
from skillgit.domain.cost import Cost, price
from skillgit.view import numbers
from skillgit.view.json_values import named_values
from skillgit.view.surface import Screen

PRODUCT = Path(skillgit.__file__).parent
amounts = st.floats(min_value=0, max_value=1e6)


@given(amounts, st.integers(min_value=0, max_value=9))
def test_nothing_known_is_said_as_that_and_a_part_known_is_at_least_that(usd, unpriced):
    words = price(usd, unpriced)
    if unpriced and not usd:
        assert words == "unknown price"
    else:
        assert words.replace("<", "").startswith("at least $" if unpriced else "$")
    assert price(None, unpriced) == "unknown price"


@given(amounts, st.integers(min_value=0, max_value=9))
def test_programs_read_null_where_no_price_is_known(usd, unpriced):
    cost = Cost(calls=9, usd=usd, unpriced=unpriced)
    value = named_values(cost)["usd"]
    assert (value is None) == bool(unpriced and not usd)
    assert named_values({"cost": cost})["cost"]["usd"] == value  # type: ignore[call-overload, index]


def test_a_line_of_cost_never_has_a_zero_for_what_is_unknown():
    words = numbers.cost(Cost(calls=3, unpriced=3), Screen())
    assert "unknown price" in words
    assert "$" not in words


@pytest.mark.parametrize("usd", [0.0, None])
def test_a_plan_with_a_free_model_and_one_of_unknown_price_has_no_dollars(usd):
    free, unknown = (
        PlanRow(
            role=role, stage="s", model=role, calls=1, bound=Bound.EXACTLY, tokens_in=1, tokens_out=1, usd=dollars,
            seconds=None,
        )
        for role, dollars in (("optimizer", usd), ("target", None))
    )  # fmt: skip
    assert "$" not in price_of_plan(total_of([free, unknown]))


TEMPLATES = sorted(path for folder in ("web", "report") for path in (PRODUCT / folder).rglob("*.html"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_page_prints_the_dollars_of_calls_without_asking_whether_they_are_known(path):
    """Sums of calls are printed by ``price``; ``money`` is for what is known, as a cap or a step of a priced run."""
    allowed = {"blocks.html": 1, "live.html": 0}
    assert len(re.findall(r"usd \| money", path.read_text())) == allowed.get(path.name, 0)


@pytest.mark.parametrize(("usd", "unpriced", "known"), [(0.0, 3, None), (0.5, 3, 0.5), (0.0, 0, 0.0)])
def test_what_other_programs_read_has_no_number_for_the_unknown(usd, unpriced, known):
    assert Cost(calls=3, usd=usd, unpriced=unpriced).known_usd == known
