"""The schema that a question wants its reply to fit: where each dialect has it, and what strict modes take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from wire.dialects import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WORDS = {"title", "type", "properties", "required", "additionalProperties", "items", "enum"}
"""Words that all strict modes and grammars know."""


def schema_of(document: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the schema in the body of a question, in whichever dialect."""
    body = cast("Mapping[str, Any]", document)
    if "response_format" in body:
        kind, given = body["response_format"]["type"], body["response_format"]["json_schema"]
    else:
        given = (body.get("text") or body.get("output_config") or {}).get("format")
        kind = given["type"] if given else ""
    return cast("dict[str, Any]", given["schema"]) if kind == "json_schema" else None


def check_schema(schema: Mapping[str, Any] | None, refusal: str) -> None:
    """Refuse a schema that is not strict; with a word of ``refusal``, every schema."""
    if schema is None:
        return
    if refusal:
        raise WireError(400, "invalid_request", refusal)
    for fault in faults(schema):
        raise WireError(400, "invalid_request", f"Invalid schema for response_format: {fault}")


def faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what strict modes refuse of a schema."""
    if unknown := set(schema) - _WORDS:
        yield f"{sorted(unknown)} is not permitted"
    if schema["type"] == "object":
        if schema.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false"
        if list(schema.get("properties", ())) != schema.get("required"):
            yield "'required' is required to be supplied and to include every key in properties"
        for field in schema.get("properties", {}).values():
            yield from faults(field)
    if schema["type"] == "array":
        yield from faults(schema["items"])
