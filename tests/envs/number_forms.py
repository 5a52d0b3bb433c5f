"""Numbers as people write them, for hypothesis."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

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
