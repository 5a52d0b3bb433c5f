"""JSON of evidence and notes, which strangers may have written: what is damaged or not as it should be is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any, Final, TypeVar

from skillgit.domain.untrusted.json_limits import loads
from skillgit.store.evidence import read_evidence
from skillgit.store.repo import Repo

_T = TypeVar("_T")


def parsed(content: bytes | str | None) -> object:
    try:
        return loads(content or b"null")
    except (ValueError, RecursionError):
        return None


def evidence_file(repo: Repo, tree: str, name: str) -> object:
    """Return the JSON file ``name`` of the evidence in ``tree``; None where there is none that can be read."""
    return parsed((read_evidence(repo, tree, (name,)) or {}).get(name))


def members(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def entries(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, object]]:
    return [row for row in entries(value) if isinstance(row, dict)]


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def figure(value: object) -> float | None:
    """Return a number as a finite float; None for anything else, also for one that no float can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


_READERS: Final[Mapping[str, Callable[[object], object]]] = {
    "str": text,
    "int": lambda value: value if isinstance(value, int) else 0,
    "tuple[str, ...]": lambda value: tuple(name for name in entries(value) if isinstance(name, str)),
    "float | None": figure,
}


def read_row(kind: type[_T], row: Mapping[str, object], **facts: object) -> _T:
    """Return a ``kind`` whose fields are ``facts`` or in ``row``; what has another type there stays empty."""
    values: dict[str, Any] = {
        field.name: facts[field.name] if field.name in facts else _READERS[str(field.type)](row.get(field.name))
        for field in fields(kind)  # type: ignore[arg-type]
    }
    return kind(**values)
