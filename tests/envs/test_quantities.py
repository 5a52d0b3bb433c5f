"""A number is read back from every form in which people write it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.quantities import number_in, same_value

MINUS = ["-", "\u2212", "\u2012", "\u2013", "\uff0d", "\u2010", "\u2011"]
GROUPS = [",", ".", " ", "\u00a0", "\u2007", "\u2009", "\u202f", "'", "\u2019"]
DIGITS = st.integers(0, 10**12)
DECIMALS = st.sampled_from(["", "5", "25", "0", "70", "1234", "00005"])


def grouped(digits: str, mark: str, size: int = 3) -> str:
    """Return ``digits`` in groups: the last of three, those before of ``size``."""
    head, groups = digits[:-3], [digits[-3:]]
    while head:
        head, group = head[:-size], head[-size:]
        groups.insert(0, group)
    return mark.join(groups)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Decimal]:
    """Draw a number without a sign as it is written somewhere, and its value."""
    digits, decimals, mark = str(draw(DIGITS)), draw(DECIMALS), draw(st.sampled_from(["", "indian", *GROUPS]))
    point = "," if mark == "." else draw(st.sampled_from([".", ","])) if mark not in {",", "indian"} else "."
    if mark == "." and not decimals and len(digits) in {4, 5, 6}:
        mark = ""  # one point parts no thousands
    whole = grouped(digits, ",", 2) if mark == "indian" else grouped(digits, mark) if mark else digits
    return f"{whole}{point}{decimals}" if decimals else whole, Decimal(f"{digits}.{decimals or 0}")


@given(
    written(),
    st.sampled_from(["", *MINUS]),
    st.sampled_from(["{}", "it is {}", "about {} km", "{}%", "{}.", "= {}", "3 + 1 = {}, so", "**{}**"]),
)
def test_a_number_is_read_back_from_every_form(number: tuple[str, Decimal], minus: str, frame: str):
    text, value = number
    assert number_in(frame.format(f"{minus}{text}")) == float(-value if minus else value)


@given(written(), st.sampled_from(MINUS), st.sampled_from(["$", "\u20ac", "\u00a3", "US$", "CHF ", "EUR ", "Rs. "]))
def test_a_sign_belongs_to_its_amount_wherever_it_is_written(number: tuple[str, Decimal], minus: str, money: str):
    text, value = number
    forms = (
        f"{minus}{money}{text}",
        f"{minus} {money}{text}",
        f"{money}{minus}{text}",
        f"{minus}{text} {money}",
        f"({money}{text})",
        f"({text} {money.strip()})",
    )
    assert {form: number_in(f"a loss of {form} in all") for form in forms} == dict.fromkeys(forms, -float(value))
    assert number_in(f"{money}{text}") == number_in(f"({text})") == float(value)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_a_number_is_read_as_python_writes_it(value: float):
    assert number_in(f"it is {value!r} km") == value


@given(
    st.decimals(-999, 999, places=2),
    st.integers(-20, 20),
    st.sampled_from(["{}e{}", "{}E{}", "{} \u00d7 10^{}", "{}\\times 10^{{{}}}", "{}*10^{}", "{} x 10^{}"]),
)
def test_a_power_of_ten_multiplies(value: Decimal, power: int, form: str):
    assert number_in(form.format(value, power)) == pytest.approx(float(value) * 10.0**power)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("v2", None),
            ("", None),
            ("none", None),
            ("1e400", None),
            ("1e99999999999999999999", None),
            ("12 or 13", 13),
        ),
        *(("1,234", 1234), ("1.234", 1.234), ("12,5", 12.5), ("0,125", 0.125), ("1234,567", 1234.567), (".5", 0.5)),
        *(
            ("1,2,3", 3),
            ("2024-05-01", 1),
            ("3-5", 5),
            ("3 - 5", 5),
            ("3\u20135", 5),
            ("it is - 4", -4),
            ("5 x 10", 10),
        ),
        *(
            ("3.2\u00d710\u2075", 320_000),
            ("1.234.567", 1_234_567),
            ("1,234,567.5", 1_234_567.5),
            ("12,34,567", 1_234_567),
        ),
    ],
)
def test_what_is_ambiguous_is_read_by_the_stated_rule(text: str, value: float | None):
    assert number_in(text) == value


@given(st.text(max_size=60))
def test_any_text_has_a_number_or_none(text: str):
    number_in(text)
    assert same_value(text, text)


@given(written(), st.sampled_from(["", " cm", "%", " m^2"]))
def test_a_value_is_the_same_in_every_form(number: tuple[str, Decimal], unit: str):
    text, value = number
    assert same_value(f"{text}{unit}", f"{value:f}{unit}")
