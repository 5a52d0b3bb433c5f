"""What programs read: values as JSON.

Names are those of the dataclass fields, times are RFC 3339 in UTC, ids are complete.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import PurePath

from skillgit.domain.address import Address
from skillgit.domain.cost import Cost
from skillgit.domain.untrusted.model_text import escaped_json
from skillgit.view.numbers import rfc3339

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def plain_value(value: object) -> Json:
    """Return ``value`` as JSON can hold it; a TypeError where it has no place in a document."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, PurePath | Address):
        return str(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return _container(value)


def named_values(value: object) -> dict[str, Json]:
    document = plain_value(value)
    if not isinstance(document, dict):
        raise TypeError(f"{type(value).__name__} is no JSON object")
    return document


def document_text(schema: str, body: object) -> str:
    """Return one JSON document: a dataclass or a mapping, with the name of its shape in front."""
    document = {"schema": f"skillgit.{schema}"} | named_values(body)
    return f"{escaped_json(json.dumps(document, indent=2, ensure_ascii=False))}\n"


def record_text(row: object) -> str:
    """Return a row as one JSON object on one line."""
    return escaped_json(json.dumps(plain_value(row), ensure_ascii=False, separators=(",", ":")))


def picked(value: object, names: str) -> dict[str, object]:
    """Return some fields of ``value``, named with spaces between, as a mapping."""
    return {name: getattr(value, name) for name in names.split()}


def _container(value: object) -> Json:
    if isinstance(value, Cost):
        return {field.name: plain_value(getattr(value, field.name)) for field in fields(value)} | {
            "usd": value.known_usd
        }
    if is_dataclass(value) and not isinstance(value, type):
        # an event has the facts of its kind, and none that only other kinds have
        names: Iterable[str] = getattr(value, "fact_names", None) or (field.name for field in fields(value))
        return {name: plain_value(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((plain_value(inner) for inner in value), key=str)
    if isinstance(value, list | tuple):
        return [plain_value(inner) for inner in value]
    if isinstance(value, type):
        return value.__name__
    raise TypeError(f"{type(value).__name__} has no JSON form")
