"""Gate policies: what a candidate has to show to become a version. One object each, found by its name.

A package adds one with an entry point in the group ``skillgit.policies``; a configuration may also name a class in a
file, ``gate.policy: path/to/file.py:Class``::

    class NothingBroken(Policy):
        name = "nothing-broken"

        def accepts(self, comparison: Comparison) -> bool:
            return comparison.fixed > 0 and comparison.broken == 0

        def wants(self, terms: Terms) -> str:
            return "an item fixed and none broken"
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from skillgit.domain.outcomes import exact
from skillgit.domain.statistics import fixes_needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The numbers of a gate that a policy may ask for; ``margin`` is by how much a mean has to be greater."""

    alpha: float = 0.05
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A candidate against its base, added up over the items that are scored on both sides.

    Attributes:
        total: Sum of the gains of all items, in units of ``1 / scale``.
        scale: What a gain of 1 is in those units.
        fixed: Items that score higher under the candidate.
        p_value: Returns the one-sided p-value of the paired test. It may take a tenth of a second for partial scores.
        counts_decide: Whether ``fixed`` and ``broken`` alone decide the test, as they do for the hard score.
    """

    total: int
    scale: int
    count: int
    fixed: int
    broken: int
    terms: Terms
    p_value: Callable[[], float]
    counts_decide: bool

    @property
    def gain(self) -> Fraction:
        return Fraction(self.total, self.scale * self.count) if self.count else Fraction(0)


class Policy(ABC):
    """A rule by which a gate accepts a candidate.

    Attributes:
        name: What configurations and trailers call it: letters, digits and hyphens.
        terms: The fields of :class:`Terms` that it looks at; verdicts record these.
        wants_gain: Whether a candidate has to score higher; the steps of a run ask for that.

    >>> class TwoToOne(Policy):
    ...     name = 'two-to-one'
    ...     def accepts(self, comparison):
    ...         return comparison.fixed >= 2 * comparison.broken
    ...     def wants(self, terms):
    ...         return 'two items fixed for each that breaks'
    >>> gains = {'total': 3, 'scale': 1, 'count': 40, 'fixed': 5, 'broken': 2}
    >>> TwoToOne().accepts(Comparison(**gains, terms=Terms(), p_value=lambda: 0.23, counts_decide=True))
    True
    """

    name: ClassVar[str]
    terms: ClassVar[frozenset[str]] = frozenset()
    wants_gain: ClassVar[bool] = True

    @abstractmethod
    def accepts(self, comparison: Comparison) -> bool:
        """Say whether a candidate becomes a version, where nothing else of the gate speaks against it."""

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether a candidate that is still being evaluated can be accepted; a run stops paying once it cannot.

        It must not say no to a candidate that ``accepts`` would accept in the end for any outcome of the open items.
        ``best`` is the comparison if every open item is solved, ``count`` how many of its items are not open, and
        ``thorough`` whether there is time for a p-value; it is seldom asked so.
        """
        del best, count, thorough
        return True

    def is_slow(self, *, counts_decide: bool) -> bool:
        """Say whether ``reachable`` sees more if it is thorough, see :attr:`Comparison.counts_decide`."""
        del counts_decide
        return False

    @abstractmethod
    def wants(self, terms: Terms) -> str:
        """Return what it asks for, to be behind "asks for"."""

    def shortfall(self, p: float, terms: Terms) -> str:
        """Return why a candidate that scores higher is refused, to be behind "it scores higher, but"."""
        del p, terms
        return f"the policy {self.name} refuses it"


class Strict(Policy):
    """Accepts a mean that is strictly greater (arXiv 2605.23904, section 3)."""

    name = "strict"

    def accepts(self, comparison: Comparison) -> bool:
        return comparison.total > 0

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        del count, thorough
        return best.total > 0

    def wants(self, terms: Terms) -> str:
        del terms
        return "a higher score"


class Paired(Policy):
    """Accepts a greater mean whose one-sided paired test is significant at ``alpha``."""

    name = "paired"
    terms = frozenset({"alpha"})

    def accepts(self, comparison: Comparison) -> bool:
        return comparison.total > 0 and comparison.p_value() <= comparison.terms.alpha

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether both can still come true; the test of partial scores is looked at only if there is time."""
        del count
        if best.total <= 0:
            return False
        if best.counts_decide:
            return best.fixed >= fixes_needed(best.fixed + best.broken, best.terms.alpha)
        return not thorough or best.p_value() <= best.terms.alpha

    def is_slow(self, *, counts_decide: bool) -> bool:
        return not counts_decide

    def wants(self, terms: Terms) -> str:
        return f"a higher score that a paired test at level {terms.alpha:g} takes for a gain"

    def shortfall(self, p: float, terms: Terms) -> str:
        return f"that may be chance: p is {p:.2g}, and {terms.alpha:g} or less is wanted"


class Margin(Policy):
    """Accepts a mean that is greater by more than ``margin``."""

    name = "margin"
    terms = frozenset({"margin"})

    def accepts(self, comparison: Comparison) -> bool:
        return comparison.count > 0 and comparison.gain > exact(comparison.terms.margin)

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether it can still be greater; an open item that fails to evaluate may leave the mean."""
        del thorough
        return best.total > exact(best.terms.margin) * count * best.scale

    def wants(self, terms: Terms) -> str:
        return f"a score higher by more than {terms.margin:g}"

    def shortfall(self, p: float, terms: Terms) -> str:
        del p
        return f"not by more than the margin of {terms.margin:g}"


class NotWorse(Policy):
    """Accepts a mean that is not lower."""

    name = "not-worse"
    wants_gain = False

    def accepts(self, comparison: Comparison) -> bool:
        return comparison.total >= 0

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        del count, thorough
        return best.total >= 0

    def wants(self, terms: Terms) -> str:
        del terms
        return "a score that is not lower"


STRICT, PAIRED, MARGIN, NOT_WORSE = Strict(), Paired(), Margin(), NotWorse()
POLICIES: dict[str, Policy] = {policy.name: policy for policy in (STRICT, PAIRED, MARGIN, NOT_WORSE)}
"""The policies that come with skillgit, by name."""


def wanted(name: str, terms: Terms) -> str:
    return POLICIES[name].wants(terms) if name in POLICIES else f"what the plug-in {name} accepts"


def shortfall(name: str, p: float, terms: Terms) -> str:
    return POLICIES[name].shortfall(p, terms) if name in POLICIES else f"the policy {name} refuses it"
