"""What is known before a run begins: what people said about versions, and what other runs tried on the same text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from skillgit.domain.proposal import Change


_ID_LENGTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A note of a person on a commit."""

    commit: str
    text: str
    author: str
    time: datetime

    @property
    def id(self) -> str:
        content = f"{self.commit}\0{self.author}\0{self.time.isoformat()}\0{self.text}"
        return hashlib.sha256(content.encode(errors="replace")).hexdigest()[:_ID_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate that the gate of another run, or of someone else's part of it, rejected."""

    run: str
    step: int
    base: int
    commit: str
    title: str
    changes: tuple[Change, ...]
    score: float
    bound: bool  # whether that is only the highest that it could have been
    current: float
