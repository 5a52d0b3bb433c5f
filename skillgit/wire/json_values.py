"""Reads what is at a place in JSON of any shape: a missing or an odd value is an empty one, and never an error."""

from __future__ import annotations

from typing import Any

from skillgit.plugin.backend import token_count

Fields = dict[str, Any]


def value_at(value: object, *path: str) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def fields_at(value: object, *path: str) -> Fields:
    """Return the object at ``path``, else an empty one."""
    fields = value_at(value, *path)
    return fields if isinstance(fields, dict) else {}


def entries_at(value: object, *path: str) -> list[Fields]:
    """Return the objects in the list at ``path``; other members of it are left out."""
    entries = value_at(value, *path)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def text_at(value: object, *path: str) -> str:
    text = value_at(value, *path)
    return text if isinstance(text, str) else ""


def spoken_at(value: object, *path: str) -> str:
    """Return the text at ``path``, or the texts of its parts if it is a list of parts."""
    parts = [part for part in entries_at(value, *path) if part.get("type") in ("text", "output_text")]
    return text_at(value, *path) or "".join(text_at(part, "text") for part in parts)


def count_at(value: object, *path: str) -> int | None:
    """Return the number of tokens at ``path``; None if it is missing or cannot be one."""
    return token_count(value_at(value, *path))
