"""Configuration files and overrides as they are written: values, lines, paths, and the files they are based on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

import yaml

from skillgit.app.setup.config.schema import SECTIONS
from skillgit.app.workspace.shipped_configurations import shipped, shipped_folder
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.gate_decision import PINNED_TYPE
from skillgit.errors import ConfigError

Kind = Literal["default", "file", "override"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrigin:
    kind: Kind  # a default, a file or an override on the command line
    where: str = ""  # `path:line` of a file, `-o key=value` of an override, empty for a default

    def __str__(self) -> str:
        return self.where or self.kind

    @property
    def place(self) -> str:
        """Where the value was written, without the value, which may be a secret."""
        return self.where.partition("=")[0] if self.kind == "override" else str(self)


DEFAULT = ValueOrigin(kind="default")

NESTED = frozenset({"model.context_window", "model.prices"})
"""Keys whose values are merged entry by entry; an entry is a key of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    value: object
    text: str | None  # characters as written; empty for null, None for a list or mapping in a file
    origin: ValueOrigin
    folder: Path  # the folder that a relative path refers to


def nested(key: str) -> str:
    """Return the nested key that ``key`` is an entry of; empty if it is none."""
    return next((name for name in NESTED if key.startswith(f"{name}.")), "")


def shown(value: object) -> str:
    """Write a value as it would be in a configuration."""
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, default=str)


Layer = dict[str, Leaf]
"""Dotted key, or flat key, to value."""


PATHS = ("gate.pinned", "env.skill_init", "env.split_dir", "env.data_path", "env.split_output_dir", "env.out_root")
PLUGINS = (
    "env.name",
    "gate.policy",
    "train.strategy",
    "model.optimizer_backend",
    "model.target_backend",
    "model.judge_backend",
)


def located(
    layer: Layer, directory: Path, environ: Mapping[str, str], more: Iterable[str] = ()
) -> tuple[Layer, list[str]]:
    """Return ``layer`` with absolute paths, and notes on them for the user; ``more`` are further keys of paths."""
    layer_located, notes = dict(layer), []
    for key in (*PATHS, *PLUGINS, *more):
        leaf = layer_located.get(key)
        if leaf is None or not leaf.text or (key == "gate.pinned" and leaf.text.startswith(PINNED_TYPE)):
            continue
        text, attribute = leaf.text, ""
        if key in PLUGINS:
            text, colon, attribute = leaf.text.rpartition(":")
            attribute = f"{colon}{attribute}"
            if not text.endswith(".py"):
                continue
        path, note = _locate(key, text, leaf, directory, environ)
        notes.extend(note)
        layer_located[key] = replace(leaf, value=f"{path}{attribute}", text=f"{path}{attribute}")
    return layer_located, notes


def _locate(key: str, text: str, leaf: Leaf, directory: Path, environ: Mapping[str, str]) -> tuple[Path, list[str]]:
    if "\0" in text:
        raise ConfigError(f"{leaf.origin}: {key} is not a valid path: it contains a NUL character", hint="remove it")
    if text.startswith("~/") and environ.get("HOME"):
        text = f"{environ['HOME']}{text[1:]}"
    here, there = (leaf.folder / text).resolve(), (directory / text).resolve()
    if here.exists() or Path(text).is_absolute():
        return here, []
    # In a checkout whose configurations are in ``configs``, the reference's paths begin above it.
    top = next((path.parent for path in (leaf.folder, *leaf.folder.parents) if path.name == "configs"), None)
    if top is not None and (top / Path(text).parts[0]).exists():
        above = (top / text).resolve()
        return above, [f"{leaf.origin}: {key} is taken from the folder above configs: {above}"]
    if here != there and there.exists():
        return there, [f"{leaf.origin}: {key} is taken from the working directory: {there}"]
    return here, []


def read_overrides(overrides: Sequence[str], folder: Path) -> list[Layer]:
    """Return one layer for each ``key=value``, so that later ones win; relative paths start at ``folder``."""
    return [_layer(override, folder) for override in overrides]


def _layer(override: str, folder: Path) -> Layer:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"'-o {override}' is not an override", hint="write it like -o train.batch_size=20")
    value, spelling = _value(text)
    origin = ValueOrigin(kind="override", where=f"-o {override}")
    name = key.strip()
    if name in NESTED and isinstance(value, dict):
        return {
            f"{name}.{entry}": Leaf(value=inner, text=None, origin=origin, folder=folder)
            for entry, inner in value.items()
        }
    return {name: Leaf(value=value, text=spelling, origin=origin, folder=folder)}


def _value(text: str) -> tuple[object, str]:
    """Return the value, and its characters without quotation marks."""
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        value = _constructed(node, loader) if node else None
    except yaml.YAMLError:
        return text, text
    if isinstance(node, yaml.ScalarNode) and node.style:
        return value, str(node.value)
    return value, "" if value is None else text.strip()


def find(name: str, folder: Path) -> Path:
    """Return the file that ``name`` means: a path that starts at ``folder``, else a shipped configuration."""
    for start in (folder, shipped_folder()):
        for suffix in ("", ".yaml", ".yml"):
            path = start / f"{name}{suffix}"
            if path.is_file():
                return path.resolve()
    names = (shipped_name.removesuffix("/default") for shipped_name in shipped() if shipped_name.endswith("/default"))
    listing = f"name a file, demo, or NAME/default, NAME one of {', '.join(names)}"
    hint = did_you_mean(name, shipped(), otherwise=listing)
    raise ConfigError(f"there is no configuration '{name}'", hint=hint)


