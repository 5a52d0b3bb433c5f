"""Turn written values into the typed configuration, the free keys of models included, and report what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from skillgit.app.setup.config.files import Layer, Leaf, nested, shown
from skillgit.app.setup.config.schema import SECTIONS, Config, EnvSettings
from skillgit.app.setup.server_programs import COMPATIBLE
from skillgit.domain.did_you_mean import nearest
from skillgit.domain.finding import Finding
from skillgit.errors import ConfigError
from skillgit.plugin.registry import load_backend

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


ROLES = ("target", "optimizer", "judge")
_FIXED = ("backend", "model", "reasoning_effort")
"""What keys of a role say that no backend reads; a misspelt one is not a setting."""


def belongs(name: str, backends: Iterable[str]) -> str:
    """Return the backend whose free key ``name`` is, or an empty string."""
    prefixes = [backend for backend in backends if name.startswith(f"model.{backend}_")]
    return max(prefixes, key=len, default="")


def role_of(name: str) -> str:
    """Return the role whose free key ``name`` is, or an empty string."""
    role, _, setting = name.removeprefix("model.").partition("_")
    return role if name.startswith("model.") and role in ROLES and setting and not nearest(setting, _FIXED) else ""


def is_free(name: str, backends: Iterable[str]) -> bool:
    """Say whether ``name`` is a setting that a backend has to check."""
    return bool(belongs(name, backends) or role_of(name))


def settings_of(
    settings: Mapping[str, object], roles: Iterable[str], backend: str, backends: Collection[str]
) -> dict[str, object]:
    """Return a backend's settings for ``roles``, later ones winning, out of all free keys without their section."""
    result = _after(f"{backend}_", settings)
    for role in roles:
        own = _after(f"{role}_", settings)
        plain = {name: value for name, value in own.items() if not belongs(f"model.{name}", backends)}
        result |= plain | _after(f"{backend}_", own)
    return result


def _after(prefix: str, settings: Mapping[str, object]) -> dict[str, object]:
    return {name[len(prefix) :]: value for name, value in settings.items() if name.startswith(prefix)}


def written_as(keys: Collection[str], roles: Sequence[str], backend: str, setting: str) -> str:
    """Return the key that sets ``setting`` of ``backend`` in a role; the arguments are as for ``settings_of``."""
    of_roles = (name for role in reversed(roles) for name in (f"{role}_{backend}_{setting}", f"{role}_{setting}"))
    return next((f"model.{name}" for name in of_roles if name in keys), f"model.{backend}_{setting}")


_LIST = "skillgit config CONFIG lists every key with its value"
_PRICE = "2 to 4 numbers: US dollars for a million tokens in, out, read from a cache, written to it"


def typed(layer: Layer, keys: Mapping[str, object], env: type[EnvSettings], backends: Sequence[str]) -> Config:
    """Return the configuration that ``layer`` describes; what it does not say has its default."""
    values: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
    problems: list[Finding] = []
    for key, leaf in layer.items():
        section, _, name = key.partition(".")
        if key in keys:
            values[section][name] = leaf.text if leaf.text is not None and _takes_text(keys[key]) else leaf.value
        elif outer := nested(key):
            _mapping(values["model"], outer.partition(".")[2])[key[len(outer) + 1 :]] = (
                tuple(leaf.value) if isinstance(leaf.value, list) else leaf.value
            )
        elif section == "model" and is_free(key, backends):
            _mapping(values["model"], "backend_settings")[name] = leaf.value
        else:
            problems.append(_unknown(key, leaf, keys, backends, layer))
    sections: dict[str, BaseModel] = {}
    for section, shape in SECTIONS.items():
        try:
            sections[section] = (env if section == "env" else shape).model_validate(values[section])
        except ValidationError as error:
            problems.extend(_problem(section, detail, layer) for detail in error.errors(include_url=False))
    if problems:
        hint = next((problem.hint for problem in problems if problem.hint), "")
        raise ConfigError("; ".join(problem.message for problem in problems), hint=hint, findings=problems)
    return Config.model_construct(**cast("dict[str, Any]", sections))


def _mapping(values: dict[str, object], name: str) -> dict[str, object]:
    mapping = values.setdefault(name, {})
    return mapping if isinstance(mapping, dict) else {}


