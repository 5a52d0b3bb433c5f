"""A configuration ready for use, or as a run recorded it: values, where each comes from, and what identifies it.

The digest identifies what a run was asked to do. These keys are left out of it, for they cannot change results, and a
run may be continued with others:

- how this machine goes about its work (``LOCAL``): when to stop, how fast and how patiently, what a call is said to
  cost, whether its providers are sent schemas, what is reported on the way. They are not recorded in history either, so
  that commits do not depend on them; the machine that began a run remembers them for its later measurements;
- where things are (``env.data_path``, ``env.split_dir``, ``env.skill_init``, ``gate.pinned``, options of an environment
  that are paths, and keys of a backend that end in ``_base_url``, ``_path``, ``_dir``, ``_api_key_env`` and the like):
  the content behind them has digests of its own.

``calls.max_output_tokens`` and ``calls.temperature`` are part of it.

Keys that came after runs had been recorded (``LATER``) are left out of the digest and of what is recorded while they
have their defaults, so that a run that was begun without them goes on, and an equal run has equal commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from skillgit.app.recorded.evidence_json import parsed
from skillgit.app.setup.config.files import (
    DEFAULT,
    NESTED,
    PATHS,
    PLUGINS,
    Layer,
    Leaf,
    ValueOrigin,
    nested,
)
from skillgit.app.setup.config.schema import SECTIONS, Config, EnvSettings
from skillgit.app.setup.config.typed_values import settings_of, written_as
from skillgit.app.workspace.shipped_configurations import shipped_folder
from skillgit.domain.ids import short_digest
from skillgit.domain.served_model import without_credentials
from skillgit.errors import ConfigError
from skillgit.plugin.registry import BACKENDS, installed

if TYPE_CHECKING:
    from skillgit.domain.untrusted.allowed_settings import RecordedSettings


LOCAL = frozenset(
    (
        *("budget.max_calls", "budget.max_tokens", "budget.max_usd", "calls.concurrency", "calls.executor"),
        *("calls.hedge", "calls.item_timeout_s", "calls.max_retries", "calls.ray_address"),
        *("calls.requests_per_minute", "calls.retry_budget_s"),
        *("calls.timeout_s", "calls.tokens_per_minute", "env.exec_timeout", "env.out_root", "env.split_output_dir"),
        *("gate.worth", "gradient.analyst_workers", "gradient.max_pictures", "model.context_window", "model.prices"),
        *("model.judge_batch", "model.optimizer_batch", "model.target_batch"),
        *("optimizer.structured_output", "train.diagnose_after", "train.preflight", "train.require_loading"),
    )
)
"""Keys that say how a machine goes about its work: they are neither part of the digest nor recorded in history."""

_PLACES = frozenset({"env.data_path", "env.skill_init", "env.split_dir", "gate.pinned"})
"""Keys that are recorded, and are not part of the digest."""

LATER = frozenset(
    (
        *("env.prompts", "model.judge_seed", "model.judge_top_p", "model.optimizer_seed", "model.optimizer_top_p"),
        *("model.target_seed", "model.target_stop", "model.target_top_p", "optimizer.check", "optimizer.files"),
        *("optimizer.max_file_tokens", "target.companions", "target.max_companion_tokens"),
        *(
            "gate.max_tokens_per_item",
            "gate.objective",
            "gate.screening",
            "gate.token_margin",
            "gradient.samples",
            "optimizer.budget_unit",
            "train.plateau",
            "train.round_steps",
            "train.strategies",
            "train.strategy",
        ),
    )
)
"""Keys that identify a run only with another value than their default, or than they have in ``UNRECORDED``."""

UNRECORDED: Mapping[str, object] = {"optimizer.budget_unit": "edits", "train.strategy": "skillopt"}
"""What later keys mean in a run that does not record them, where their default has become another one."""

_PATIENCE = re.compile(r"\w+_(?:timeout_s|settle_s|pass_env|request_retries)")
"""Settings of a backend that say how patiently, and with which variables of this machine, it is asked."""

_WHERE = re.compile(r"\w+_(?:base_url|path|dir|api_key_env|azure_endpoint|azure_client_id)")
"""Settings of a backend that say where it is reached, not what it answers."""


_ADDRESS = re.compile(r"\w+_(?:base_url|azure_endpoint)")
"""Settings of a backend that are addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One key for ``skillgit config``: its value as it was written, and where that is."""

    key: str
    value: object
    origin: ValueOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    name: str
    path: Path
    root: Path  # the folder that relative paths in the environment's own options refer to
    values: Config
    options: Mapping[str, str | float | bool]
    entries: tuple[ConfigEntry, ...]  # every key in the order of the sections; paths are spelled as they were written
    notes: tuple[str, ...] = ()  # what the user should know: other names of keys, keys without effect
    path_keys: frozenset[str] = frozenset()

    @property
    def document(self) -> dict[str, dict[str, object]]:
        """The configuration as nested JSON values, with paths as they were written: evidence of a run.

        An address is recorded without a user and a query, which may be credentials.
        """
        entries = (entry for entry in self.entries if not is_local(entry.key) and not self._is_usual(entry))
        return _nested(tuple(map(_public, entries)))

    @property
    def local(self) -> dict[str, object]:
        """What was said of how this machine goes about its work, by key: no part of history."""
        return {entry.key: entry.value for entry in self.entries if is_local(entry.key) and entry.origin != DEFAULT}

    @property
    def digest(self) -> str:
        """Identify what a run is asked to do; see the module for the keys that are left out."""
        identifying = (
            entry
            for entry in self.entries
            if not is_neutral(entry.key) and entry.key not in self.path_keys and not self._is_usual(entry)
        )
        return short_digest(_nested(tuple(identifying)))

    def _is_usual(self, entry: ConfigEntry) -> bool:
        """Say whether ``entry`` is a later key with its default."""
        if entry.key not in LATER:
            return False
        section, _, name = entry.key.partition(".")
        settings = getattr(self.values, section)
        usual = UNRECORDED.get(entry.key, type(settings).model_fields[name].default)
        return bool(getattr(settings, name) == usual)

    def origin(self, key: str) -> ValueOrigin:
        return next(entry.origin for entry in self.entries if entry.key == key)

    def backend(self, role: str) -> str:
        """Return the name of the backend of ``role``; the judge has the optimizer's if it has none of its own."""
        name: str = getattr(self.values.model, f"{role}_backend")
        return name or self.values.model.optimizer_backend

    def settings(self, role: str) -> dict[str, object]:
        """Return the settings of a role's backend under its own names; a judge without one adds to the optimizer's."""
        backends = [plugin.name for plugin in installed(BACKENDS)]
        return settings_of(self.values.model.backend_settings, self.players(role), self.backend(role), backends)

    def settings_behind(self, role: str, backend: str) -> dict[str, object]:
        """Return the settings of a backend that answers the questions of a role's agent: those that name it."""
        prefixes = (f"{backend}_", *(f"{player}_{backend}_" for player in self.players(role)))
        settings = self.values.model.backend_settings
        return {
            name.removeprefix(prefix): value
            for prefix in prefixes
            for name, value in settings.items()
            if name.startswith(prefix)
        }

    def players(self, role: str) -> tuple[str, ...]:
        """Return the roles whose settings ``role`` has, its own last."""
        return ("optimizer", role) if role == "judge" and not self.values.model.judge_backend else (role,)

    def origin_of_setting(self, role: str, setting: str) -> str:
        """Return the key that ``setting`` of a role's backend was, or would be, written as."""
        return written_as(self.values.model.backend_settings, self.players(role), self.backend(role), setting)

    def variant(self, role: str) -> str:
        """Identify those settings of a role's backend that may change what it answers; empty if there are none."""
        settings = {name: value for name, value in self.settings(role).items() if not is_neutral(f"model.x_{name}")}
        return short_digest(settings) if settings else ""


