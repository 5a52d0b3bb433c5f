"""What notes on versions say that rules are worth, as ``skillgit ablate`` leaves it there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from skillgit.app.recorded.evidence_json import figure, members, objects, text

KIND: Final = "ablation"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedRule:
    """What leaving a rule out changed."""

    number: int  # the rule's number in the text that was measured, from 1
    text: str
    score: float
    delta: float
    p: float
    fixed_items: tuple[str, ...]
    broken_items: tuple[str, ...]
    worth: str


def noted_rules(note: object) -> Iterator[NotedRule]:
    """Yield the rules of a note; what is damaged, as notes of strangers may be, is left out."""
    parts = members(note)
    for row in objects(parts.get("rules")) if parts.get("kind") == KIND else ():
        match row:
            case {"rule": int(number), "text": str(rule), "fixed": [*fixes], "broken": [*breaks]}:
                score, delta, p = (figure(row.get(name)) for name in ("score", "delta", "p"))
                if score is not None and delta is not None and p is not None:
                    yield NotedRule(
                        number=number,
                        text=rule,
                        score=score,
                        delta=delta,
                        p=p,
                        fixed_items=tuple(map(str, fixes)),
                        broken_items=tuple(map(str, breaks)),
                        worth=text(row.get("worth")),
                    )
