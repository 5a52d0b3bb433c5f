"""Owns how the environment is read for one role: the role's own variable goes before the one that all roles share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, repr=False)
class Variables:
    """The environment as one role sees it.

    Attributes:
        environ: The environment; it holds keys and shows itself to nobody.
        role: The role, whose variables are ``TARGET_X`` before ``X``; empty knows the shared ones only.
    """

    environ: Mapping[str, str]
    role: str = ""

    def name(self, variable: str) -> str:
        """Return the name under which ``variable`` is set: the role's own, else the shared one."""
        own = f"{self.role.upper()}_{variable}"
        return own if self.role and self.environ.get(own, "").strip() else variable

    def get(self, variable: str) -> str:
        """Return the value of ``variable``; empty if it is not set."""
        return self.exactly(self.name(variable))

    def exactly(self, name: str) -> str:
        """Return the value of the variable called ``name``, whatever the role; empty if it is not set."""
        return self.environ.get(name, "").strip()

    def first(self, variables: Sequence[str]) -> str:
        """Return the first of ``variables`` that is set, as it is really called; empty if none is."""
        return next((self.name(variable) for variable in variables if self.get(variable)), "")

    def is_own(self, variable: str) -> bool:
        """Say whether the role has ``variable`` for itself."""
        return self.name(variable) != variable
