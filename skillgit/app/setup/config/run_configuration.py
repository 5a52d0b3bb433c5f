"""A configuration as a run recorded it: read back into values that files and overrides can be put on top of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.setup.config.files import NESTED, Layer, Leaf, ValueOrigin, key_today, leaf_today
from skillgit.app.setup.config.resolved import is_local, is_neutral
from skillgit.app.setup.config.schema import SECTIONS, EnvSettings
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from skillgit.domain.untrusted.allowed_settings import RecordedSettings

_ITEMS = frozenset({"limit"})
"""Options of environments that choose items, whose set has a digest."""
_PLACES = ("_path", "_dir", "_file")
_ANSWERS = frozenset(
    {
        "calls.max_output_tokens",
        "calls.temperature",
        "model.reasoning_effort",
        "model.target_reasoning_effort",
        "model.target_stop",
        "model.target_top_p",
    }
)


def read_document(content: bytes, name: str) -> dict[str, dict[str, object]]:
    """Return the sections of a recorded configuration."""
    try:
        document = loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not all(isinstance(section, dict) for section in document.values()):
        raise ConfigError(f"the configuration that {name} recorded cannot be read", hint="name a file with --config")
    return document


def settings_of(document: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return the values of a recorded configuration by their dotted keys, without those that are no part of a run.

    What says how a machine goes about its work (``is_local``) was recorded once, and is nobody else's business.
    """
    return {key: value for key, value in _keys(document) if not is_local(key)}


def layer(settings: RecordedSettings, name: str, folder: Path) -> Layer:
    """Return the values of a recorded configuration that may be acted on; relative paths start at ``folder``."""
    origin = ValueOrigin(kind="file", where=name)
    return {key_today(key): leaf_today(key, _leaf(value, origin, folder)) for key, value in settings.taken.items()}


def measuring_settings(document: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return the settings of a recorded configuration that may change what the target does on an item, by their keys.

    Which models, items and environment it names is left out, for these have names and digests of their own, and so is
    the judge, whose parameters are in its name. So is the seed of the provider, which only chooses among draws.
    """
    backend = str(document.get("model", {}).get("target_backend", ""))
    return {key: value for key, value in _keys(document) if _measures(key, backend)}


def _measures(key: str, backend: str) -> bool:
    section, _, name = key.partition(".")
    if is_neutral(key):
        return False
    if section == "env":
        return not (name in EnvSettings.model_fields or name in _ITEMS or name.endswith(_PLACES))
    if section == "model" and name not in SECTIONS["model"].model_fields:
        return name.startswith(("target_", f"{backend}_"))
    return section == "target" or key in _ANSWERS


def _keys(document: Mapping[str, Mapping[str, object]]) -> Iterator[tuple[str, object]]:
    for section, values in document.items():
        for name, value in values.items():
            key = f"{section}.{name}"
            if key in NESTED and isinstance(value, dict):
                yield from ((f"{key}.{entry}", inner) for entry, inner in value.items())
            else:
                yield key, value


def _leaf(value: object, origin: ValueOrigin, folder: Path) -> Leaf:
    text = value if isinstance(value, str) else "" if value is None else None
    return Leaf(value=value, text=text, plain=False, origin=origin, folder=folder)
