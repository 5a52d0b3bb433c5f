"""Amounts as people read them: large numbers, dollars and lengths of time."""

from __future__ import annotations


def count(number: int) -> str:
    """Return a large number in at most four columns: ``481k``, ``2.1M``."""
    for limit, unit, suffix in ((10_000, 1, ""), (999_500, 1_000, "k"), (9_950_000, 100_000, "M")):
        if number < limit:
            amount = round(number / unit)
            return f"{amount / 10:.1f}M" if suffix == "M" else f"{amount}{suffix}"
    return f"{round(number / 1_000_000)}M"


def money(usd: float | None) -> str:
    """Return US dollars; ``unknown`` where a price is missing."""
    if usd is None:
        return "unknown"
    return f"${usd:.2f}" if usd >= 0.01 or usd == 0 else f"${usd:.4f}"  # noqa: PLR2004 - a cent


def duration(seconds: float) -> str:
    """Return a length of time: ``45 s``, ``12 min``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 120:  # noqa: PLR2004 - two minutes
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"  # noqa: PLR2004
