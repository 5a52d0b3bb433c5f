"""A configuration as something that is filled in: its keys, what may be written there, and where each comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Literal, Union, get_args, get_origin

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.resolved import ConfigEntry, ResolvedConfig
from skillgit.app.setup.config.schema import SECTIONS
from skillgit.app.setup.recorded_setup import recorded_config
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.shipped_configurations import shipped
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.untrusted.allowed_settings import TAKEN

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    key: str
    text: str  # its value, as -o takes it
    origin: str  # ``path:line`` of a file, the run that recorded it, or ``default``
    help: str
    choices: tuple[str, ...] = ()  # the values that it may have; none where there is no list
    is_switch: bool = False
    is_number: bool = False  # nothing but a number, so that it cannot be null
    is_whole: bool = False  # a number without a fraction
    least: float | None = None  # what the schema allows at least; what a fraction has to exceed
    most: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSection:
    name: str
    help: str
    fields: tuple[FormField, ...]


def configurations(context: Context) -> tuple[str, ...]:
    """Return the configurations that ``train`` takes by name: those in the folder, then those of skillgit."""
    folder = context.directory
    paths = sorted({*folder.glob("*.yaml"), *folder.glob("*.yml"), *folder.glob("configs/**/*.yaml")})
    own = (path.relative_to(folder).as_posix() for path in paths if "_base_" not in path.parts)
    return (*own, *shipped())


def chosen_config(workspace: Workspace, config: str, run: str) -> ResolvedConfig:
    """Return the configuration ``config``, or the one that ``run`` recorded if that is named."""
    return recorded_config(workspace, run, ()) if run else load_config(workspace.context, config, ())


def form_of(config: ResolvedConfig) -> tuple[FormSection, ...]:
    shapes = SECTIONS | {"env": type(config.values.env)}
    return tuple(
        FormSection(
            name=name,
            help=(SECTIONS[name].__doc__ or "").strip(),
            fields=tuple(
                _field(entry, shape.model_fields.get(entry.key.partition(".")[2]))
                for entry in config.entries
                if entry.key.startswith(f"{name}.")
            ),
        )
        for name, shape in shapes.items()
    )


def of_owner_only(key: str, text: str) -> bool:
    """Whether ``key`` may get the value ``text`` only from the owner of this machine, as it may name a file or program.

    A colleague's word counts as much as a stranger's configuration; limits and pacing of calls are theirs to set, too.
    """
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        value = text
    if key in TAKEN:
        return not (value is None or TAKEN[key](value))
    return key not in _LIMITS or not isinstance(value, int | float | None)


def _is_harmless(annotation: object) -> bool:
    """Whether values of a type are numbers, flags and null, none of which can name anything."""
    if get_origin(annotation) is Annotated:
        return _is_harmless(get_args(annotation)[0])
    return annotation in {int, float, bool, NoneType} or (
        get_origin(annotation) in {Union, UnionType} and all(map(_is_harmless, get_args(annotation)))
    )


_LIMITS = frozenset(
    f"{section}.{name}"
    for section in ("budget", "calls")
    for name, field in SECTIONS[section].model_fields.items()
    if _is_harmless(field.annotation)
)
"""What a colleague may set besides: by the kind of its values, so that a key that is added later is not among them for
the name of its section."""


def written(value: object) -> str:
    """Return ``value`` as ``-o KEY=VALUE`` takes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _field(entry: ConfigEntry, field: FieldInfo | None) -> FormField:
    annotation = None if field is None else field.annotation
    choices, is_whole = tuple(_choices(annotation)), annotation is int
    bounds = {name: getattr(limit, name) for limit in (field.metadata if field else ()) for name in _limits(limit)}
    return FormField(
        key=entry.key,
        text=written(entry.value),
        origin=str(entry.origin),
        help=(field.description or "") if field is not None else "",
        choices=choices,
        is_switch=annotation is bool,
        is_number=annotation in {int, float} and not choices,
        is_whole=is_whole,
        least=bounds["gt"] + is_whole if "gt" in bounds else bounds.get("ge"),
        most=bounds["lt"] - is_whole if "lt" in bounds else bounds.get("le"),
    )


def _choices(annotation: object) -> Iterator[str]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(member.value) for member in annotation)
    elif get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    elif (parts := get_args(annotation)) and NoneType in parts:
        choices = list(chain.from_iterable(_choices(part) for part in parts if part is not NoneType))
        yield from (["null", *choices] if choices else [])


def _limits(limit: object) -> Iterator[str]:
    return (name for name in ("ge", "gt", "le", "lt") if isinstance(getattr(limit, name, None), int | float))
