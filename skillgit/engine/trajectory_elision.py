"""Leaving out parts of long conversations, in the open: their head, their tail and the failing turn stay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from skillgit.domain.trajectory import Turn

LEAST = 240  # characters of a turn that are worth showing
_MARK = 50
_HEAD = 2
_TROUBLE = re.compile(
    r"\b(?:error|exception|traceback|failed|failure|invalid|denied|refused|not found|timed out|no such)\b",
    re.IGNORECASE,
)


def elide(text: str, limit: int) -> str:
    """Return ``text``, with its middle left out if it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[len(text) - tail :]}"


def failing_turn(turns: Sequence[Turn]) -> int:
    """Return the place of the last reply that reports trouble, else of the target's last turn: the answer."""
    surroundings = [index for index, turn in enumerate(turns) if index and turn.role in ("tool", "user")]
    troubles = [index for index in surroundings if _TROUBLE.search(turns[index].text)]
    spoken = [index for index, turn in enumerate(turns) if turn.role == "assistant"]
    return (troubles or spoken or [max(len(turns) - 1, 0)])[-1]


def elided_turns(turns: Sequence[Turn], room: int) -> Iterator[Turn | str]:
    """Yield ``turns`` so that they fill about ``room`` characters; a string says what is left out between two."""
    indexes = _shown(turns, room)
    sizes = [len(turns[index].text) for index in indexes]
    gaps = len(turns) - len(indexes)
    limit = _limit(sizes, room - (_MARK * 3 if gaps else 0))
    before = -1
    for index in indexes:
        yield from _gap(index - before - 1)
        yield Turn(role=turns[index].role, content=elide(turns[index].text, limit))
        before = index
    yield from _gap(len(turns) - before - 1)


def _gap(size: int) -> Iterator[str]:
    if size:
        yield f"[... {size} {'turn' if size == 1 else 'turns'} left out ...]"


def _shown(turns: Sequence[Turn], room: int) -> list[int]:
    """Return the places of the turns to show: all if each can have some room, else head, failing turn and tail."""
    if sum(min(len(turn.text), LEAST) for turn in turns) <= room:
        return list(range(len(turns)))
    most = max(room // LEAST, 1)
    failing = failing_turn(turns)
    candidates = [failing, *range(_HEAD), failing - 1, *reversed(range(_HEAD, len(turns)))]
    indexes = dict.fromkeys(index for index in candidates if 0 <= index < len(turns))
    return sorted([*indexes][:most])


def _limit(sizes: Sequence[int], room: int) -> int:
    """Return the length at which turns are elided, so that short ones stay whole and long ones share what is left."""
    rest, open_ = room, len(sizes)
    for size in sorted(sizes):
        share = max(rest, 0) // open_
        if size > share:
            return max(share - _MARK, LEAST // 2)
        rest, open_ = rest - size, open_ - 1
    return max(sizes, default=0)
