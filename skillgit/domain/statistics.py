"""Statistics of paired outcomes: tests, intervals and power. Everything is exact or has a fixed stream of chance."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from hashlib import shake_256
from math import ceil, comb, exp, fsum, lgamma, log, log1p, sqrt
from operator import add

from skillgit.lazy import loaded_on_use

with loaded_on_use():
    import statistics

LEVEL = 0.05  # the level at which a gain counts as more than chance, unless another one is set
EXACT_ITEMS = 24  # up to so many items the sign-flip test counts every assignment of signs; above, it samples them
FLIPS = 9_999  # assignments of signs that the sign-flip test samples
RESAMPLES = 2_000  # samples with replacement that a bootstrap interval rests on
_UPPER = 0.975  # where the middle 95 % end
_BYTE = 8
_NEGLIGIBLE = 6.0  # standard deviations from the mean beyond which a binomial is taken for nothing


def sign_test(fixes: int, breaks: int) -> float:
    """Return the one-sided exact sign-test p-value: P(X >= fixed) for X ~ Binomial(fixed + broken, 1/2).

    This is the exact form of McNemar's test for paired pass/fail outcomes; without changes it is 1.

    >>> sign_test(fixes=8, breaks=1)
    0.01953125
    """
    n = fixes + breaks
    return float(sum(comb(n, k) for k in range(fixes, n + 1)) / 2**n)


CHANCE = "may be chance"


def may_be_chance(gain: float, items: int, *, graded: bool = False) -> bool:
    """Say whether no paired test can tell a mean ``gain`` on ``items`` from chance, however it is spread over them.

    Of passes and failures the gain says how many more items were fixed than broken; none broken is the best case. Of
    ``graded`` scores every item may have gained. Where the number of items is not known, nothing is said.

    >>> may_be_chance(3 / 9, items=9), may_be_chance(6 / 9, items=9)
    (True, False)
    """
    fixes = items if graded else round(gain * items)
    return items > 0 and sign_test(max(fixes, 0), 0) > LEVEL


def too_few_items(items: int, sides: int = 1) -> str:
    """Say that no outcome on so few ``items`` passes the exact sign test; empty where one does, and for no item.

    The best that ``n`` items can show is a gain on all of them, whose p is ``sides`` / 2**n. Below 5 items that is more
    than :data:`LEVEL` for the one-sided test of gates and comparisons, and below 6 for a two-sided one, so that an
    interval would only look certain. Every surface that prints a gain asks here.

    >>> too_few_items(3), too_few_items(5), too_few_items(5, sides=2)
    ('3 items: too few to tell', '', '5 items: too few to tell')
    """
    if items <= 0 or sides * sign_test(items, 0) <= LEVEL:
        return ""
    return f"{items} {'item' if items == 1 else 'items'}: too few to tell"


def binomial_test(successes: int, n: int, share: float) -> float:
    """Return the two-sided exact binomial p-value: twice the smaller tail of Binomial(n, share), at most 1."""
    part = Fraction(share).limit_denominator(10**9)
    hits, whole = part.numerator, part.denominator
    ways = [comb(n, k) * hits**k * (whole - hits) ** (n - k) for k in range(n + 1)]
    return min(1.0, float(Fraction(2 * min(sum(ways[: successes + 1]), sum(ways[successes:])), whole**n)))


def binomial_tail(successes: int, n: int, share: float) -> float:
    """Return the one-sided binomial p-value: P(X >= successes) for X ~ Binomial(n, share).

    >>> round(binomial_tail(successes=3, n=3, share=0.25), 6)
    0.015625
    """
    return min(1.0, fsum(binomial(n, count, share) for count in range(max(0, successes), n + 1)))


def sign_flip_test(differences: Sequence[float]) -> float:
    """Return the one-sided p-value of the sign-flip permutation test of paired differences.

    It is the chance of a sum at least as great as the observed one if the sign of every difference were a coin flip. Up
    to ``EXACT_ITEMS`` items it is exact; above, it is estimated from ``FLIPS`` assignments of signs. Which of the two
    depends on the number of items alone, and the signs of an item on its place alone. So the p-value is a function of
    the data, and it never rises when a difference does: bounds on differences are bounds on p.

    There is one difference per item; 0 for an item that did not change or has no score on a side.
    """
    values = [abs(difference) for difference in differences]
    # One power of two makes whole numbers of all floats, so that their sums are exact.
    ratios = [value.as_integer_ratio() for value in values]
    common = max((denominator for _, denominator in ratios), default=1)
    sizes = [numerator * (common // denominator) for numerator, denominator in ratios]
    # Flipping signs is choosing which differences count as gains: the sums compare as the sums of the gains do.
    gain = sum(size for size, difference in zip(sizes, differences, strict=True) if difference > 0)
    if len(differences) <= EXACT_ITEMS:
        # halves of the subsets are listed, and pairs of them counted that reach the gain
        nonzero = [size for size in sizes if size]
        half = len(nonzero) // 2
        first, second = sorted(_subset_sums(nonzero[:half])), sorted(_subset_sums(nonzero[half:]))
        count = sum(len(second) - bisect_left(second, gain - total) for total in first)
        return float(count / 2 ** len(nonzero))
    hits = sum(total >= gain for total in _sampled_sums(sizes))
    return (1 + hits) / (1 + FLIPS)


def _subset_sums(sizes: Sequence[int]) -> list[int]:
    sums = [0]
    for size in sizes:
        sums += [total + size for total in sums]
    return sums


def _sampled_sums(sizes: Sequence[int]) -> list[int]:
    """Return the sum of the chosen ``sizes`` for every sampled choice; a byte of chance chooses among eight places."""
    totals = [0] * FLIPS
    for start in range(0, len(sizes), _BYTE):
        group = sizes[start : start + _BYTE]
        if any(group):
            table = _subset_sums([*group, *[0] * (_BYTE - len(group))])
            totals = list(map(add, totals, map(table.__getitem__, _chance(start // _BYTE))))
    return totals


@lru_cache(maxsize=256)
def _chance(group: int) -> bytes:
    return shake_256(f"sign-flip {group}".encode("utf-8", "surrogatepass")).digest(FLIPS)


def wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share of ``n`` items; (0, 1) for none.

    A mean that rounding put above 1 counts as 1.

    >>> low, high = wilson_interval(0.7, 40)
    >>> f'{low:.2f} to {high:.2f}'
    '0.55 to 0.82'
    """
    if n <= 0:
        return 0.0, 1.0

    share = min(1.0, share)
    z = statistics.NormalDist().inv_cdf(_UPPER)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean; for paired outcomes ``values`` are their differences."""
    n = len(values)
    if n == 0:
        return 0.0, 0.0
    chance = shake_256(b"bootstrap").digest(4 * n * RESAMPLES)
    samples = (
        [int.from_bytes(chance[at : at + 4], "big") % n for at in range(start, start + 4 * n, 4)]
        for start in range(0, len(chance), 4 * n)
    )
    means = sorted(fsum(values[index] for index in sample) / n for sample in samples)
    tail = round((1 - _UPPER) * RESAMPLES)
    return means[tail], means[RESAMPLES - 1 - tail]


def paired_interval(gains: Sequence[float], sides: int = 1) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of paired ``gains``, each from -1 to 1; None where there are too few.

    It is the bootstrap's, except where all gains are equal: resamples of equal gains are equal too, and ``+1.00 to
    +1.00`` would look certain. There, as many further items may be otherwise as Wilson's interval allows for none of
    so many, each by as much as scores can be.

    >>> low, high = paired_interval([1.0] * 10)
    >>> f'{low:.2f} to {high:.2f}'
    '0.44 to 1.00'
    """
    if not gains or too_few_items(len(gains), sides):
        return None
    if len(set(gains)) > 1:
        return bootstrap_interval(gains)
    gain, rest = gains[0], wilson_interval(0.0, len(gains))[1]
    return gain - rest * (gain + 1.0), gain + rest * (1.0 - gain)


