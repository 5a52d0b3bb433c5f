"""Owns when two cells hold the same value, by the rules of SpreadsheetBench (``evaluation/evaluation.py``, v0.1).

Numbers, truth values and texts that are numbers are rounded to two places; a date with time becomes the whole day of
its serial number; a time of day loses the last three signs of its text; an empty text is no value. Then both must be of
one type and equal: there is no tolerance.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import TypeAlias

Value: TypeAlias = str | float | datetime | time | timedelta
"""What a cell holds; a cell that holds nothing is not told."""
_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - cells have no time zone
_DAY_S = 86_400
_PLACES = 2


def read_value(kind: str, text: str) -> Value:
    """Return the value of a cell from its text and kind: ``number text datetime time microseconds``.

    Raises:
        ValueError: The text is no value of that kind.
    """
    if kind == "number":
        return float(text)
    if kind == "datetime":
        return datetime.fromisoformat(text)
    if kind == "time":
        return time.fromisoformat(text)
    return timedelta(microseconds=int(text)) if kind == "microseconds" else text


def same(one: Value | None, other: Value | None) -> bool:
    """Say whether two cells hold the same value; None is a cell without one."""
    ours, theirs = normalised(one), normalised(other)
    return type(ours) is type(theirs) and ours == theirs


def normalised(value: Value | None) -> Value | None:
    """Return a value in the form in which it is compared."""
    if isinstance(value, datetime):
        since = value - _EPOCH
        return round(since.days + since.seconds / _DAY_S, 0)
    if isinstance(value, time):
        return str(value)[:-3]
    if isinstance(value, str):
        return _number(value) if value else None
    return round(float(value), _PLACES) if isinstance(value, int | float) else value


def _number(text: str) -> str | float:
    try:
        return round(float(text), _PLACES)
    except ValueError:
        return text
