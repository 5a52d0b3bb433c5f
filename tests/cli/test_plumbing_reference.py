"""What is declared of trailers and events makes their references; ``UPDATE_DOCS=1`` writes them anew."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType

from documents import check_part, page

import skillgit.domain.cost
import skillgit.domain.edit
import skillgit.domain.evaluation
import skillgit.domain.gate_decision
import skillgit.domain.placebo
import skillgit.domain.proposal
import skillgit.domain.protected_regions
from skillgit.app.history.plumbing import SCHEMA
from skillgit.domain import event as events
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.untrusted.model_text import SkillText
from skillgit.store.trailer_table import KINDS, MEASUREMENT, NEEDED, TRAILERS, Record, ValueForm

WORDS = {
    name: value
    for module in (
        *(skillgit.domain.cost, skillgit.domain.edit, skillgit.domain.evaluation),
        *(
            skillgit.domain.gate_decision,
            skillgit.domain.placebo,
            skillgit.domain.proposal,
            skillgit.domain.protected_regions,
            events,
        ),
    )
    for name, value in vars(module).items()
    if not name.startswith("__")
} | {"Mapping": Mapping, "SkillText": SkillText}
PLAIN = {str: "string", SkillText: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def reference() -> str:
    parts: dict[type, None] = {}
    lines = ["| kind | what happened |", "|---|---|"]
    lines += [f"| `{kind}` | {kind.meaning.removesuffix('.')} |" for kind in EventKind]
    lines += ["", "### Fields of events", "", "| field | type | on | meaning |", "|---|---|---|---|"]
    hints = typing.get_type_hints(events.Event, localns=WORDS)
    lines += [fact_row(name, hints[name], parts) for name in events.FACTS] + [""]
    told: set[type] = set()
    while waiting := [part for part in parts if part not in told]:
        for part in waiting:
            told.add(part)
            lines += [f"### {part.__name__}", "", first_line(part), "", *table(part, parts)]
    return "\n".join(lines)


def fact_row(name: str, hint: object, parts: dict[type, None]) -> str:
    fact = events.FACTS[name]
    types = list(typing.get_args(hint)) if typing.Any in typing.get_args(hint) else [hint]
    said = [shape(part, parts) for part in types if part is not typing.Any]
    if any(trailer.form is MEASUREMENT for trailer in TRAILERS if trailer.attribute == name):
        said.append('`{"inherited_from": integer}`')
    if typing.Any in types and fact.needed != fact.kinds:
        said.append("null")
    on = "every event" if fact.kinds == events.EVERY else " ".join(kind for kind in EventKind if kind in fact.kinds)
    return f"| `{name}` | {' or '.join(said)} | {on} | {cell(fact.meaning)} |"


HEAD = ["| field | type | meaning |", "|---|---|---|"]


def table(kind: type, parts: dict[type, None]) -> list[str]:
    hints = typing.get_type_hints(kind, localns=WORDS)
    said, written = meanings(kind), tokens(kind)
    types = {field.name: shape(hints[field.name], parts) for field in fields(kind)}
    for name in written.keys() - types:  # a property
        text = inspect.cleandoc(getattr(kind, name).__doc__).partition("\n")[0]
        said[name], types[name] = cell(text.removesuffix(".")), "in trailers only"
    if not written:
        return [*HEAD, *(f"| `{name}` | {types[name]} | {said[name]} |" for name in types), ""]
    head = ["| field | type | token | absent | meaning |", "|---|---|---|---|---|"]
    rows = [
        f"| `{name}` | {types[name]} | {' | '.join(written.get(name, ('', '')))} | {said[name]} |" for name in types
    ]
    return [*head, *rows, ""]


def shape(hint: object, parts: dict[type, None]) -> str:
    """Return the JSON type of a field, and take note of the objects in it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in {UnionType, typing.Union}:
        return " or ".join(shape(one, parts) for one in inner)
    if origin is typing.Literal:
        return "string: " + " ".join(f"`{one}`" for one in inner)
    if origin is Mapping:
        return f"object of {shape(inner[1], parts)}s"
    if origin is tuple:
        return f"list of {shape(inner[0], parts)}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "string: " + " ".join(f"`{one.value}`" for one in hint)
    if is_dataclass(hint) and isinstance(hint, type):
        parts.setdefault(hint)
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    return PLAIN[typing.cast("type", hint)]


def meanings(kind: type) -> dict[str, str]:
    """Return what the docstrings of a class and those above it say of its fields."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        text = inspect.cleandoc(part.__doc__ or "").partition("Attributes:\n")[2]
        for name, said in re.findall(r"^    (\w+): (.*(?:\n      +.*)*)", text, flags=re.MULTILINE):
            found[name] = cell(" ".join(said.split()).removesuffix(".").replace("``", "`"))
    return {field.name: found.get(field.name, described(field.name)) for field in fields(kind)}


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def described(name: str) -> str:
    """Return the words of fields that no docstring lists, because their names say it all."""
    return {"sign": "`+` or `-`", "cost": "what it cost"}.get(name, f"the {name.replace('_', ' ')}")


def first_line(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n")[0].replace("``", "`")


def trailer_reference() -> str:
    """Return the table of trailers; a value with fields has them in the table of its class."""
    lines = ["| trailer | on | value | says |", "|---|---|---|---|"]
    for trailer in TRAILERS:
        on = " ".join(kind for kind in KINDS if kind in trailer.kinds)
        said = f"{trailer.meaning}; one for each" if trailer.many else trailer.meaning
        whom = "every event" if len(trailer.kinds) == len(KINDS) else on
        lines.append(f"| `Skillgit-{trailer.key}` | {whom} | {value_of(trailer.form)} | {said} |")
    return "\n".join(lines) + "\n"


def value_of(form: ValueForm | Record) -> str:
    if not isinstance(form, Record):
        return form.name
    if form.make is dict:
        return " ".join(f"`{field.key}=`" if field.key else field.kind.name for field in form.fields)
    return f"[{form.make.__name__}](#{form.make.__name__.lower()})"


RECORDS = {trailer.form.make: trailer.form for trailer in TRAILERS if isinstance(trailer.form, Record)}
"""The classes that trailers write, with how they do."""


def tokens(kind: type) -> dict[str, tuple[str, str]]:
    """Return for each field of a class its token in a trailer, and what the absence of the token says."""
    if (record := RECORDS.get(kind)) is None:
        return {}
    written = {
        field.attribute: (f"`{field.key}=`" if field.key else "the first word", absence(record.absent(field)))
        for field in record.fields
    }
    return written | ({record.inner[0]: ("its tokens", "never")} if record.inner else {})


def absence(said: object) -> str:
    """Return what the absence of a field says, in a cell."""
    if said is NEEDED:
        return "never"
    if said is None or said == "":
        return "none"
    return f"`{said}`" if isinstance(said, str) else str(said).lower()


def test_the_reference_of_trailers_is_that_of_their_table():
    check_part("scripting.md", "trailers", trailer_reference())


def test_the_reference_of_the_stream_is_that_of_the_events():
    check_part("scripting.md", "fields", reference())


def test_the_fields_that_all_events_have_are_those_of_the_stream():
    text = page("scripting.md").partition("## Events\n")[2].partition("<!-- fields -->")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
    source = ast.parse(inspect.getsource(__import__("skillgit.app.history.plumbing", fromlist=["events"])))
    mappings = (node for node in ast.walk(source) if isinstance(node, ast.Dict))
    written = {key.value for mapping in mappings for key in mapping.keys if isinstance(key, ast.Constant)}
    assert documented == written - {"inherited_from"}
    assert SCHEMA in text
