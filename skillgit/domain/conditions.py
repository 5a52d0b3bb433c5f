"""What may differ between two measurements besides the text of the skill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Aspect(StrEnum):
    TARGET = "target"
    JUDGE = "judge"
    SERVER = "server"
    ENVIRONMENT = "environment"
    ITEMS = "items"
    PARAMETERS = "parameters"
    SEED = "seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    aspect: Aspect
    a: str
    b: str

    @property
    def matters(self) -> bool:
        """Whether a change of scores may come from it, so that no test can say what the text did."""
        return self.aspect is not Aspect.SEED

    @property
    def sentence(self) -> str:
        verb = "differ" if self.aspect in {Aspect.ITEMS, Aspect.PARAMETERS} else "differs"
        return f"{self.aspect.value} {verb}: {self.a} against {self.b}"


def matter(differences: Iterable[Difference]) -> bool:
    """Say whether a change of scores may come from one of them, so that no test says what the text did."""
    return any(difference.matters for difference in differences)
