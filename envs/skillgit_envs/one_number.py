"""One number as people mean it, with its unit: fractions, percentages, magnitudes in words, powers of ten, TeX.

A text is either one such number or it says what it is instead: a date, a time of day, a ratio, a range, several
numbers. Nothing is picked out of those, for the last number of a date is right for every date of that day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from skillgit_envs.quantities import MINUS, MONEY, NUMBER, RAISED, decimal_of

QUANTITY_SCORER = "one-number/1"  # changes whenever an answer can be read or compared in another way

PERCENT = "%"
_MOST_DIGITS = 308  # of a value; a float holds no more
_MOST_NOUNS = 2  # words behind an accepted answer: "12 red apples"
_AS_TEXT = "check it as a text: exact, normalized or regex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number with its unit; a percentage is the number before the sign."""

    value: Fraction
    unit: str = ""  # in one spelling; empty for none, and for a noun: 12 apples

    def equals(self, gold: Quantity, *, absolute: float = 0.0, relative: float = 0.0) -> bool:
        """Say whether this answer is the accepted one, within a tolerance; ``relative`` is a share of that.

        A unit may be left out, and another one is wrong. Where only one of the two is a percentage, 25 % is 0.25, and
        25 without the sign.
        """
        readings = [self.value]
        if self.unit != gold.unit:
            if self.unit and gold.unit:
                return False
            if self.unit == PERCENT:
                readings.append(self.value / 100)
            elif gold.unit == PERCENT:
                readings.append(self.value * 100)
        room = max(Fraction(absolute), Fraction(relative) * abs(gold.value))
        return any(abs(value - gold.value) <= room for value in readings)


class NotOneNumberError(ValueError):
    """A text is not one number; the text says what it is, and ``hint`` how that is checked."""

    def __init__(self, what: str, hint: str = _AS_TEXT) -> None:
        super().__init__(what)
        self.hint = hint


def gold_quantity(text: str) -> Quantity:
    """Return the one quantity that an accepted answer is; a NotOneNumberError for all else, and for words around it.

    >>> gold_quantity("1 1/2 km")
    Quantity(value=Fraction(3, 2), unit='km')
    """
    plain = _plain(text).strip().rstrip(".")
    tokens = list(_tokens(plain))
    if not tokens:
        raise NotOneNumberError("has no number")
    if name := next((token.other for token in tokens if token.other), ""):
        raise NotOneNumberError(f"is {name}")
    if len(tokens) > 1:
        if len(tokens) == 2 and _BETWEEN.fullmatch(plain[tokens[0].end : tokens[1].start]):  # noqa: PLR2004
            hint = "give both in 'answers', or the middle of a range with 'abs'"
            raise NotOneNumberError("is a range, or two numbers", hint)
        raise NotOneNumberError(f"has {len(tokens)} numbers", "write the one that is right, or check it as a text")
    (token,) = tokens
    before, behind = plain[: token.start].strip(" =("), plain[token.end :].strip(" )")
    if behind.startswith("!"):
        raise NotOneNumberError("is a term")
    if before or len(behind.split()) > _MOST_NOUNS or token.quantity is None:
        raise NotOneNumberError("has words around its number", "write the number, and its unit, alone")
    return token.quantity


def answer_quantity(text: str) -> Quantity:
    """Return the one quantity that an answer gives; a NotOneNumberError if it gives none, several or something else.

    Of several numbers that in the last box counts, or the only one behind the last sign or word for a result.

    >>> answer_quantity("2 + 1 = 3").value
    Fraction(3, 1)
    """
    boxes = _BOX.findall(text)
    plain = _plain(boxes[-1] if boxes else text)
    tokens = list(_tokens(plain))
    if len({token.quantity for token in tokens}) > 1:
        cues = [cue.end() for cue in _CUE.finditer(plain)]
        tails = ([token for token in tokens if token.start >= cue] for cue in reversed(cues))
        tokens = next(filter(None, tails), tokens)
    if not tokens:
        raise NotOneNumberError("has no number")
    if name := next((token.other for token in tokens if token.other), ""):
        raise NotOneNumberError(f"gives {name}")
    quantities = {token.quantity for token in tokens}
    quantity = tokens[0].quantity
    if len(quantities) > 1 or quantity is None:
        raise NotOneNumberError("gives several numbers")
    return quantity


