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

from skillgit.domain.policies.margin import Margin
from skillgit.domain.policies.not_worse import NotWorse
from skillgit.domain.policies.paired import Paired
from skillgit.domain.policies.policy import Comparison, Policy, Terms
from skillgit.domain.policies.strict import Strict

__all__ = [
    "NOT_WORSE",
    "PAIRED",
    "POLICIES",
    "STRICT",
    "Comparison",
    "Margin",
    "Policy",
    "Terms",
    "shortfall",
    "wanted",
]

STRICT, PAIRED, MARGIN, NOT_WORSE = Strict(), Paired(), Margin(), NotWorse()
POLICIES: dict[str, Policy] = {policy.name: policy for policy in (STRICT, PAIRED, MARGIN, NOT_WORSE)}
"""The policies that come with skillgit, by name."""


def wanted(name: str, terms: Terms) -> str:
    """Return what the policy ``name`` of a recorded verdict asked for."""
    return POLICIES[name].wants(terms) if name in POLICIES else f"what the plug-in {name} accepts"


def shortfall(name: str, p: float, terms: Terms) -> str:
    """Return why the policy ``name`` refused a candidate that scored higher."""
    return POLICIES[name].shortfall(p, terms) if name in POLICIES else f"the policy {name} refuses it"
