"""Owns what a check of the data knows of an item: its split, and the texts that its environment names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from skillgit.domain.leaks import words
from skillgit.plugin.environment import KeepsSecrets, secrets_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.evaluation import Split
    from skillgit.domain.leaks import Secrets
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Environment


@dataclass(frozen=True, kw_only=True)  # no slots: they have no room for cached properties
class Told:
    """An item as its environment tells of it.

    Attributes:
        item: The item.
        split: Where it stands.
        secrets: Its answers, and its inputs with the question first.
    """

    item: Item
    split: Split
    secrets: Secrets

    @cached_property
    def question(self) -> str:
        """The folded words of the first input."""
        return " ".join(words("".join(self.secrets.inputs[:1])))

    @cached_property
    def answers(self) -> frozenset[str]:
        """The folded answers."""
        return frozenset(" ".join(words(answer)) for answer in self.secrets.answers)


def told(environment: Environment, items: Mapping[Split, Sequence[Item]]) -> list[Told]:
    """Return all items; none if the environment does not tell what is secret about them."""
    if not isinstance(environment, KeepsSecrets):
        return []
    return [
        Told(item=item, split=split, secrets=secrets_of(environment, item))
        for split, found in items.items()
        for item in found
    ]