_Safe: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBERS = {
    "tag:yaml.org,2002:int": r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)",
    "tag:yaml.org,2002:float": r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)",
}


class Loader(_Safe):  # type: ignore[misc, valid-type]
    """Reads numbers as YAML 1.2 does: 1e-3 is one, and 1:30, which YAML 1.1 counts to the base of 60, is text."""


Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] not in _NUMBERS]
    for first, resolvers in _Safe.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), list("-+.0123456789"))


BASE = "_base_"


def read_layers(path: Path, directory: Path, chain: tuple[Path, ...] = ()) -> list[Layer]:
    """Return the layers of a file: those of its bases, each before the files that are based on it, then its own."""
    if path in chain:
        circle = " -> ".join(_spelled(link, directory) for link in (*chain[chain.index(path) :], path))
        raise ConfigError(f"configurations are based on each other in a circle: {circle}", hint=f"remove a {BASE}")
    name = _spelled(path, directory)
    root, loader = _compose(path, name)
    layers: list[Layer] = []
    own: Layer = {}
    for key, node in _entries(root, loader, name):
        if key == BASE:
            for base in _bases(node, loader, name):
                layers.extend(read_layers(_base_file(base, path, name), directory, (*chain, path)))
        else:
            own.update(_leaves(key, node, loader, name=name, folder=path.parent))
    return [*layers, own]


def _spelled(path: Path, directory: Path) -> str:
    """Return the shortest clear spelling of a path: relative to where the user is, if it is below."""
    return str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path)


def _compose(path: Path, name: str) -> tuple[yaml.Node | None, Loader]:
    try:
        loader = Loader(path.read_text(encoding="utf-8-sig"))
        return loader.get_single_node(), loader
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8", hint="save it as UTF-8") from error
    except yaml.YAMLError as error:
        raise _invalid(name, error) from error
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}", hint="check its permissions") from error


def _invalid(name: str, error: yaml.YAMLError) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    where = f"{name}:{mark.line + 1}" if mark else name
    return ConfigError(f"{where} is not valid YAML: {problem}", hint="check indentation, colons and quotation marks")


def _entries(node: yaml.Node | None, loader: Loader, name: str) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the keys of a mapping in order, merge keys included."""
    if node is None:
        return
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{name}:{_line(node)} is not a mapping", hint="a configuration has lines like 'key: value'")
    keys = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
    if len(keys) < len(node.value):
        duplicates: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{name}:{_line(key)} has a key that is not text", hint="put it in quotation marks")
            if key.value in duplicates:
                raise ConfigError(f"{name}:{_line(key)} sets '{key.value}' a second time", hint="keep one of them")
            duplicates.add(key.value)
    loader.flatten_mapping(node)
    for key, value in node.value:
        yield key.value, value


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _leaves(key: str, node: yaml.Node, loader: Loader, *, name: str, folder: Path) -> Layer:
    """Return the values under a top-level key: those of a section, or the one of a flat key."""
    if not isinstance(node, yaml.MappingNode):
        if key in SECTIONS and isinstance(node, yaml.ScalarNode) and not node.value:
            return {}
        return {key: _leaf(node, loader, name=name, folder=folder)}
    leaves: Layer = {}
    for inner, value in _entries(node, loader, name):
        full_name = f"{key}.{inner}"
        if full_name in NESTED and isinstance(value, yaml.MappingNode):
            for entry, price in _entries(value, loader, name):
                leaves[f"{full_name}.{entry}"] = _leaf(price, loader, name=name, folder=folder)
        else:
            leaves[full_name] = _leaf(value, loader, name=name, folder=folder)
    return leaves


def _constructed(node: yaml.Node, loader: Loader) -> object:
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, AttributeError) as error:  # 2026-99-99, a number of 5,000 digits
        problem = "a value looks like a date or a number but is not one"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def _leaf(node: yaml.Node, loader: Loader, *, name: str, folder: Path) -> Leaf:
    try:
        value = _constructed(node, loader)
    except yaml.YAMLError as error:
        raise _invalid(name, error) from error
    text: str | None = None
    if isinstance(node, yaml.ScalarNode):
        text = "" if value is None else str(node.value)
    return Leaf(
        value=value,
        text=text,
        origin=ValueOrigin(kind="file", where=f"{name}:{_line(node)}"),
        folder=folder,
    )


def _bases(node: yaml.Node, loader: Loader, name: str) -> list[str]:
    value = _leaf(node, loader, name=name, folder=Path()).value
    bases = [value] if isinstance(value, str) else value
    if not isinstance(bases, list) or not all(isinstance(base, str) for base in bases):
        problem = f"{name}:{_line(node)}: {BASE} must be a path or a list of paths"
        raise ConfigError(problem, hint=f"write {BASE}: ../_base_/default.yaml")
    return cast("list[str]", bases)


def _base_file(base: str, path: Path, name: str) -> Path:
    shipped_base = shipped_folder() / "_base_" / f"{base}.yaml"
    try:
        return find(base, path.parent)
    except ConfigError as error:
        if "/" not in base and shipped_base.is_file():
            return shipped_base.resolve()
        raise ConfigError(f"{name}: {BASE} names '{base}', which does not exist", hint=error.hint) from error