_BETWEEN = re.compile(rf"\s*(?:[{MINUS}\u2014~]|to|\.\.\.?|…|and|or)\s*")
_BOX = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_CUE = re.compile(r"=|≈|→|\b(?:is|are|was|were|equals?|answer|result|total)\b|:(?!\d)", re.IGNORECASE)

_WRAPPED = re.compile(r"\\(?:text|textrm|textbf|mathrm|mathbf|operatorname|boxed)\s*\{([^{}]*)\}")
_SPACING = re.compile(r"\\(?:left|right|displaystyle|[()\[\]])|\\[,;!: ]")
_DEGREE = re.compile(r"\^\{?\\circ\}?|\\circ")
_BOLD = re.compile(r"(?<![\w*])\*\*(?=\S)([^*]+)(?<=\S)\*\*(?!\w)|`([^`]+)`")
_MATHS = re.compile(r"\$(\\?[^$\s](?:[^$]*[^$\s])?)\$(?!\d)")
_SIGNS = {"{,}": ",", "\\%": "%", "\\times": "×", "\\cdot": "·", "\\pm": "±", "\\leq": "≤", "\\geq": "≥"}  # noqa: RUF001


def _plain(text: str) -> str:
    """Return ``text`` without the marks of TeX, Markdown and Python around and in numbers."""
    text = _DEGREE.sub("°", _SPACING.sub("", _WRAPPED.sub(r"\1", text)))
    for mark, sign in _SIGNS.items():
        text = text.replace(mark, sign)
    text = _BOLD.sub(lambda match: match[1] or match[2], text)
    text = _MATHS.sub(r"\1", text).replace("\\$", "$")
    return re.sub(r"(?<=\d)_(?=\d{3})", "", text)


class _Token(NamedTuple):
    start: int
    end: int
    quantity: Quantity | None
    other: str = ""  # what it is unless it is a quantity


