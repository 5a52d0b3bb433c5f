"""What people type to filter a list, of runs and of events alike: ``score>.6``, ``step:3-9``, ``model=qwen``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, cast

from skillgit.domain.did_you_mean import did_you_mean, nearest
from skillgit.domain.score import Sign
from skillgit.errors import UsageError

_CONDITION: Final = re.compile(r"(?P<key>[A-Za-z][\w.-]*)\s*(?P<sign>>=|<=|=|>|<|:)\s*(?P<value>.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"[\d.]+")
_RANGE: Final = re.compile(r"(?P<low>[\d.]+)(?:-|\.\.)(?P<high>[\d.]+)")


class Condition(NamedTuple):
    """A key, a sign (``:`` is ``=``) and what the value is compared with."""

    key: str
    sign: Sign
    value: str

    def numbers(self) -> tuple[tuple[Sign, float], ...]:
        """Return the comparisons with numbers that it means: two of a range, as in ``step:3-9``.

        Raises:
            UsageError: The value is not a number.
        """
        between = _RANGE.fullmatch(self.value) if self.sign == "=" else None
        if between is not None:
            return (">=", self._number(between["low"])), ("<=", self._number(between["high"]))
        return ((self.sign, self._number(self.value)),)

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            hint = f"{self.key}>0.5, {self.key}:1-3"
            raise UsageError(f"{self.key} is compared with '{text}', which is not a number", hint=hint) from None


def condition_of(text: str, keys: Iterable[str], *, in_words: str = ":=") -> Condition | None:
    """Return the condition on one of ``keys`` that ``text`` is; None if it is a word to look for.

    Raises:
        UsageError: It compares something else: what is like a key, or has a sign that is not ``in_words``.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        return None
    names, sign = tuple(keys), match["sign"]
    if match["key"] in names:
        return Condition(match["key"], cast("Sign", "=" if sign == ":" else sign), match["value"])
    is_compared = sign not in in_words and (sign == "=" or _NUMBER.fullmatch(match["value"]) is not None)
    if match["value"] and (is_compared or nearest(match["key"], names)):
        hint = did_you_mean(match["key"], names, otherwise=f"what can be compared: {', '.join(names)}")
        raise UsageError(f"there is nothing called '{match['key']}' to filter by", hint=hint)
    return None
