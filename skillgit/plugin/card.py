"""What a benchmark is, in a file next to its code: ``benchmark.yaml`` is read without loading the code.

It has the fields of :class:`EnvironmentInfo`. Each of ``options`` is a name with its help and a default, or values,
of which the first is the default. A name alone is an option that many share, or a group of them
(``shared_options.yaml``, and ``data``: those of :mod:`skillgit.plugin.splits`); what a card says of one replaces that
part of it. Paths are relative to the card, and a subset of the public data says what differs from the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from skillgit.errors import ConfigError
from skillgit.files import read_plain
from skillgit.lazy import loaded_on_use
from skillgit.plugin.environment import EnvironmentInfo, Option, PublicSource
from skillgit.plugin.splits import OPTIONS

with loaded_on_use():
    import pydantic
    import yaml

CARD = "benchmark.yaml"


@cache
def read_card(folder: Path) -> EnvironmentInfo:
    """Return what the card in ``folder`` says; a ConfigError names what is wrong with it."""
    path = folder / CARD
    try:
        card = _mapping(path)
        options = tuple(_options(card.pop("options", None) or {}))
        public = _public(card.pop("public", None), folder)
        card.pop("rows", None)  # see row_fields
        _refuse_more(EnvironmentInfo, card)
        _refuse_more(PublicSource, public or {})
        return pydantic.TypeAdapter(EnvironmentInfo).validate_python({**card, "options": options, "public": public})
    except pydantic.ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        problem = f"{path}: {place} cannot be used: {error.errors()[0]['msg']}"
    except (TypeError, ValueError, AttributeError, yaml.YAMLError) as error:
        problem = f"{path} cannot be read: {' '.join(str(error).split())}"
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror}"
    raise ConfigError(problem, hint="docs/extending.md shows a card")


def _refuse_more(kind: type, said: Mapping[str, object]) -> None:
    if more := said.keys() - {field.name for field in fields(kind)}:
        raise ValueError(f"it says {', '.join(sorted(more))}, which no card does")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowField:
    """Where rows of data files have a field of an item, as a card says it: ``NAME | OTHER NAME, KIND, else DEFAULT``.

    The kinds are text, ``blanks``, a text that may be of blanks alone, and ``list``, of texts. Without a default the
    field is required.
    """

    names: tuple[str, ...]
    kind: str = ""
    default: object = None


@cache
def row_fields(folder: Path) -> Mapping[str, RowField]:
    """Return where rows have the fields of items, by the ``rows`` of the card in ``folder``."""
    return {name: _row_field(str(words)) for name, words in _mapping(folder / CARD).get("rows", {}).items()}


def _row_field(words: str) -> RowField:
    places, _, fallback = words.partition(", else")
    names, _, kind = places.partition(", ")
    empty = [] if kind == "list" else ""
    default = fallback.strip() or empty if fallback or words.endswith(", else") else None
    return RowField(names=tuple(name.strip() for name in names.split("|")), kind=kind, default=default)


def _mapping(path: Path) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    value = yaml.load(read_plain(path, most=None, follow=True), Loader=loader)  # noqa: S506 - it is a safe one
    if not isinstance(value, dict):
        raise TypeError("it is not a mapping")
    return value


def shared_options(name: str) -> tuple[Option, ...]:
    """Return the options of a group that many environments have, or the one called ``name``."""
    return _shared()[name]


@cache
def _shared() -> Mapping[str, tuple[Option, ...]]:
    """Return the options that many environments have, by their own names and by those of their groups."""
    groups = _mapping(Path(__file__).with_name("shared_options.yaml"))
    shared = {name: tuple(_option(key, facts, ()) for key, facts in group.items()) for name, group in groups.items()}
    shared["data"] = OPTIONS
    return {option.name: (option,) for group in shared.values() for option in group} | shared


def _options(card: Mapping[str, Any]) -> Iterator[Option]:
    for name, facts in card.items():
        shared = _shared().get(name, ())
        if facts is None and not shared:
            raise ValueError(f"no environment shares an option '{name}': say what it is")
        yield from shared if facts is None else (_option(name, facts, shared),)


def _option(name: str, facts: Mapping[str, Any], shared: tuple[Option, ...]) -> Option:
    known = {field: getattr(shared[0], field) for field in ("default", "help", "path", "values")} if shared else {}
    merged = {"default": next(iter(facts.get("values", ())), None), **known, **facts}
    if not isinstance(merged["default"], str | int | float | bool):
        raise TypeError(f"the option '{name}' has no default")
    return Option(**{**merged, "name": name, "type": type(merged["default"])})


def _public(card: Any, folder: Path) -> Any:  # noqa: ANN401 - it is checked as a whole by the types of PublicSource
    """Return the public source with each subset whole, and the folders of splits."""
    if card is None:
        return None
    subsets = card.pop("subsets", {})
    card["splits"] = {name: (folder / place).resolve() for name, place in card.get("splits", {}).items()}
    return {**card, "subsets": {name: {**card, **(differences or {})} for name, differences in subsets.items()}}
