"""Items, and what happened when the target model worked on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from skillgit.domain.ids import check_item_id, digest
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.evaluation import Outcome

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One task of an environment.

    Attributes:
        content: Everything that the environment knows of it, gold included, as JSON values.

    Raises:
        DataError: The id is none, or the content cannot be written as JSON.
    """

    id: str
    content: Mapping[str, object]
    task_type: str = "default"
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        check_item_id(self.id)
        try:
            identity = digest(self.content)[:16]
        except ValueError:
            raise DataError(
                f"item '{self.id}' has a number that JSON cannot write, such as NaN or 1e400",
                hint="write a finite number, or leave it out",
            ) from None
        object.__setattr__(self, "digest", identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """What happened on one item.

    Attributes:
        turns: The conversation after the system prompt, in order. The system prompt holds the skill and is the same for
            all items of a rollout, so that it is not repeated here.
        answer: The final answer as the scorer read it.
        feedback: Why the answer got its score, in words that the optimizer may read.
        products: Files that were made, path to bytes, for the scorer; they are not recorded.
    """

    item_id: str
    turns: tuple[Turn, ...]
    answer: str
    feedback: str = ""
    products: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One item with its trajectory and outcome; an item that failed to evaluate has no trajectory."""

    item: Item
    trajectory: Trajectory | None
    outcome: Outcome
