"""What is declared of trailers and events makes their references; ``UPDATE_DOCS=1`` writes them anew."""

from __future__ import annotations

import ast
import inspect
import os
import re
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType

import skillgit.domain.cost
import skillgit.domain.edit
import skillgit.domain.evaluation
import skillgit.domain.gate_decision
import skillgit.domain.placebo
import skillgit.domain.proposal
import skillgit.domain.protected_regions
from skillgit.app.history.plumbing import SCHEMA
from skillgit.domain import event as events
from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.domain.untrusted.model_text import SkillText
from skillgit.store.trailer_table import KINDS, TRAILERS
from skillgit.store.trailer_values import MEASUREMENT, NEEDED, Record

PAGE = Path(__file__).parents[2] / "docs" / "scripting.md"
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
    lines += [f"| `{kind}` | {TRAITS[kind].meaning.removesuffix('.')} |" for kind in EventKind]
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
    said = meanings(kind)
    rows = [f"| `{field.name}` | {shape(hints[field.name], parts)} | {said[field.name]} |" for field in fields(kind)]
    return [*HEAD, *rows, ""]


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
    """Return the table of trailers, and one of the fields of each whose value has any."""
    lines = ["| trailer | on | value | says |", "|---|---|---|---|"]
    records: dict[str, Record] = {}
    for trailer in TRAILERS:
        on = " ".join(kind for kind in KINDS if kind in trailer.kinds)
        value = f"[fields](#skillgit-{trailer.key.lower()})" if isinstance(trailer.form, Record) else trailer.form.name
        if isinstance(trailer.form, Record):
            records.setdefault(trailer.key, trailer.form)
        said = f"{trailer.meaning}; one for each" if trailer.many else trailer.meaning
        whom = "every event" if len(trailer.kinds) == len(KINDS) else on
        lines.append(f"| `Skillgit-{trailer.key}` | {whom} | {value} | {said} |")
    for key, record in records.items():
        lines += ["", f"### `Skillgit-{key}`", "", "| field | token | absent | says |", "|---|---|---|---|"]
        lines += field_rows(record)
    return "\n".join(lines) + "\n"


def field_rows(record: Record) -> list[str]:
    kind = events.Event if record.make is dict else record.make
    said = (
        meanings(kind)
        | ({name: fact.meaning for name, fact in events.FACTS.items()} if kind is events.Event else {})
        | {
            name: inspect.cleandoc(value.__doc__ or "").partition("\n")[0].removesuffix(".")
            for name, value in vars(kind).items()
            if isinstance(value, property)
        }
    )
    rows = []
    for field in record.fields:
        key = f"`{field.key}=`" if field.key else "the word before the fields"
        rows.append(f"| {key} | {field.kind.name} | {absence(record.absent(field))} | {said[field.attribute]} |")
    return rows + (field_rows(record.inner[1]) if record.inner else [])


def absence(said: object) -> str:
    """Return what the absence of a field says, in a cell."""
    if said is NEEDED:
        return "never"
    if said is None or said == "":
        return "none"
    return f"`{said}`" if isinstance(said, str) else str(said).lower()


def written_anew(name: str, content: str) -> tuple[str, str]:
    """Return the page as it is and as it should be, with ``content`` between the marks called ``name``."""
    page = PAGE.read_text(encoding="utf-8")
    head, begin, rest = page.partition(f"<!-- {name} -->\n")
    _, end, tail = rest.partition(f"<!-- /{name} -->")
    assert begin
    assert end
    wanted = f"{head}{begin}\n{content}\n{end}{tail}"
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(wanted, encoding="utf-8")
        page = wanted
    return page, wanted


def test_the_reference_of_trailers_is_that_of_their_table():
    page, wanted = written_anew("trailers", trailer_reference())
    assert page == wanted, "run UPDATE_DOCS=1 pytest tests/cli/test_plumbing_reference.py"


def test_the_reference_of_the_stream_is_that_of_the_events():
    page, wanted = written_anew("fields", reference())
    assert page == wanted, "run UPDATE_DOCS=1 pytest tests/cli/test_plumbing_reference.py"


def test_the_fields_that_all_events_have_are_those_of_the_stream():
    text = PAGE.read_text(encoding="utf-8").partition("## Events\n")[2].partition("<!-- fields -->")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
    source = ast.parse(inspect.getsource(__import__("skillgit.app.history.plumbing", fromlist=["events"])))
    mappings = (node for node in ast.walk(source) if isinstance(node, ast.Dict))
    written = {key.value for mapping in mappings for key in mapping.keys if isinstance(key, ast.Constant)}
    assert documented == written - {"inherited_from"}
    assert SCHEMA in text
