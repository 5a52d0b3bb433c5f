"""Read ``-o section.key=value``: the value is YAML, and what is not YAML is taken as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from skillgit.app.config.leaf import NESTED, Layer, Leaf, Origin
from skillgit.app.config.yaml_loader import Loader
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def read_overrides(overrides: Sequence[str], folder: Path) -> list[Layer]:
    """Return one layer for each override, so that later ones win.

    Args:
        overrides: Texts of the form ``key=value``.
        folder: The folder that relative paths in them refer to.

    Raises:
        ConfigError: One has no ``=``, or no key.
    """
    return [_layer(override, folder) for override in overrides]


def _layer(override: str, folder: Path) -> Layer:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"'-o {override}' is not an override", hint="write it like -o train.batch_size=20")
    value, written, plain = _value(text)
    origin = Origin(kind="override", where=f"-o {override}")
    name = key.strip()
    if name in NESTED and isinstance(value, dict):
        return {
            f"{name}.{entry}": Leaf(value=inner, text=None, plain=False, origin=origin, folder=folder)
            for entry, inner in value.items()
        }
    return {name: Leaf(value=value, text=written, plain=plain, origin=origin, folder=folder)}


def _value(text: str) -> tuple[object, str, bool]:
    """Return the value, its characters without quotation marks, and whether it had none."""
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        value = loader.construct_object(node, deep=True) if node else None
    except yaml.YAMLError:
        return text, text, True
    if isinstance(node, yaml.ScalarNode) and node.style:
        return value, str(node.value), False
    return value, "" if value is None else text.strip(), True
