"""What replies are made of: fields that a model may write in more than one way, texts, and the schema of a whole."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetPydanticSchema
from pydantic_core.core_schema import no_info_wrap_validator_function, str_schema

from skillgit.domain.untrusted.model_text import SkillText, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic.json_schema import JsonSchemaValue


class ReplyModel(BaseModel):
    """What a prompt asks for; keys that it does not ask for are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


def _count(value: object) -> object:
    """Read a count that a model may write as text or as an integral float; whatever it is, it is at least 1."""
    match = re.search(r"\d+", str(value))
    return max(int(match.group()), 1) if match else 1


Count = Annotated[int, BeforeValidator(_count)]


def _listed(value: object) -> tuple[object, ...]:
    """Read a list that a model may leave out, or write as a single value."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _named(value: object) -> object:
    return tuple(str(entry) for entry in _listed(value))


def _numbers(value: object) -> object:
    return tuple(int(str(entry)) for entry in _listed(value) if re.fullmatch(r"\d+", str(entry)))


def _noted(value: object) -> object:
    """Read notes that a model may write as texts, as one text or as objects with ``note`` or ``content``."""
    texts = [entry.get("note", entry.get("content")) if isinstance(entry, dict) else entry for entry in _listed(value)]
    return tuple(text for text in texts if isinstance(text, str) and text.strip())


def _as_clean(value: object, text: Callable[[object], str]) -> SkillText:
    """Return a text cleaned; one that ``parse`` has cleaned keeps its count of what was removed."""
    return value if isinstance(value, SkillText) else clean(text(value))


Cleaned = Annotated[SkillText, GetPydanticSchema(lambda *_: no_info_wrap_validator_function(_as_clean, str_schema()))]
"""A text that may be in a skill."""
Names = Annotated[tuple[str, ...], BeforeValidator(_named)]
Notes = Annotated[tuple[Cleaned, ...], BeforeValidator(_noted)]
Numbers = Annotated[tuple[int, ...], BeforeValidator(_numbers)]


@cache
def strict_schema(model: type[ReplyModel], prompt: str) -> JsonSchemaValue:
    """Return the JSON schema of a reply as the strict modes of providers take it: objects are closed and complete.

    It has the keys that ``prompt`` names, in the order of its names, and those that cannot be left out: a provider has
    the keys written in this order, and a model has to say what it saw before it says what to do. A model that has
    nothing to say for a key writes an empty value. The schema has few words, for servers that make a grammar of it
    refuse those that they do not know.

    Raises:
        ValueError: A field is of a kind that strict modes do not have, such as an object with any keys.
    """
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - needed where a model is asked only

    class Generator(GenerateJsonSchema):
        ignored_warning_kinds = {"non-serializable-default"}  # noqa: RUF012 - defaults are left out

    whole = model.model_json_schema(schema_generator=Generator)
    order = re.findall(r"`(\w+)`", prompt[max(prompt.rfind("\n## Your answer"), 0) :])
    return {"title": model.__name__, **_strict(whole, whole.get("$defs", {}), tuple(dict.fromkeys(order)))}


def _strict(schema: Mapping[str, Any], definitions: Mapping[str, Any], order: Sequence[str]) -> JsonSchemaValue:
    match schema:
        case {"$ref": str(reference)}:
            return _strict(definitions[reference.rpartition("/")[2]], definitions, order)
        case {"type": "object", "properties": dict(properties)}:
            needed = [name for name in schema.get("required", ()) if name not in order]
            names = [*(name for name in order if name in properties), *needed]
            return {
                "type": "object",
                "properties": {name: _strict(properties[name], definitions, order) for name in names},
                "required": names,
                "additionalProperties": False,
            }
        case {"type": "array", "items": items}:
            return {"type": "array", "items": _strict(items, definitions, order)}
        case {"type": "string", "enum": values}:
            return {"type": "string", "enum": values}
        case {"type": ("string" | "integer") as kind}:
            return {"type": kind}
    raise ValueError(f"strict modes have no such field: {schema}")
