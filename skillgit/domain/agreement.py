"""How far graders agree: one with itself, two with each other, and one with given labels.

A result that is graded several times is a *unit*, the list of the scores that it got. The units of one item belong
together, as the criteria of one rubric do, so that every interval resamples items and not single scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_256
from itertools import combinations, product
from math import exp, fsum, lgamma, log, sqrt
from statistics import fmean

from skillgit.domain.statistics import RESAMPLES

Unit = Sequence[float]
"""The scores that one result got from one grader, one for each grading."""
Interval = tuple[float, float]
LEAST_ALPHA = 0.667
"""Below it, "discard the data" (Krippendorff, Content Analysis, 2004, p. 241); from .800 on they are reliable."""
WIDTH = 1.96 * sqrt(2)
"""Standard deviations of a score that are the 95 % half-width of the difference of two."""
_TAIL = 0.025
_SAME = 1e-9  # scores that differ by less are one


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    value: float | None = None  # absent where it is not defined, such as without two gradings of one result
    interval: Interval | None = None  # 95 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two gradings of the same result agree.

    Attributes:
        items: Items that were graded at least twice, by one grader or by both.
        same: How often two gradings give exactly the same score.
        difference: Mean absolute difference of two gradings.
        coefficient: Agreement beyond chance: 1 is perfect, 0 that of chance. Absent where all scores are equal.
    """

    items: int
    same: Estimate
    difference: Estimate
    coefficient: Estimate


def agreement_with_itself(items: Iterable[Sequence[Unit]]) -> Agreement:
    """Return how far repeated gradings agree; the coefficient is Krippendorff's alpha for interval data.

    Alpha is 1 - D_o / D_e, with squared differences within units over those of all scores (Krippendorff, Content
    Analysis, 2004, chapter 11). Units may have different numbers of gradings. For passes and failures it equals alpha
    for nominal data.

    >>> round(agreement_with_itself([[(1.0, 1.0)], [(0.0, 0.0)], [(1.0, 0.0)]]).coefficient.value, 4)
    0.4444
    """
    clusters = [[unit for unit in units if len(unit) > 1] for units in items]
    clusters = [units for units in clusters if units]
    pairs = [[pair for unit in units for pair in combinations(unit, 2)] for units in clusters]
    trials = sum(len(unit) - 1 for units in clusters for unit in units)
    return _agreement(pairs, [_sums(units) for units in clusters], _alpha, trials)


def agreement_between(items: Iterable[Sequence[tuple[Unit, Unit]]]) -> Agreement:
    """Return how far two graders agree; the coefficient is Cohen's kappa, with weights for graded scores.

    The weight of a disagreement is its square (Cohen, 1968, "Weighted kappa", Psychological Bulletin 70), which for
    passes and failures is kappa without weights (Cohen, 1960). Of several gradings every pair counts alike.

    >>> passes = [(1.0, 1.0), (1.0, 1.0), (0.0, 0.0), (1.0, 0.0)]
    >>> agreement_between([[([judge], [label])] for judge, label in passes]).coefficient.value
    0.5
    """
    clusters = [[(ours, theirs) for ours, theirs in units if ours and theirs] for units in items]
    pairs = [[pair for unit in units for pair in product(*unit)] for units in clusters if units]
    return _agreement(pairs, [_cross_sums(cluster) for cluster in pairs], _kappa, len(pairs))


Disagreement = tuple[float, float]
"""The mean squared difference that was actual, and the one that chance would make."""


def _agreement(
    pairs: Sequence[Sequence[tuple[float, float]]],
    rows: Sequence[Sequence[float]],
    disagreement: Callable[[Sequence[float]], Disagreement],
    trials: int,
) -> Agreement:
    if not pairs:
        return Agreement(items=0, same=Estimate(), difference=Estimate(), coefficient=Estimate())
    same = [fmean(abs(a - b) < _SAME for a, b in cluster) for cluster in pairs]
    differences = [fmean(abs(a - b) for a, b in cluster) for cluster in pairs]
    same_interval = share_interval(same, trials)
    actual, by_chance = disagreement([fsum(column) for column in zip(*rows, strict=True)])
    spread, coefficients = _resampled(rows, differences, disagreement)
    if not any(differences):
        # Without a disagreement no sample has one: what may be missed is what the exact interval leaves open.
        open_share = 1.0 - same_interval[0]
        spread = [0.0, open_share]
        coefficients = [1.0 - open_share / by_chance, 1.0] if by_chance > _SAME else []
    return Agreement(
        items=len(pairs),
        same=Estimate(value=fmean(same), interval=same_interval),
        difference=Estimate(value=fmean(differences), interval=_percentiles(spread)),
        coefficient=Estimate(
            value=1.0 - actual / by_chance if by_chance > _SAME else None, interval=_percentiles(coefficients)
        ),
    )


def _sums(units: Sequence[Unit]) -> tuple[float, ...]:
    """Return what the units of an item add to alpha: scores, disagreement within units, sum and sum of squares."""
    within = fsum(2 * sum((a - b) ** 2 for a, b in combinations(unit, 2)) / (len(unit) - 1) for unit in units)
    scores = [score for unit in units for score in unit]
    return float(len(scores)), within, fsum(scores), fsum(score * score for score in scores)