_OTHERS = (
    (re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}(?![\d])"), "a date"),
    (re.compile(r"\d{1,2}([-/.])\d{1,2}\1(?:\d{4}|\d\d)(?![\d])"), "a date"),
    (re.compile(r"\d+(?:\s?:\s?\d+)+(?:\.\d+)?"), "a time of day or a ratio"),
    (re.compile(r"\d+(?:-\d+){2,}"), "a number with dashes"),
    (re.compile(r"(?!\d{1,3}(?:\.\d{3}){3})\d{1,3}(?:\.\d{1,3}){3}(?![.\d])"), "an address or a version"),
)
_MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_MONTH_BEFORE = re.compile(rf"\b(?:{_MONTHS})\.?\s$")
_MONTH_BEHIND = re.compile(rf"(?:st|nd|rd|th)?\s(?:of\s)?(?:{_MONTHS})\b")
_MOST_DAYS = 31
_HALF_DAY = re.compile(r"\s?(?:[ap]\.?m\b\.?|o['\u2019]clock)", re.IGNORECASE)
_VULGAR = {
    "½": Fraction(1, 2),
    "⅓": Fraction(1, 3),
    "⅔": Fraction(2, 3),
    "¼": Fraction(1, 4),
    "¾": Fraction(3, 4),
    "⅕": Fraction(1, 5),
    "⅖": Fraction(2, 5),
    "⅗": Fraction(3, 5),
    "⅘": Fraction(4, 5),
    "⅙": Fraction(1, 6),
    "⅚": Fraction(5, 6),
    "⅛": Fraction(1, 8),
    "⅜": Fraction(3, 8),
    "⅝": Fraction(5, 8),
    "⅞": Fraction(7, 8),
}
_FRACTION = re.compile(
    rf"""(?<![\w.,/]) (?P<sign>[{MINUS}+]\s?)? (?:
        (?:(?P<whole>\d+)(?:[ \u00a0]|\s?\+\s?|(?=\\)))? (?:
            (?P<up>\d+)\s?[/\u2044\u2215]\s?(?P<down>\d+)
          | \\[dt]?frac\s*\{{\s*(?P<up_tex>[{MINUS}]?\d+)\s*\}}\s*\{{\s*(?P<down_tex>\d+)\s*\}}
          | \\[dt]?frac\s*(?P<up_digit>\d)(?P<down_digit>\d)
        )
      | (?P<before>\d+)?\s?(?P<vulgar>[{"".join(_VULGAR)}])
    ) (?![\d/\u2044:^]|\.\d|,\d)""",
    re.VERBOSE,
)
_POWER_OF_TEN = re.compile(
    rf"""(?<![\w.,]) (?P<sign>[{MINUS}+])? 10\s?
    (?: (?:\^|\*\*)\s?\{{?(?P<raised>[{MINUS}+]?\d+)\}}? | (?P<above>[⁻⁺]?[⁰¹²³⁴-⁹]+) )""",
    re.VERBOSE,
)
_TERM = re.compile(r"\s?(?:\^|\*\*|[⁰¹²³⁴-⁹])|\s?±|\s?[×·*+/]\s?(?=[\d(\\])")  # noqa: RUF001
_REST_OF_TERM = re.compile(r"[\d.,^*⁰¹²³⁴-⁹±×·+/ (){}]*")  # noqa: RUF001
_MAYBE = re.compile(rf"[\d.({MINUS}+\\{''.join(_VULGAR)}]|{MONEY}")


def _tokens(text: str) -> Iterator[_Token]:
    """Yield each number in ``text``, and what looks like one and is none."""
    at = 0
    while (candidate := _MAYBE.search(text, at)) is not None:
        token = _other(text, candidate.start()) or _number(text, candidate.start())
        at = candidate.start() + 1 if token is None else max(token.end, candidate.start() + 1)
        if token is not None:
            yield token


def _other(text: str, at: int) -> _Token | None:
    if text[max(at - 1, 0) : at].isalnum():
        return None
    for pattern, name in _OTHERS:
        if (match := pattern.match(text, at)) is not None:
            return _Token(at, match.end(), None, name)
    return None


def _number(text: str, at: int) -> _Token | None:
    value: Fraction | None
    money = ""
    if (match := _FRACTION.match(text, at)) is not None:
        value = _fraction(match)
    elif (match := _POWER_OF_TEN.match(text, at)) is not None:
        value = _power_of_ten(match)
    elif (match := NUMBER.match(text, at)) is not None:
        decimal = decimal_of(match)
        is_bounded = decimal is not None and abs(decimal.adjusted()) <= _MOST_DIGITS
        value, money = Fraction(decimal or 0) if is_bounded else None, match["money"] or match["behind"] or ""
    else:
        return None
    end = match.end()
    if value is None:
        return _Token(at, end, None, "a number beyond all bounds")
    if (term := _TERM.match(text, end)) is not None:
        rest = _REST_OF_TERM.match(text, term.end())
        return _Token(at, term.end() if rest is None else rest.end(), None, "a term")
    month = _MONTH_BEHIND.match(text, end)
    if value <= _MOST_DAYS and (month or _MONTH_BEFORE.search(text[max(at - 12, 0) : at])):
        return _Token(at, month.end() if month else end, None, "a date")
    if half := _HALF_DAY.match(text, end):
        return _Token(at, half.end(), None, "a time of day")
    if re.search(r"[<>≤≥]\s*$", text[max(at - 8, 0) : at]):
        return _Token(at, end, None, "a bound")
    return _with_unit(text, at, end, value, money)


