"""All kinds of check, and how the checks of a row are read: each is completed and refused in time if it is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import DataError
from skillgit_envs.tasks.checks import judging, numbers, programs, structured, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit_envs.tasks.checks.check import Fields, Kind, Place, Reads

KINDS: dict[str, Kind] = {
    kind.name: kind for module in (texts, numbers, structured, programs, judging) for kind in module.KINDS
}
_HEAVIEST = 1_000_000
"""Far above any use; sums of weights stay finite."""
_COMMON: dict[str, tuple[type, ...]] = {
    "type": (str,),
    "weight": (int, float),
    "pass": (int, float),
    "message": (str,),
}


def scorers() -> list[str]:
    """Return what changes whenever a score can change."""
    return [*texts.SCORERS, numbers.SCORER, structured.SCORER, programs.SCORER, *judging.scorer()]


def read_checks(place: Place, given: Sequence[object]) -> list[Fields]:
    """Return the checks of a row, completed.

    Args:
        place: The row.
        given: The checks as the row has them: objects, or names of kinds that need nothing more.

    Raises:
        DataError: A check is of no known kind, or its fields are wrong.
    """
    return [_read(place, number, one) for number, one in enumerate(given, start=1)]


def _read(place: Place, number: int, given: object) -> Fields:
    where = f"{place.where}: check {number}"
    fields = {"type": given} if isinstance(given, str) else given
    if not isinstance(fields, dict):
        raise DataError(f"{where} is no object", hint='write it like {"type": "exact"}')
    kind = KINDS.get(str(fields.get("type")))
    if kind is None:
        raise DataError(
            f"{where} is of the type '{fields.get('type', '')}', which is none", hint=f"known are {', '.join(KINDS)}"
        )
    try:
        _check_types(kind, fields)
        return kind.prepare({"weight": 1, "pass": 1} | fields, place)
    except ValueError as error:
        hint = f"{kind.help} See the README of the environment tasks"
        raise DataError(f"{where}, {kind.name}, {error}", hint=hint) from error


def _check_types(kind: Kind, fields: Fields) -> None:
    known = {**_COMMON, **kind.takes}
    for name, value in fields.items():
        if name not in known:
            raise ValueError(f"has no field '{name}'; it takes {', '.join(known)}")
        if not isinstance(value, known[name]) or (isinstance(value, bool) and bool not in known[name]):
            raise ValueError(f"has a '{name}' of the wrong type")
    if kind.needs and not any(name in fields for name in kind.needs):
        raise ValueError(f"needs {' or '.join(repr(name) for name in kind.needs)}")
    if not 0 < fields.get("weight", 1) <= _HEAVIEST:
        raise ValueError(f"has a weight that is not above 0 and at most {_HEAVIEST:,}")
    if not 0 < fields.get("pass", 1) <= 1:
        raise ValueError("has a 'pass' that does not lie between 0 and 1")


def reading_of(checks: Sequence[Fields]) -> Reads:
    """Return how a result is taken out of a reply if the row does not say: as the strictest check needs it."""
    asked = {KINDS[check["type"]].reads for check in checks}
    return "tag" if "tag" in asked else "json" if "json" in asked else "whole"
