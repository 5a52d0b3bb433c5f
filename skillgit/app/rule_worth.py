"""What notes say a rule is worth: the skill was once measured without it.

Notes may come from strangers: whatever is not as it should be is left out, never an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.documents import loads
from skillgit.index import rule_queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.app.workspace import Workspace

_KIND = "ablation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWorth:
    """What leaving a rule out changed.

    Attributes:
        version: The version that it was left out of; absent for a rejected candidate.
        split: The items' split.
        n: Number of the items.
        score: What the skill scored without it.
        delta: The score's distance from that of the whole skill.
        fixed: How many items scored higher without it.
        broken: How many items scored lower without it.
        worth: What the rule is good for: ``works``, ``mixed``, ``harmful`` or ``dead``.
    """

    version: int | None
    split: str
    n: int
    score: float
    delta: float
    fixed: int
    broken: int
    worth: str


def known_worth(workspace: Workspace, run: str, text: str) -> tuple[RuleWorth, ...]:
    """Return what notes on the events of ``run`` say of the rule ``text``, those on newer versions last."""
    noted = rule_queries.notes_about(workspace.index, run, _KIND)
    return tuple(found for version, line in noted for found in _read(version, line, text))


def _read(version: int | None, line: str, text: str) -> Iterator[RuleWorth]:
    try:
        note = loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(note, dict) or note.get("kind") != _KIND or not isinstance(note.get("rules"), list):
        return
    for row in note["rules"]:
        if isinstance(row, dict) and row.get("text") == text:
            found = _worth(version, note, row)
            if found is not None:
                yield found


def _worth(version: int | None, note: Mapping[str, object], row: Mapping[str, object]) -> RuleWorth | None:
    score, delta, n = row.get("score"), row.get("delta"), note.get("n")
    fixed, broken = row.get("fixed"), row.get("broken")
    if not isinstance(fixed, list) or not isinstance(broken, list) or not isinstance(n, int):
        return None
    if not isinstance(score, int | float) or not isinstance(delta, int | float) or not isfinite(score + delta):
        return None
    return RuleWorth(
        version=version,
        split=str(note.get("split", "")),
        n=n,
        score=float(score),
        delta=float(delta),
        fixed=len(fixed),
        broken=len(broken),
        worth=str(row.get("worth", "")),
    )
