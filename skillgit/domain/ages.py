"""How long ago something was, in words and in columns."""

from __future__ import annotations

from datetime import datetime

_AGES = ((60, 1, "s", "s"), (3600, 60, "m", "min"), (86400, 3600, "h", "h"), (14 * 86400, 86400, "d", "days"))
_WEEK, _YEAR = 7 * 86400, 365 * 86400


def age(moment: datetime, now: datetime) -> str:
    """Return how long ago ``moment`` was, in at most three columns: ``12m``."""
    seconds = max(0, int((now - moment).total_seconds()))
    for limit, unit, short, _ in _AGES:
        if seconds < limit:
            return f"{seconds // unit}{short}"
    return f"{seconds // _WEEK}w" if seconds < _YEAR else f"{seconds // _YEAR}y"


def ago(moment: datetime, now: datetime) -> str:
    """Return how long ago ``moment`` was in words: ``12 min ago``."""
    seconds = max(0, int((now - moment).total_seconds()))
    for limit, unit, _, word in _AGES:
        if seconds < limit:
            count = seconds // unit
            return f"{count} {'day' if word == 'days' and count == 1 else word} ago"
    if seconds < _YEAR:
        return f"{seconds // _WEEK} weeks ago"
    years = seconds // _YEAR
    return f"{years} year{'s' * (years > 1)} ago"
