"""Owns how many tokens models take: a small dated table as data, for checks before a run; nothing is decided by it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from skillgit.calls.pricing import without_date

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTable:
    """Lengths of contexts.

    Attributes:
        date: When they were looked up.
        contexts: Model to tokens, prompt and reply together.
    """

    date: date
    contexts: Mapping[str, int]


@cache
def context_table() -> ContextTable:
    """Return the lengths that skillgit comes with."""
    data = json.loads(files("skillgit.calls").joinpath("contexts.json").read_text("utf-8"))
    return ContextTable(date=date.fromisoformat(data["date"]), contexts=MappingProxyType(data["contexts"]))


def find_context(model: str) -> int | None:
    """Return the tokens that ``model`` takes; None if that is not known. A dated name counts as the one without."""
    contexts = context_table().contexts
    return contexts.get(model) or contexts.get(without_date(model))