def _fraction(match: re.Match[str]) -> Fraction | None:
    if match["vulgar"]:
        value = Fraction(match["before"] or 0) + _VULGAR[match["vulgar"]]
    else:
        up = re.sub(f"[{MINUS}]", "-", match["up"] or match["up_tex"] or match["up_digit"])
        down = int(match["down"] or match["down_tex"] or match["down_digit"])
        if not down:
            return None
        value = Fraction(match["whole"] or 0) + Fraction(int(up), down)
    return value if (match["sign"] or "+").startswith("+") else -value


def _power_of_ten(match: re.Match[str]) -> Fraction | None:
    exponent = int(re.sub(f"[{MINUS}]", "-", match["raised"] or match["above"].translate(RAISED)))
    if abs(exponent) > _MOST_DIGITS:
        return None
    value = Fraction(10) ** exponent
    return value if (match["sign"] or "+") == "+" else -value


_MAGNITUDES = {
    "dozen": 12,
    "hundred": 10**2,
    "thousand": 10**3,
    "lakh": 10**5,
    "million": 10**6,
    "mn": 10**6,
    "mio": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "bn": 10**9,
    "mrd": 10**9,
    "trillion": 10**12,
    "tn": 10**12,
}
_LETTERS = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9}
_MAGNITUDE = re.compile(rf"[ \u00a0-]?(?P<word>{'|'.join(_MAGNITUDES)})s?\b\.?", re.IGNORECASE)
_LETTER = re.compile(r"(?P<word>[kKB]|\s?M)(?![\w/^²³])")


def _with_unit(text: str, start: int, end: int, value: Fraction, money: str) -> _Token:
    """Return the token of ``value`` with the magnitude and the unit behind it."""
    if ordinal := re.compile(r"(?:st|nd|rd|th)\b").match(text, end):
        return _Token(start, ordinal.end(), Quantity(value=value))
    while word := _MAGNITUDE.match(text, end):
        value, end = value * _MAGNITUDES[word["word"].casefold()], word.end()
    if letter := _LETTER.match(text, end):
        value, end = value * _LETTERS[letter["word"].strip()], letter.end()
    if not money and (behind := _MONEY_BEHIND.match(text, end)) is not None:
        money, end = behind["money"], behind.end()
    if money:
        name = money.strip()
        return _Token(start, end, Quantity(value=value, unit=_CURRENCIES.get(name.upper(), name)))
    for match in filter(None, (pattern.match(text, end) for pattern in (_PHRASE, _COMPOUND, _SINGLE))):
        unit = _unit(match["unit"])
        is_preposition = unit == match["unit"] == "in" and re.match(r"\s\w", text[match.end() :])
        if unit and not is_preposition:
            return _Token(start, match.end(), Quantity(value=value, unit=unit))
    suffix = re.compile(r"\w+").match(text, end)
    noun = re.compile(r"\s(\w+)").match(text, end)
    if suffix and suffix[0].casefold() != "x":
        return _Token(start, suffix.end(), None, "a number with letters")
    if noun and not noun[1].isalpha() and not noun[1][0].isdigit():
        return _Token(start, noun.end(), None, "a number with letters")
    return _Token(start, end, Quantity(value=value))