def _public(entry: ConfigEntry) -> ConfigEntry:
    """Return ``entry`` as it may be recorded."""
    if isinstance(entry.value, str) and _is_of_backend(entry.key, _ADDRESS):
        return replace(entry, value=without_credentials(entry.value))
    return entry


EARLIER_NAMES: Mapping[str, str] = {
    "calls.attempts": "calls.max_retries",
    "calls.patience_s": "calls.retry_budget_s",
    "model.contexts": "model.context_window",
}
"""Keys as the first runs recorded them, to their names now; a file and an override cannot hold them."""


def _current_name(key: str) -> str:
    """Return the name that a recorded key has now."""
    earlier = next((name for name in EARLIER_NAMES if f"{key}.".startswith(f"{name}.")), "")
    return f"{EARLIER_NAMES[earlier]}{key.removeprefix(earlier)}" if earlier else key


def is_local(key: str) -> bool:
    """Say whether ``key`` is a matter of the machine that does the work, so that no history records it."""
    key = _current_name(key)
    return key in LOCAL or nested(key) in LOCAL or _is_of_backend(key, _PATIENCE)


def is_neutral(key: str) -> bool:
    """Say whether ``key`` cannot change results, so that it is not part of the digest."""
    return is_local(key) or key in _PLACES or _is_of_backend(key, _WHERE)