def _alpha(sums: Sequence[float]) -> Disagreement:
    count, within, total, squares = sums
    return within / count, 2 * (count * squares - total * total) / (count * (count - 1))


def _cross_sums(pairs: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """Return what an item adds to kappa: its weight, then mean square of differences, means, and means of squares."""
    ours, theirs = zip(*pairs, strict=True)
    squares = [fmean(value * value for value in side) for side in (ours, theirs)]
    return 1.0, fmean((a - b) ** 2 for a, b in pairs), fmean(ours), fmean(theirs), *squares


def _kappa(sums: Sequence[float]) -> Disagreement:
    count, actual, ours, theirs, our_squares, their_squares = sums
    return actual / count, (our_squares + their_squares) / count - 2 * ours * theirs / count**2


def _resampled(
    rows: Sequence[Sequence[float]],
    differences: Sequence[float],
    disagreement: Callable[[Sequence[float]], Disagreement],
) -> tuple[list[float], list[float]]:
    """Return mean difference and coefficient of bootstrap samples of items (Efron, 1979), as far as it is defined."""
    columns, coefficients, means = list(zip(*rows, strict=True)), list[float](), list[float]()
    for sample in bootstrap_samples(len(rows)):
        means.append(sum(map(differences.__getitem__, sample)) / len(sample))
        actual, by_chance = disagreement([sum(map(column.__getitem__, sample)) for column in columns])
        if by_chance > _SAME:
            coefficients.append(1.0 - actual / by_chance)
    return means, coefficients if len(coefficients) > RESAMPLES / 2 else []


@lru_cache(maxsize=4)
def bootstrap_samples(count: int) -> tuple[Sequence[int], ...]:
    """Return samples of ``count`` places with replacement, always the same ones."""
    chance = shake_256(b"agreement").digest(4 * count * RESAMPLES)
    indexes = [int.from_bytes(chance[at : at + 4], "big") % count for at in range(0, len(chance), 4)]
    return tuple(indexes[start : start + count] for start in range(0, len(indexes), count))


def _percentiles(values: Sequence[float]) -> Interval | None:
    """Return the 95 % percentile interval of the values of samples; None without any."""
    if not values:
        return None
    ranking, cut = sorted(values), round(_TAIL * len(values))
    return ranking[cut], ranking[len(ranking) - 1 - cut]


def mean_with_interval(values: Sequence[float]) -> Estimate:
    """Return a mean with its percentile bootstrap interval."""
    if not values:
        return Estimate()
    means = [sum(map(values.__getitem__, sample)) / len(sample) for sample in bootstrap_samples(len(values))]
    return Estimate(value=fmean(values), interval=_percentiles(means))


def share_interval(shares: Sequence[float], observations: int = 0) -> Interval:
    """Return the exact interval of a mean of shares, one for each item.

    It is that of Clopper and Pearson (1934) for as many independent trials as the spread of the shares makes of the
    items (Korn and Graubard, 1998, "Confidence intervals for proportions with small expected number of positive
    counts", Survey Methodology 24), and for at most ``observations`` of them.
    """
    count, mean = len(shares), fmean(shares)
    spread = fsum((share - mean) ** 2 for share in shares) / (count - 1) if count > 1 else 0.0
    trials = min(mean * (1 - mean) * count / spread, max(count, observations)) if spread > _SAME else count
    return exact_interval(mean * trials, trials)


def exact_interval(successes: float, trials: float) -> Interval:
    """Return the interval of Clopper and Pearson (1934) of a share; the numbers need not be whole.

    >>> low, high = exact_interval(3, 24)
    >>> f'{low:.3f} to {high:.3f}'
    '0.027 to 0.324'
    """
    low = 0.0 if successes <= 0 else _beta_quantile(_TAIL, successes, trials - successes + 1)
    high = 1.0 if successes >= trials else _beta_quantile(1 - _TAIL, successes + 1, trials - successes)
    return low, high


def _beta_quantile(chance: float, a: float, b: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _beta_chance(middle, a, b) < chance else (low, middle)
    return (low + high) / 2


def _beta_chance(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function by its continued fraction (Lentz's method)."""
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta_chance(1.0 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x)) / a if x > 0.0 else 0.0
    tiny, total, c, d = 1e-30, 1.0, 1.0, 0.0
    for step in range(400):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / (1.0 + term * d or tiny)
        c = 1.0 + term / c or tiny
        total *= c * d
        if abs(1.0 - c * d) < 1e-12:  # noqa: PLR2004 - equal to 1 for a float
            break
    return front * (total - 1.0)


def spread_of(units: Iterable[Unit]) -> float:
    """Return the variance of one grading around the mean of all gradings of its result, averaged over results."""
    variances = [
        fsum((score - fmean(unit)) ** 2 for score in unit) / (len(unit) - 1) for unit in units if len(unit) > 1
    ]
    return fmean(variances) if variances else 0.0


def width_of_noise(variance: float, judged_items: int, items: int) -> float:
    """Return the 95 % half-width of the difference of two mean scores of ``items`` that comes from grading alone.

    ``variance`` is that of one grading, and ``judged_items`` of them are graded by the judge.
    """
    return WIDTH * sqrt(variance * judged_items) / items if items else 0.0
