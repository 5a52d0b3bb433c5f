"""Two numbers are equal in every form in which people write them, two others in none; all else is no number."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from number_forms import written

from skillgit_envs.one_number import NotOneNumberError, Quantity, answer_quantity, gold_quantity

MINUS = ["-", "\u2212", "\u2012", "\u2013", "\uff0d", "\u2010", "\u2011"]


def number(text: str) -> float | None:
    try:
        return float(answer_quantity(text).value)
    except NotOneNumberError:
        return None


@given(
    written(),
    st.sampled_from(["", *MINUS]),
    st.sampled_from(["{}", "it is {}", "about {} km", "{}%", "{}.", "= {}", "3 + 1 = {}, so", "**{}**"]),
)
def test_a_number_is_read_back_from_every_form(pair: tuple[str, Decimal], minus: str, frame: str):
    text, value = pair
    assert number(frame.format(f"{minus}{text}")) == float(-value if minus else value)


@given(written(), st.sampled_from(MINUS), st.sampled_from(["$", "\u20ac", "\u00a3", "US$", "CHF ", "EUR ", "Rs. "]))
def test_a_sign_belongs_to_its_amount_wherever_it_is_written(pair: tuple[str, Decimal], minus: str, money: str):
    text, value = pair
    forms = (
        f"{minus}{money}{text}",
        f"{minus} {money}{text}",
        f"{money}{minus}{text}",
        f"{minus}{text} {money}",
        f"({money}{text})",
        f"({text} {money.strip()})",
    )
    assert {form: number(f"a loss of {form} in all") for form in forms} == dict.fromkeys(forms, -float(value))
    assert number(f"{money}{text}") == number(f"({text})") == float(value)


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False, min_value=-1e15, max_value=1e15))
def test_a_number_is_read_as_python_writes_it(value: float):
    assert number(f"it is {value!r} km") == value


@given(
    st.decimals(-999, 999, places=2),
    st.integers(-20, 20),
    st.sampled_from(["{}e{}", "{}E{}", "{} \u00d7 10^{}", "{}\\times 10^{{{}}}", "{}*10^{}", "{} x 10^{}"]),
)
def test_a_power_of_ten_multiplies(value: Decimal, power: int, form: str):
    assert number(form.format(value, power)) == pytest.approx(float(value) * 10.0**power)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("v2", None),
            ("", None),
            ("none", None),
            ("1e400", None),
            ("1e99999999999999999999", None),
            ("12 or 13", None),
        ),
        *(("1,234", 1234), ("1.234", 1.234), ("12,5", 12.5), ("0,125", 0.125), ("1234,567", 1234.567), (".5", 0.5)),
        *(
            ("1,2,3", None),
            ("2024-05-01", None),
            ("3-5", None),
            ("3 - 5", None),
            ("3\u20135", None),
            ("it is - 4", -4),
            ("5 x 10", None),
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
    assert number(text) == value


@st.composite
def values(draw: st.DrawFn) -> Fraction:
    """Draw a number that most forms can write: a whole one, a decimal, or a fraction."""
    if draw(st.booleans()):
        return Fraction(draw(st.integers(-9999, 9999)), draw(st.sampled_from([1, 2, 4, 5, 8, 10, 100])))
    return Fraction(draw(st.integers(-50, 50)) * 10 ** draw(st.integers(0, 9)))


def forms_of(value: Fraction) -> list[str]:
    """Return the forms in which people write ``value``."""
    decimal = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    sign, size = "-" if value < 0 else "", abs(value)
    up, down, whole = size.numerator, size.denominator, int(size)
    forms = [decimal, f"{Decimal(decimal):,f}", f"{float(value)!r}", f"{Decimal(decimal):e}", f"\\boxed{{{decimal}}}"]
    forms += [f"{sign}\\frac{{{up}}}{{{down}}}", f"{sign}{up}/{down}", f"${sign}\\tfrac{{{up}}}{{{down}}}$"]
    forms += [
        f"{decimal} apples",
        f"{decimal}\\times10^{{0}}",
        f"**{decimal}**",
        f"{decimal}e0",
        f"\u2212{decimal[1:]}" if sign else decimal,
    ]
    if whole and size.denominator > 1:
        forms += [f"{sign}{whole} {up - whole * down}/{down}", f"{sign}{whole}\\frac{{{up - whole * down}}}{{{down}}}"]
    for word, factor in (
        ("thousand", 10**3),
        ("k", 10**3),
        ("million", 10**6),
        ("M", 10**6),
        ("billion", 10**9),
        ("bn", 10**9),
    ):
        part = value / factor
        if value and (part * 100).denominator == 1:
            text = f"{Decimal(part.numerator) / Decimal(part.denominator):f}"
            forms.append(f"{text} {word}" if len(word) > 1 else f"{text}{word}")
    return forms


@given(st.data(), values(), values())
def test_equal_numbers_are_equal_in_every_form_and_others_in_none(
    data: st.DataObject, first: Fraction, second: Fraction
):
    written_first = data.draw(st.sampled_from(forms_of(first)))
    again, other = data.draw(st.sampled_from(forms_of(first))), data.draw(st.sampled_from(forms_of(second)))
    gold = gold_quantity(written_first)
    assert gold.value == first
    assert answer_quantity(again).equals(gold)
    assert answer_quantity(again) == answer_quantity(f"The answer is {again}.")
    assume(first != second)
    assert not answer_quantity(other).equals(gold)


UNITS = {
    "m2": ["m^2", "m²", "m2", "square metres", "sq. m"],
    "km/h": ["km/h", "kph", "kilometres per hour", "km per hour"],
    "%": ["%", "percent", "per cent", "\\%"],
    "kg": ["kg", "kilograms", "kilos"],
    "$": ["$", "dollars", "USD"],
    "°C": ["°C", "degrees Celsius", "^\\circ C"],
    "L": ["L", "litres", "liters"],
    "min": ["min", "minutes"],
}


@given(st.data(), values(), values())
def test_a_unit_is_the_same_in_every_form_and_another_one_is_wrong(
    data: st.DataObject, first: Fraction, second: Fraction
):
    unit, another = data.draw(st.sampled_from(sorted(UNITS))), data.draw(st.sampled_from(sorted(UNITS)))
    number_text = forms_of(first)[0]
    gold = gold_quantity(f"{number_text} {data.draw(st.sampled_from(UNITS[unit]))}")
    assert (gold.value, gold.unit) == (first, unit)
    spelled = data.draw(st.sampled_from(UNITS[another]))
    assert answer_quantity(f"{number_text} {spelled}").equals(gold) is (unit == another)
    assert answer_quantity(number_text).equals(gold), "a unit may be left out"
    if first != second and not (unit == "%" and first == second * 100):
        assert not answer_quantity(f"{forms_of(second)[0]} {spelled}").equals(gold)
        assert not answer_quantity(forms_of(second)[0]).equals(gold)


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        ("3/4", ["0.75", "3/4", "75%", "\\frac34", "¾", "6/8"], ["1/4", "4", "3", "3:4", "34"]),
        ("1 1/2", ["1.5", "3/2", "1½"], ["1/2", "2", "11/2", "1 and 1/2 or 2"]),
        ("42 m^2", ["42", "42 m²", "42 square metres"], ["17 m^2", "2", "42 m", "42 m^3", "42 kg"]),
        ("3 million", ["3,000,000", "3e6", "3M", "3 million people"], ["3", "3 thousand", "3 billion"]),
        ("12%", ["12", "12 percent", "0.12"], ["1.2", "12 km", "12 percentage points", "112"]),
        ("0.25", ["25%", "1/4", ".25"], ["25", "2.5%", "250%"]),
        ("1,234.5", ["1234.5", "1 234,5", "1_234.5"], ["1.2345", "234.5"]),
        ("6.02 \u00d7 10^23", ["6.02e23", "6.02 \\times 10^{23}"], ["6.02", "23", "10^23", "6.02 \u00d7 10^22"]),
        ("10^6", ["1000000", "1 million"], ["6", "10", "10^5"]),
        ("-4", ["\u22124", "it is -4"], ["4", "3-4"]),
        (
            "5",
            ["5", "5!", "It is 5, not more."],
            ["4 or 5", "5:30", "2024-05-05", "5 of 6", "5^2", "2^5", ">5", "v5", "5a", "5 ± 1"],
        ),
    ],
)
def test_an_answer_is_right_if_it_means_the_accepted_number(gold: str, right: list[str], wrong: list[str]):
    accepted = gold_quantity(gold)

    def is_right(answer: str) -> bool:
        try:
            return answer_quantity(answer).equals(accepted, relative=1e-9)
        except NotOneNumberError:
            return False

    assert {answer: is_right(answer) for answer in (*right, *wrong)} == {
        **dict.fromkeys(right, True),
        **dict.fromkeys(wrong, False),
    }


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        *(("12:30", "a time of day or a ratio"), ("8 am", "a time of day"), ("3:1", "a time of day or a ratio")),
        *(("2024-05-01", "a date"), ("1/5/2024", "a date"), ("4 May 1871", "a date"), ("May 4", "a date")),
        *(
            ("3-5", "a range, or two numbers"),
            ("3 to 5", "a range"),
            ("12 or 13", "two numbers"),
            ("3 of 4", "2 numbers"),
        ),
        *(("7.10**3", "a term"), ("2^10", "a term"), ("5 ± 1", "a term"), ("5!", "a term"), ("<5", "a bound")),
        *(("about 12", "words around"), ("12 as they said it would be", "words around"), ("12a", "with letters")),
        *(("192.168.0.1", "an address"), ("1/0", "beyond all bounds"), ("1e400", "beyond all bounds")),
        *(("none", "no number"), ("", "no number"), ("v2", "no number"), ("1, 2, 3", "3 numbers")),
    ],
)
def test_what_is_not_one_number_is_no_accepted_answer_and_says_why(gold: str, said: str):
    with pytest.raises(NotOneNumberError, match=re.escape(said)) as error:
        gold_quantity(gold)
    assert error.value.hint


@given(st.text(max_size=60) | st.text("0123456789.,:/-+^*$%eExkM ()\\{}frac½ m", max_size=30))
def test_any_text_is_one_number_or_not(text: str):
    for read in (gold_quantity, answer_quantity):
        try:
            assert isinstance(read(text), Quantity)
        except NotOneNumberError as error:
            assert str(error)  # noqa: PT017 - both ends are right