def _is_of_backend(key: str, names: re.Pattern[str]) -> bool:
    section, _, name = key.partition(".")
    return section == "model" and names.fullmatch(name) is not None


def _nested(entries: tuple[ConfigEntry, ...]) -> dict[str, dict[str, object]]:
    document: dict[str, dict[str, object]] = {}
    for entry in entries:
        section, _, name = entry.key.partition(".")
        outer = nested(entry.key)
        if outer:
            whole = document[section].setdefault(outer.partition(".")[2], {})
            cast("dict[str, object]", whole)[entry.key.removeprefix(f"{outer}.")] = entry.value
        else:
            document.setdefault(section, {})[name] = entry.value
    return document


SPELLED = frozenset((*PATHS, *PLUGINS))
"""Keys that are recorded as they were written, for their absolute form differs from machine to machine."""


_ANSWERS = frozenset(
    (
        *("calls.max_output_tokens", "calls.temperature", "model.reasoning_effort", "model.target_reasoning_effort"),
        *("model.target_stop", "model.target_top_p"),
    )
)


def read_document(content: bytes, name: str) -> dict[str, dict[str, object]]:
    """Return the sections of a recorded configuration."""
    document = parsed(content)
    if not isinstance(document, dict) or not all(isinstance(section, dict) for section in document.values()):
        raise ConfigError(f"the configuration that {name} recorded cannot be read", hint="name a file with --config")
    return document


def recorded_settings(document: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Return a recorded configuration's values by their dotted keys, without those of one machine (``is_local``)."""
    return {**UNRECORDED, **{key: value for key, value in _keys(document) if not is_local(key)}}


def recorded_layer(settings: RecordedSettings, name: str, folder: Path) -> Layer:
    """Return the values of a recorded configuration that may be acted on; relative paths start at ``folder``."""
    origin = ValueOrigin(kind="file", where=name)
    values: Layer = {}
    for key, recorded_value in settings.settings.items():
        value = recorded_value
        if key == "calls.attempts" and type(value) is int:
            value -= 1  # the first attempt is not a retry
        text = value if isinstance(value, str) else "" if value is None else None
        leaf = Leaf(value=value, text=text, origin=origin, folder=_start_of(value, folder))
        values[_current_name(key)] = leaf
    return values


def _start_of(value: object, folder: Path) -> Path:
    """Return the folder that a path in a recorded configuration starts at: ``folder``, or that of a shipped one.

    Data that comes with a shipped configuration is next to it, and recorded as it is written there.
    """
    if isinstance(value, str) and "/" in value and not (folder / value).exists():
        shipped = shipped_folder()
        return next((place for place in (shipped, *shipped.iterdir()) if (place / value).is_file()), folder)
    return folder


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
        # What chooses items is left out: their set has a digest.
        return not (name in EnvSettings.model_fields or name == "limit" or name.endswith(("_path", "_dir", "_file")))
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
