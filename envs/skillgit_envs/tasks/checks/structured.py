"""The check ``json``: the result is JSON, fits a schema (JSON Schema 2020-12), and has the right fields."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from skillgit.domain.untrusted.model_text import storable_json
from skillgit_envs.tasks.checks.check import CheckKind, Grade

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit_envs.tasks.checks.check import CheckSource, Fields, Sheet

SCORER = "tasks-json/1"
_TOLD = 3
_MISSING = object()


def _prepared(fields: Fields, source: CheckSource) -> Fields:
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - slow to import

    schema = fields.get("schema")
    if isinstance(schema, str):
        (entry,) = source.find([schema])
        try:
            schema = json.loads((source.folder / entry["name"]).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"has a schema that is no JSON: {error}") from error
        fields = fields | {"schema": schema}
    if schema is not None:
        outside = next((link for link in _links(schema) if not link.startswith("#")), "")
        if outside:
            raise ValueError(f"has a schema that refers to {outside}; only its own parts can be referred to")
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise ValueError(f"has a schema that is none: {error.message}") from error
    return fields


def _links(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (str(link) for name, link in value.items() if name in {"$ref", "$dynamicRef"})
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _links(part)


async def _json(fields: Fields, sheet: Sheet) -> Grade:
    try:
        value = storable_json(json.loads(sheet.answer))
    except (ValueError, RecursionError) as error:
        return Grade(score=0.0, said=f"the answer is no JSON: {error}")
    faults = list(islice(_faults(fields.get("schema"), value), _TOLD))
    if faults:
        return Grade(score=0.0, said=f"the JSON has not the form that is asked for: {'; '.join(faults)}")
    golds: dict[str, object] = fields.get("fields", {})
    wrong = {path: gold for path, gold in golds.items() if not _equal(_field(value, path), gold)}
    if not wrong:
        return Grade(score=1.0, said="correct")
    details = "; ".join(f"{path}: expected {json.dumps(gold, ensure_ascii=False)}" for path, gold in wrong.items())
    return Grade(score=1.0 - len(wrong) / len(golds), said=f"wrong fields: {details}")


def _faults(schema: dict[str, Any] | None, value: object) -> Iterator[str]:
    if schema is None:
        return
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import

    for error in Draft202012Validator(schema).iter_errors(value):
        yield f"{error.json_path}: {error.message[:200]}"


def _field(value: object, path: str) -> object:
    """Return what is at a path such as ``order.lines.0.price``."""
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _equal(first: object, second: object) -> bool:
    """Say whether two values are equal as JSON, where true is not 1, but 1 is 1.0."""
    if first is _MISSING or isinstance(first, bool) != isinstance(second, bool):
        return False
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_equal(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_equal, first, second))
    return first == second


KINDS = (
    CheckKind(
        name="json",
        help="The result is JSON that fits 'schema' (an object or a file) and has 'fields' (path to value).",
        grade=_json,
        takes={"schema": (dict, str), "fields": (dict,)},
        needs=("schema", "fields"),
        prepare=_prepared,
        reads="json",
    ),
)
