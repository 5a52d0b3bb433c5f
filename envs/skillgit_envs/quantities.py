"""Numbers as people write them, and values with units, read and compared by the same rules everywhere.

One sign, comma or point can mean two things. The rules are: a comma before exactly three digits parts thousands
("1,234" is 1234), any other single comma is a decimal comma ("12,5", "0,125", "1234,567"); a single point is a decimal
point ("1.234"), two or more before three digits each part thousands ("1.234.567"), and so does a point where a comma
follows ("1.234,5"); a blank or an apostrophe between groups of three digits parts thousands. Brackets make an amount of
money negative, as in accounts, and no other number.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

NUMBER_SCORER = "numbers/2"  # changes whenever a number can be read in another way
MINUS = "-\u2212\u2010\u2011\u2012\u2013\uff0d"
_BLANKS = " \u00a0\u2007\u2009\u202f'\u2019"
MONEY = r"(?:[A-Z]{0,3}[$€£¥₹₩₽]|(?:USD|EUR|GBP|JPY|CHF|INR|CNY|Rs\.?))"
NUMBER = re.compile(
    rf"""(?<![\w.]) (?P<open>\(\s?)? (?:(?P<sign>[{MINUS}+])|(?<![\d)%]\ )(?P<apart>[{MINUS}+])\s)?
    (?:(?P<money>{MONEY})\s?)? (?P<inner>[{MINUS}+])?
    (?P<digits>
        [1-9]\d{{0,2}}(?P<blank>[{_BLANKS}])\d{{3}}(?:(?P=blank)\d{{3}})*(?:[.,]\d+)?(?!\d)
      | (?P<commas>(?:[1-9]\d?(?:,\d\d)+,\d{{3}}|[1-9]\d{{0,2}}(?:,\d{{3}})+)(?:\.\d+)?(?!,?\d))
      | (?P<points>[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+,\d+|(?:\.\d{{3}}){{2,}})(?!\d))
      | (?<!\d,)\d+,\d+(?!,?\d)
      | \d+(?:\.\d+)? | \.\d+
    )
    (?P<power>[eE](?P<exponent>[{MINUS}+]?\d+)
      | \s?(?:[\u00d7x·*]|\\times|\\cdot)\s?10(?:\^\{{?(?P<raised>[{MINUS}+]?\d+)\}}?|(?P<above>[⁻⁺]?[⁰¹²³⁴-⁹]+))
    )?
    (?:\s?(?P<behind>{MONEY}))? (?P<close>\s?\))?""",
    re.VERBOSE,
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")


def decimal_of(match: re.Match[str]) -> Decimal | None:
    """Return the value of a match of ``NUMBER``; None beyond all bounds."""
    digits = match["digits"]
    if match["commas"]:
        digits = digits.replace(",", "")
    elif match["points"]:
        digits = digits.replace(".", "")
    digits = re.sub(f"[{_BLANKS}]", "", digits).replace(",", ".")
    power = match["exponent"] or match["raised"] or (match["above"] or "0").translate(RAISED)
    signs = (match["sign"], match["apart"], match["inner"])
    account = match["open"] and match["close"] and (match["money"] or match["behind"])
    is_negative = account or any(sign and sign != "+" for sign in signs)
    try:
        value = Decimal(f"{digits}e{re.sub(f'[{MINUS}]', '-', power)}")
    except InvalidOperation:  # an exponent beyond all bounds
        return None
    return -value if is_negative else value


_SIGN = re.compile(r"\\(?:mathrm|text|textrm|mathbf|operatorname|left|right|displaystyle|boxed)\b|\\[,;!: ]")
_DEGREES = re.compile(r"\^\{?\\circ\}?|\\circ|°|\bdegrees?\b|掳")  # the last is a degree sign that was decoded wrongly
_QUANTITY = re.compile(r"(?:area|volume|length|height|width|angle|x|y)\s*=\s*", re.IGNORECASE)
_SYNONYMS = {"units": "", "unit": "", "米": "m", "metres": "m", "meters": "m", "\\pi": "π", "pi": "π"}


def same_value(answer: str, gold: str) -> bool:
    """Say whether two values are the same: as numbers, with the unit if the right answer names one and the given does.

    >>> same_value("$24$ units", "24")
    True
    >>> same_value("50 cm", "0.5 m")
    False
    """
    lines = [line for line in gold.split("\n") if line.strip()]
    if len(lines) > 1:
        values = [entry for entry in re.split(r"[\n,;]|\band\b", answer) if entry.strip()]
        return len(values) == len(lines) and all(map(same_value, values, lines))
    answer_text, gold_text = _plain(answer), _plain(gold)
    if answer_text == gold_text:
        return True
    (number, unit), (right, right_unit) = _quantity(answer_text), _quantity(gold_text)
    return number is not None and number == right and (unit == right_unit or not unit or not right_unit)


def _plain(text: str) -> str:
    text = _DEGREES.sub("°", _SIGN.sub("", text.replace("$", "")))
    text = _QUANTITY.sub("", re.sub(r"[{}~]", "", text).strip(), count=1).strip().rstrip(".").casefold()
    for word, synonym in _SYNONYMS.items():
        text = re.sub(rf"(?<![a-z]){re.escape(word)}(?![a-z])", synonym, text)
    return re.sub(r"\s+", "", text)


def _quantity(text: str) -> tuple[Decimal | None, str]:
    """Return the number and its unit, before it or behind; no number for what is none, like an interval or a term."""
    match = NUMBER.match(text)
    if match is None or match["open"]:
        return None, ""
    unit = text[match.end("power" if match["power"] else "digits") :].strip()
    if re.search(r"[\d()\[\]+*/√=<>]", unit.replace("^2", "").replace("^3", "")):
        return None, ""
    return decimal_of(match), (match["money"] or "") + (unit.strip("°") if unit != "°" else "")
