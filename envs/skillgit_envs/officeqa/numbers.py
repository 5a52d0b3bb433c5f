"""Numbers as they stand in an answer: sign, brackets, currency, thousands and the unit word nearby."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

YEARS = range(1900, 2101)
NEARBY = 20
"""Characters on either side of a number in which its unit is looked for."""

_MONEY = "$€£¥"
_NUMBER = re.compile(
    r"(?P<open>\(\s?)?"
    r"(?:(?<![\w)])(?P<before>-)\s?)?"
    rf"(?P<money>[{_MONEY}]\s?)?"
    r"(?:(?<![\w)])(?P<behind>-))?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<!\d)\.\d+)"
    r"(?P<percent>\s?%)?"
    r"(?P<close>\s?\))?"
)
_UNITS = {
    "thousand": re.compile(r"\bthousands?\b|(?:^|(?<=^\s))k\b"),
    "million": re.compile(r"\bmillions?\b|(?:^|(?<=^\s))m\b"),
    "billion": re.compile(r"\bbillions?\b|(?:^|(?<=^\s))b\b"),
    "trillion": re.compile(r"\btrillions?\b"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number in a text.

    Attributes:
        value: What it says, not multiplied by its unit; the figure before a ``%``.
        unit: ``thousand``, ``million``, ``billion``, ``trillion`` or nothing.
        bare: Whether it stands without currency, per cent sign and unit.
    """

    value: Fraction
    unit: str
    bare: bool

    @property
    def like_a_year(self) -> bool:
        """Whether its value could be a year."""
        return self.value.denominator == 1 and int(self.value) in YEARS

    def near(self, other: Number, tolerance: Fraction) -> bool:
        """Say whether ``other`` is at most the share ``tolerance`` of this number away, in a unit that fits."""
        units = self.unit == other.unit or not (self.unit and other.unit)
        return units and close(self.value, other.value, tolerance)


def close(gold: Fraction, value: Fraction, tolerance: Fraction) -> bool:
    """Say whether ``value`` differs from ``gold`` by at most the share ``tolerance``; the limit is included."""
    return abs(gold - value) <= tolerance * abs(gold)


def plain(text: str) -> str:
    """Return ``text`` with every minus sign and narrow dash before a digit as a hyphen."""
    return re.sub(r"[\u2212\u2012\u2013](?=[\d.$€£¥])", "-", text)


def numbers(text: str) -> list[Number]:
    """Return the numbers of ``text`` in their order."""
    text = plain(text)
    matches = list(_NUMBER.finditer(text))
    return [_number(match, unit) for match, unit in zip(matches, _units(text, matches), strict=True)]


def without_numbers(text: str) -> str:
    """Return ``text`` with a blank in the place of each number."""
    return _NUMBER.sub(" ", plain(text))


def _number(match: re.Match[str], unit: str) -> Number:
    value = Fraction(match["digits"].replace(",", ""))
    bracketed = bool(match["open"] and match["close"])
    # Accounts write a loss in brackets, prose a year; a currency sign tells them apart.
    loss = bracketed and (bool(match["money"]) or value.denominator != 1 or int(value) not in YEARS)
    negative = bool(match["before"] or match["behind"] or loss)
    return Number(value=-value if negative else value, unit=unit, bare=not (match["money"] or match["percent"] or unit))


def _units(text: str, matches: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the unit of each number: the nearest word behind it, else before it, no other number between."""
    lower = text.lower()
    edges = [0, *(match.end() for match in matches)], [*(match.start() for match in matches), len(text)]
    gaps = [lower[start:end] for start, end in zip(*edges, strict=True)]
    for before, behind in pairwise(gaps):
        yield _first(behind[:NEARBY]) or _last(before[-NEARBY:])


def _first(gap: str) -> str:
    found = [(match.start(), unit) for unit, pattern in _UNITS.items() if (match := pattern.search(gap))]
    return min(found)[1] if found else ""


def _last(gap: str) -> str:
    # A single letter is a unit only right behind its number.
    found = [(m.start(), unit) for unit, pattern in _UNITS.items() for m in pattern.finditer(gap) if len(m[0]) > 1]
    return max(found)[1] if found else ""
