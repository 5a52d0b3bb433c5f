"""What a gate policy is, and what it is shown of a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The numbers of a gate that a policy may ask for.

    Attributes:
        margin: By how much a mean has to be greater.
    """

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
        """Mean gain of an item; 0 if no item is compared."""
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

        It must not say no to a candidate that ``accepts`` would take in the end, whatever the open items bring.

        Args:
            best: The comparison if every open item is solved.
            count: How many of its items are not open.
            thorough: Whether there is time for a p-value; it is seldom asked so.
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
