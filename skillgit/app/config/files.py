"""Read configuration files: YAML with the line of every key, and the files that they are based on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import yaml

from skillgit.app.config import sources
from skillgit.app.config.leaf import NESTED, Layer, Leaf, Origin
from skillgit.app.config.schema import SECTIONS
from skillgit.app.config.yaml_loader import Loader
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE = "_base_"


def read_layers(path: Path, directory: Path) -> list[Layer]:
    """Return the layers of a file: those of its bases, each before the files that are based on it, then its own.

    Raises:
        ConfigError: A file is missing or not valid, or files are based on each other in a circle.
    """
    return _read(path, directory, ())


def _read(path: Path, directory: Path, chain: tuple[Path, ...]) -> list[Layer]:
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
                layers.extend(_read(_base_file(base, path, name), directory, (*chain, path)))
        else:
            own.update(_leaves(key, node, loader, name=name, folder=path.parent))
    return [*layers, own]


def _spelled(path: Path, directory: Path) -> str:
    """Return the shortest clear spelling of a path: relative to where the user is, if it lies below."""
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
    place = f"{name}:{mark.line + 1}" if mark else name
    return ConfigError(f"{place} is not valid YAML: {problem}", hint="check indentation, colons and quotation marks")


def _entries(node: yaml.Node | None, loader: Loader, name: str) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the keys of a mapping in order, merge keys included.

    Raises:
        ConfigError: It is no mapping, or a key stands in it twice.
    """
    if node is None:
        return
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{name}:{_line(node)} is not a mapping", hint="a configuration has lines like 'key: value'")
    written = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
    if len(written) < len(node.value):
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{name}:{_line(key)} has a key that is not text", hint="put it in quotation marks")
            if key.value in seen:
                raise ConfigError(f"{name}:{_line(key)} sets '{key.value}' a second time", hint="keep one of them")
            seen.add(key.value)
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
    found: Layer = {}
    for inner, value in _entries(node, loader, name):
        dotted = f"{key}.{inner}"
        if dotted in NESTED and isinstance(value, yaml.MappingNode):
            for entry, price in _entries(value, loader, name):
                found[f"{dotted}.{entry}"] = _leaf(price, loader, name=name, folder=folder)
        else:
            found[dotted] = _leaf(value, loader, name=name, folder=folder)
    return found


def _leaf(node: yaml.Node, loader: Loader, *, name: str, folder: Path) -> Leaf:
    try:
        value = loader.construct_object(node, deep=True)
    except yaml.YAMLError as error:
        raise _invalid(name, error) from error
    text: str | None = None
    if isinstance(node, yaml.ScalarNode):
        text = "" if value is None else str(node.value)
    return Leaf(
        value=value,
        text=text,
        plain=isinstance(node, yaml.ScalarNode) and not node.style,
        origin=Origin(kind="file", where=f"{name}:{_line(node)}"),
        folder=folder,
    )


def _bases(node: yaml.Node, loader: Loader, name: str) -> list[str]:
    value = loader.construct_object(node, deep=True)
    bases = [value] if isinstance(value, str) else value
    if not isinstance(bases, list) or not all(isinstance(base, str) for base in bases):
        raise ConfigError(
            f"{name}:{_line(node)}: {BASE} must be a path or a list of paths",
            hint=f"write {BASE}: ../_base_/default.yaml",
        )
    return cast("list[str]", bases)


def _base_file(base: str, path: Path, name: str) -> Path:
    try:
        return sources.find(base, path.parent)
    except ConfigError as error:
        raise ConfigError(f"{name}: {BASE} names '{base}', which does not exist", hint=error.hint) from error
