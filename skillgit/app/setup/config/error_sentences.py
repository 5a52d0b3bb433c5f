"""What is said of a wrong configuration: one sentence with key, given value and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from skillgit.domain.did_you_mean import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_FIXED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
    "dict_type": "a mapping",
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("string_too_short", "missing"), "given"),
}
_BOUNDED = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "too_short": ("a list with", "min_length"),
    "too_long": ("a list with", "max_length"),
}


def nearest_key(key: str, keys: Collection[str]) -> str:
    """Return the dotted key that ``key`` is most like; a right name in a wrong section counts as near."""
    last = key.rpartition(".")[2]
    names = {full_name.partition(".")[2]: full_name for full_name in keys}
    same = [full_name for full_name in keys if full_name.rpartition(".")[2] == last]
    section = key.partition(".")[0]
    siblings = [full_name for full_name in keys if full_name.startswith(f"{section}.")]
    return (same[0] if same else "") or nearest(key, siblings) or names.get(nearest(last, list(names)), "")


def shown(value: object) -> str:
    """Write a value as it would be in a configuration."""
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, default=str)


def allowed(error: ErrorDetails) -> str:
    """Return what pydantic would have accepted, to be after ``it must be``."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _BOUNDED:
        words, name = _BOUNDED[kind]
        number = f"{context[name]:g}" if isinstance(context[name], float) else str(context[name])
        return f"{words} {number}{' entries' if 'list' in words else ''}"
    if kind in {"literal_error", "enum"}:
        return str(context["expected"]).replace("True", "true").replace("False", "false")
    return f"different ({error['msg']})"


def choices(error: ErrorDetails) -> tuple[str, ...]:
    """Return the texts that were allowed, if they can be counted."""
    words = str(error.get("ctx", {}).get("expected", "")) if error["type"] in {"literal_error", "enum"} else ""
    return tuple(part for part in words.split("'")[1::2] if part)


def mentioned(message: str, names: Mapping[str, str]) -> str:
    """Return where the keys that a message names were set, as ``key at place``; those with a default are left out."""
    words = message.replace(",", " ").split()
    return ", ".join(f"{name} at {names[name]}" for name in dict.fromkeys(words) if names.get(name))
