"""What the target model reads: the question, and the choices in an order of their own for each item."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, cast

from skillgit.domain.trajectory import Item

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLE = Item(
    id="example", content={"question": "question", "choices": ["one", "two"], "theorem": "theorem", "sketch": "sketch"}
)
"""An item whose prompt identifies how prompts are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the target sees of an item.

    Attributes:
        shuffle: Whether the choices are shuffled; in the public files the right one always comes first.
        seed: Seed of their order.
        theorem: Whether the theorem is shown.
        sketch: Whether the sketch of its proof is shown.
    """

    shuffle: bool = True
    seed: int = 42
    theorem: bool = False
    sketch: bool = False


def arranged(item: Item, shown: Shown) -> dict[str, str]:
    """Return label to choice; the order depends on seed, item and choices alone."""
    texts = cast("Sequence[str]", item.content["choices"])
    if shown.shuffle:
        # A sort by digest, for the standard library does not promise that its shuffle stays the same.
        texts = sorted(texts, key=lambda text: hashlib.sha256(f"{shown.seed}:{item.id}:{text}".encode()).digest())
    return dict(zip(ascii_uppercase, texts, strict=False))


def question(item: Item, shown: Shown) -> str:
    """Return the user prompt."""
    listed = "\n".join(f"{label}. {text}" for label, text in arranged(item, shown).items())
    wanted = {"theorem": shown.theorem, "sketch": shown.sketch}
    more = "".join(f"\n\n<{key}>\n{item.content[key]}\n</{key}>" for key, use in wanted.items() if use)
    return f"<question>\n{item.content['question']}\n</question>\n\n<choices>\n{listed}\n</choices>{more}"
