"""Gate policies from elsewhere: checked when they are loaded, and asked so that a fault of theirs is named as one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn, cast

from skillgit.domain.policies import POLICIES, Policy, Terms
from skillgit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.domain.policies import Comparison

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")
_TERMS = frozenset(Terms.__slots__)


class ForeignPolicy(Policy):
    """A policy whose class comes from a file or another package.

    Args:
        cls: The class.
        origin: What the configuration calls it.

    Raises:
        UsageError: It is not a policy, or has no name that verdicts can record.
    """

    name = ""

    def __init__(self, cls: type, origin: str) -> None:
        self._origin = origin
        if not (isinstance(cls, type) and issubclass(cls, Policy)):
            self._refuse("it has to be a class that inherits from skillgit.domain.policies.Policy")
        self._policy = cast("Policy", self._ask(cls))
        name, terms = getattr(cls, "name", None), self._policy.terms
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._refuse(f"its name is {name!r}; it has to be made of letters, digits and hyphens")
        if name in POLICIES:
            self._refuse(f"its name is {name!r}, which is that of a policy of skillgit")
        if not isinstance(terms, frozenset | set) or not terms <= _TERMS:
            self._refuse(f"its terms have to be a set of {', '.join(sorted(_TERMS))}")
        self.name = name  # type: ignore[misc]
        self.terms = frozenset(terms)  # type: ignore[misc]
        self.wants_gain = bool(self._policy.wants_gain)  # type: ignore[misc]

    def accepts(self, comparison: Comparison) -> bool:
        """Ask it."""
        return self._truth("accepts", self._ask(self._policy.accepts, comparison))

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Ask it."""
        return self._truth("reachable", self._ask(self._policy.reachable, best, count, thorough=thorough))

    def is_slow(self, *, counts_decide: bool) -> bool:
        """Ask it."""
        return self._truth("is_slow", self._ask(self._policy.is_slow, counts_decide=counts_decide))

    def wants(self, terms: Terms) -> str:
        """Ask it."""
        return str(self._ask(self._policy.wants, terms))

    def shortfall(self, p: float, terms: Terms) -> str:
        """Ask it."""
        return str(self._ask(self._policy.shortfall, p, terms))

    def _ask(self, method: Callable[..., object], *args: object, **options: object) -> object:
        try:
            return method(*args, **options)
        except (Exception, SystemExit) as error:  # the code is someone else's and may fail in any way
            message = " ".join(f"{type(error).__name__}: {error}".split())
            raise UsageError(f"gate policy {self._origin} broke down: {message}", hint="mend the policy") from error

    def _truth(self, method: str, answer: object) -> bool:
        if not isinstance(answer, bool):
            self._refuse(f"{method} returned {answer!r} where True or False is asked for")
        return answer

    def _refuse(self, why: str) -> NoReturn:
        raise UsageError(f"gate policy {self._origin} cannot be used: {why}", hint="docs/plugins.md shows one")