def _takes_text(annotation: object) -> bool:
    """Say whether a key takes text, so that it gets what was written and not what YAML guesses of it."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _takes_text(get_args(annotation)[0])
    if origin is Literal:
        return all(type(choice) is str for choice in get_args(annotation))
    if origin in {Union, UnionType}:
        return any(map(_takes_text, get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return issubclass(annotation, str)
    return annotation is str


def _unknown(key: str, leaf: Leaf, keys: Mapping[str, object], backends: Sequence[str], layer: Layer) -> Finding:
    section, dot, name = key.partition(".")
    problem, hint = f"there is no key '{key}'", f"sections are {', '.join(SECTIONS)}"
    if not dot and key in SECTIONS:
        return _finding(leaf, f"'{key}' is a section and holds keys, not {shown(leaf.value)}", hint=_LIST)
    if section not in SECTIONS:
        near = nearest(section, list(SECTIONS))
        if near and dot:
            key_there = f"{near}.{name}"
            if near == "model" and key_there not in keys:
                near, hint = near_setting(key_there, list(keys), backends, layer)
                hint = f"the section is called model; {hint}"
            else:
                near = key_there if key_there in keys else nearest_key(key_there, list(keys))
        problem = f"there is no section '{section}'" if dot else problem
    if not dot:
        near = near or nearest_key(key, list(keys))
    elif section in SECTIONS:
        near = nearest_key(key, list(keys))
        hint = f"keys of {section}: {', '.join(k.partition('.')[2] for k in keys if k.startswith(f'{section}.'))}"
        if section == "model":
            near, hint = near_setting(key, list(keys), backends, layer)
    return _finding(leaf, problem, hint=f"did you mean '{near}'?" if near else hint)


def settings_of_backends(backends: Iterable[str]) -> dict[str, Mapping[str, object]]:
    return {name: load_backend(name, Path()).info.settings or {} for name in backends}


def near_setting(key: str, keys: Sequence[str], backends: Sequence[str], layer: Layer) -> tuple[str, str]:
    """Return the key of the section ``model`` that is probably meant, a backend's too, and what to say besides."""
    settings = settings_of_backends(backends)
    roles = {role: leaf.text for role in ROLES if (leaf := layer.get(f"model.{role}_backend")) is not None}
    name = key.partition(".")[2]
    owners = [backend for backend in backends if name in settings[backend]]
    if owners:  # such as model.base_url: a setting without its backend
        owner = next((backend for backend in roles.values() if backend in owners), "")
        if owner:
            return f"model.{owner}_{name}", ""
        owner = COMPATIBLE if COMPATIBLE in owners else owners[0]
        return "", f"did you mean 'model.{owner}_{name}', with model.target_backend={owner}?"
    own = [f"model.{backend}_{setting}" for backend in backends for setting in settings[backend]]
    own += [f"model.{role}_{setting}" for role, backend in roles.items() for setting in settings.get(backend or "", ())]
    siblings = [name for name in keys if name.startswith("model.")]
    return nearest(key, [*siblings, *own]) or nearest_key(key, keys), (
        f"keys of a backend begin with its name; installed: {', '.join(backends)}"
    )


def _problem(section: str, error: ErrorDetails, layer: Layer) -> Finding:
    if not error["loc"]:
        message = str(error["msg"]).removeprefix("Value error, ")
        names = {
            key.partition(".")[2]: str(leaf.origin) for key, leaf in layer.items() if key.startswith(f"{section}.")
        }
        mentions = mentioned(message, names)
        return _finding(None, f"{section}: {message}{f' ({mentions})' if mentions else ''}", hint=_LIST)
    key = ".".join([section, *(str(part) for part in error["loc"] if not isinstance(part, int))])
    spelling = _written(key, layer)
    if spelling is None:
        return _finding(None, f"{key} is missing", hint=f"add it to the configuration, or -o {key}=VALUE")
    name, leaf = spelling
    if error["type"] == "value_error":  # a validator of ours says it in a sentence, and may know what helps
        reason = error["ctx"]["error"]
        return _finding(leaf, f"{name}: {reason}", hint=getattr(reason.__cause__, "hint", "") or _LIST)
    near = nearest(str(leaf.value), choices(error))
    expectation = _PRICE if name.startswith("model.prices") else allowed(error)
    value = shown(leaf.value) if isinstance(leaf.value, str) or not leaf.text else leaf.text
    return _finding(
        leaf, f"{name} is {value}; it must be {expectation}", hint=f"did you mean '{near}'?" if near else _LIST
    )


def _written(key: str, layer: Layer) -> tuple[str, Leaf] | None:
    """Return the longest part of ``key`` that was written, for an error may be inside a value."""
    while key and key not in layer:
        key = key.rpartition(".")[0]
    return (key, layer[key]) if key else None


_EXPECTED = {
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


def allowed(error: ErrorDetails) -> str:
    """Return what pydantic would have accepted, to be after ``it must be``."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
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


def _finding(leaf: Leaf | None, sentence: str, *, hint: str) -> Finding:
    return Finding(rule="configuration", path="" if leaf is None else str(leaf.origin), sentence=sentence, hint=hint)
