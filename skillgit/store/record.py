"""A recorded event: the fact together with the commit that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.order import event_order

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.domain.event import Event
    from skillgit.domain.order import OrderKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event as it stands in git.

    Attributes:
        event: The fact, as decoded from the commit.
        commit: The commit's id, 40 hexadecimal characters.
        parents: Ids of the commit's parents.
        time: When it was committed, in UTC.
        evidence: Id of the evidence tree; empty if the event has none.
        tree: Id of the commit's tree.
        branch: Full name of the branch that it belongs to in the repository of its writer.
        at: The version that the run stands at with it.
    """

    event: Event
    commit: str
    parents: tuple[str, ...]
    time: datetime
    evidence: str
    tree: str
    branch: str
    at: int

    @property
    def order(self) -> OrderKey:
        """The key that sorts the events of a run."""
        return event_order(self.event, self.at)