def paired_power(n: int, *, fixes: float, breaks: float, alpha: float) -> float:
    """Return the chance that the paired test at ``alpha`` finds a true gain."""
    changing = fixes + breaks
    if changing <= 0.0 or n <= 0:
        return 0.0
    centre, spread = n * changing, _NEGLIGIBLE * sqrt(n * changing) + _NEGLIGIBLE
    counts = range(max(1, int(centre - spread)), min(n, int(centre + spread)) + 1)
    tails = (_tail(count, about_fixes_needed(count, alpha), fixes / changing) for count in counts)
    return min(1.0, fsum(binomial(n, count, changing) * tail for count, tail in zip(counts, tails, strict=True)))


def minimum_detectable_effect(
    n: int, *, alpha: float, power: float = 0.8, breaks: float = 0.0, fixable: float = 1.0
) -> float | None:
    """Return the smallest true gain that the paired test at ``alpha`` finds with the chance ``power``.

    It is a share of the items; None if none that is possible is found so often. ``breaks`` is the chance of an item to
    be broken all the same, ``fixable`` the share of the items that can be fixed at all.
    """
    most = min(fixable, 1.0 - breaks)
    if most <= breaks or paired_power(n, fixes=most, breaks=breaks, alpha=alpha) < power:
        return None
    low, high = breaks, most
    for _ in range(16):
        middle = (low + high) / 2
        enough = paired_power(n, fixes=middle, breaks=breaks, alpha=alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high - breaks


@cache
def fixes_needed(count: int, alpha: float) -> int:
    """Return the least fixed among ``count`` items that is a gain at ``alpha``; ``count`` + 1 if there is none."""
    fixes, ways, tail = count, 1, 1
    numerator, denominator = alpha.as_integer_ratio()
    limit = (numerator << count) // denominator
    while fixes >= 0 and tail <= limit:
        ways = ways * fixes // (count - fixes + 1)
        tail += ways
        fixes -= 1
    return fixes + 1


_EXACT = 1000


def about_fixes_needed(count: int, alpha: float) -> int:
    """Return :func:`fixes_needed`; for many items, whose exact sum takes long, a number within one of it."""
    if count <= _EXACT or not 0.0 < alpha < 1.0:
        return fixes_needed(count, alpha)

    return ceil((count + 1 + statistics.NormalDist().inv_cdf(1 - alpha) * sqrt(count)) / 2)


def _tail(n: int, least: int, p: float) -> float:
    centre, spread = n * p, _NEGLIGIBLE * sqrt(n * p * (1 - p)) + _NEGLIGIBLE
    first, last = max(least, int(centre - spread)), min(n, int(centre + spread))
    return fsum(binomial(n, count, p) for count in range(first, last + 1))


def binomial(n: int, k: int, p: float) -> float:
    if p <= 0.0 or p >= 1.0:
        return float(k == (n if p >= 1.0 else 0))
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(p) + (n - k) * log1p(-p))
