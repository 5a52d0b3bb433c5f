"""What people say about a version, for those who train it further; it never moves a score or a gate."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

_ID_LENGTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A note of a person on a commit.

    Attributes:
        commit: The commit.
        text: What the person says; lines of text.
        author: Who.
        time: When.
    """

    commit: str
    text: str
    author: str
    time: datetime

    @property
    def id(self) -> str:
        """Eight hexadecimal characters that name it."""
        content = f"{self.commit}\0{self.author}\0{self.time.isoformat()}\0{self.text}"
        return hashlib.sha256(content.encode(errors="replace")).hexdigest()[:_ID_LENGTH]
