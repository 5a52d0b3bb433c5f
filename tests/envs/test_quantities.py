"""A value is the same in every form in which people write it."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from number_forms import written

from skillgit_envs.quantities import same_value


@given(st.text(max_size=60))
def test_any_text_is_the_same_as_itself(text: str):
    assert same_value(text, text)


@given(written(), st.sampled_from(["", " cm", "%", " m^2"]))
def test_a_value_is_the_same_in_every_form(number: tuple[str, Decimal], unit: str):
    text, value = number
    assert same_value(f"{text}{unit}", f"{value:f}{unit}")