_SPELLINGS = {
    "%": ("percent", "per cent", "pct", "percents"),
    "pp": ("percentage point", "percentage points"),
    "m": ("metre", "meter"),
    "km": ("kilometre", "kilometer"),
    "cm": ("centimetre", "centimeter"),
    "mm": ("millimetre", "millimeter"),
    "mi": ("mile",),
    "ft": ("foot", "feet"),
    "in": ("inch", "inches"),
    "yd": ("yard",),
    "ha": ("hectare",),
    "L": ("litre", "liter", "l"),
    "mL": ("millilitre", "milliliter", "ml"),
    "g": ("gram", "gramme"),
    "kg": ("kilogram", "kilogramme", "kilo"),
    "mg": ("milligram",),
    "t": ("tonne", "ton"),
    "lb": ("pound", "lbs"),
    "oz": ("ounce",),
    "s": ("second", "sec"),
    "min": ("minute",),
    "h": ("hour", "hr"),
    "d": ("day",),
    "wk": ("week",),
    "mo": ("month",),
    "yr": ("year",),
    "°": ("degree",),
    "K": ("kelvin",),
    "°C": ("celsius", "degree celsius", "degrees celsius"),
    "°F": ("fahrenheit", "degree fahrenheit", "degrees fahrenheit"),
    "W": ("watt",),
    "kW": ("kilowatt",),
    "V": ("volt",),
    "A": ("ampere", "amp"),
    "J": ("joule",),
    "N": ("newton",),
    "Pa": ("pascal",),
    "Hz": ("hertz",),
    "B": ("byte",),
    "kB": ("kilobyte",),
    "MB": ("megabyte",),
    "GB": ("gigabyte",),
    "km/h": ("kph", "kmh"),
    "mi/h": ("mph",),
    "$": ("dollar",),
    "€": ("euro",),
    "¢": ("cent",),
}
_WORDS = {word: unit for unit, words in _SPELLINGS.items() for word in words}
_BASES = re.findall(
    r"\S+", "m g s A K mol cd Hz N Pa J W C V F L t h min d lb oz ft in yd mi B bit Wh eV cal bar rad Ω"
)
_PREFIXES = ("", "k", "M", "G", "T", "c", "m", "µ", "n", "p", "h")
_SYMBOLS = {prefix + base for prefix in _PREFIXES for base in _BASES} | set(_SPELLINGS) | {"‰"}
_ONE = r"(?:(?:square|cubic|sq\.?|cu\.?)\s)?(?:°\s?[CF]?|[%‰¢]|[A-Za-zµμΩ]+)(?:\^?\{?-?[23]\}?(?!\w)|[²³])?"
_SINGLE = re.compile(rf"[ \u00a0-]?(?P<unit>{_ONE})(?!\w)", re.IGNORECASE)
_COMPOUND = re.compile(
    rf"[ \u00a0-]?(?P<unit>{_ONE}(?:(?:\s?/\s?|\s?·\s?|\s?\*\s?|\sper\s){_ONE})+)(?!\w)", re.IGNORECASE
)
_PHRASE = re.compile(
    rf"[ \u00a0]?(?P<unit>{'|'.join(sorted((word for word in _WORDS if ' ' in word), reverse=True))})\b", re.IGNORECASE
)
_MONEY_BEHIND = re.compile(rf"\s?(?P<money>{MONEY})(?!\w)")
_CURRENCIES = {"US$": "$", "USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "RS": "₹", "RS.": "₹"}
_AREA = re.compile(r"(?:(?P<square>square|sq\.?)|cubic|cu\.?)\s", re.IGNORECASE)


def _unit(text: str) -> str:
    """Return a unit in one spelling; empty for words that are none."""
    words = " ".join(text.split())
    if words.casefold() in _WORDS:
        return _WORDS[words.casefold()]
    parts = re.split(r"\s?([/·*])\s?|\s(per)\s", words, flags=re.IGNORECASE)
    spellings = []
    for part in filter(None, parts):
        if part in "/·*" or part.casefold() == "per":
            spellings.append("·" if part in "·*" else "/")
            continue
        area = _AREA.match(part)
        power = "" if area is None else "2" if area["square"] else "3"
        name, exponent = re.sub(r"[\^{}]", "", part[area.end() if area else 0 :]), ""
        if digits := re.search(r"-?[23]$|[²³]$", name):
            name, exponent = name[: digits.start()], digits[0].translate(RAISED)
        symbol = _symbol(name.replace(" ", "").replace("μ", "µ"))
        if not symbol:
            return ""
        spellings.append(symbol + (exponent or power))
    return "".join(spellings)


def _symbol(name: str) -> str:
    if name in _SYMBOLS:
        return name
    word = name.casefold()
    return _WORDS.get(word) or (_WORDS.get(word.removesuffix("s"), "") if word.endswith("s") else "")
