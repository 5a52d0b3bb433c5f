"""One value as it was written somewhere, and where that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["default", "file", "override"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value comes from.

    Attributes:
        kind: A default, a file or an override on the command line.
        where: ``path:line`` of a file, ``-o key=value`` of an override, empty for a default.
    """

    kind: Kind
    where: str = ""

    def __str__(self) -> str:
        return self.where or self.kind


DEFAULT = Origin(kind="default")

NESTED = frozenset({"model.contexts", "model.prices"})
"""Keys whose values are merged entry by entry; an entry is a key of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value as it was written.

    Attributes:
        value: The value as YAML reads it.
        text: The characters as written, for keys whose value is text; empty for null, None for a list or mapping in a
            file.
        plain: Whether the scalar stands without quotation marks.
        origin: Where it was written.
        folder: The folder that a relative path refers to.
    """

    value: object
    text: str | None
    plain: bool
    origin: Origin
    folder: Path


def nested(key: str) -> str:
    """Return the nested key that ``key`` is an entry of; empty if it is none."""
    return next((name for name in NESTED if key.startswith(f"{name}.")), "")


Layer = dict[str, Leaf]
"""Dotted key, or flat key, to value."""
